"""This run beside other runs over the same points."""

from brittle.report.chapters.other_runs.chapter import OtherRunsChapter

__all__ = ["OtherRunsChapter"]
