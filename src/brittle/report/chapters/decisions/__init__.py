"""Which predictions hold, by class."""

from brittle.report.chapters.decisions.chapter import DecisionsChapter

__all__ = ["DecisionsChapter"]
