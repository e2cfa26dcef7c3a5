"""How to repeat the run."""

from brittle.report.chapters.repeat.chapter import RepeatChapter

__all__ = ["RepeatChapter"]
