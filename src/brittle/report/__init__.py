"""A table as one HTML page that opens without a network."""

from brittle.report.chapter import Brief, Chapter
from brittle.report.chapters.all import CHAPTERS
from brittle.report.contents import Contents
from brittle.report.figure import Figure
from brittle.report.page import MARK, open_contents, render, write_page, write_report
from brittle.report.parts import Entry, Grid, Number

__all__ = [
    "CHAPTERS",
    "MARK",
    "Brief",
    "Chapter",
    "Contents",
    "Entry",
    "Figure",
    "Grid",
    "Number",
    "open_contents",
    "render",
    "write_page",
    "write_report",
]
