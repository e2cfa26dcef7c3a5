"""The expected change: which way noise moves the predicted probability."""

from brittle.report.chapters.expected_change.chapter import ExpectedChangeChapter

__all__ = ["ExpectedChangeChapter"]
