"""The page itself: its frame, its rules, its script, and the numbers that the script reads."""

from brittle.report.page.render import MARK, open_contents, render, write_page, write_report

__all__ = ["MARK", "open_contents", "render", "write_page", "write_report"]
