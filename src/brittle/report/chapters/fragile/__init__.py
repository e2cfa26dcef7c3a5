"""The most fragile predictions."""

from brittle.report.chapters.fragile.chapter import FragileChapter

__all__ = ["FragileChapter"]
