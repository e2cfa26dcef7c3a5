"""What was scored."""

from brittle.report.chapters.scored.chapter import ScoredChapter

__all__ = ["ScoredChapter"]
