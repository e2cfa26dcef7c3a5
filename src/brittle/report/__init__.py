"""A table as one HTML page that opens without a network, and what stands for a run where it is printed."""

from brittle.report.contents import Contents
from brittle.report.notebook import ReportPage, show, table_text
from brittle.report.render import MARK, open_contents, write_page, write_report

__all__ = [
    "MARK",
    "Contents",
    "ReportPage",
    "open_contents",
    "show",
    "table_text",
    "write_page",
    "write_report",
]
