"""A table as one HTML page that opens without a network and runs no code."""

from brittle.report.page import MARK, render, worst_cases, write_report
from brittle.report.summarize import summarize
from brittle.report.summary import Summary

__all__ = [
    "MARK",
    "Summary",
    "render",
    "summarize",
    "worst_cases",
    "write_report",
]
