"""A table as one HTML page that opens without a network, and what stands for a run where it is printed."""

from brittle.report.contents import Contents
from brittle.report.notebook import ReportPage, table_text
from brittle.report.render import MARK, open_contents, write_page

__all__ = ["MARK", "Contents", "ReportPage", "open_contents", "table_text", "write_page"]
