"""Whether a score that knows no noise can stand in for robustness."""

from brittle.report.chapters.cheap_scores.chapter import CheapScoresChapter

__all__ = ["CheapScoresChapter"]
