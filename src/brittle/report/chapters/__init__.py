"""The chapters of the page, one folder each: what it says, what it draws, its template."""

from brittle.report.chapters.all import CHAPTERS

__all__ = ["CHAPTERS"]
