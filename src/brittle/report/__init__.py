"""A table as one HTML page that opens without a network, and what a notebook and a terminal show of a run."""

from brittle.report.contents import Contents
from brittle.report.notebook import ReportPage, estimate_html, show, table_html, table_text
from brittle.report.render import MARK, open_contents, write_page, write_report

__all__ = [
    "MARK",
    "Contents",
    "ReportPage",
    "estimate_html",
    "open_contents",
    "show",
    "table_html",
    "table_text",
    "write_page",
    "write_report",
]
