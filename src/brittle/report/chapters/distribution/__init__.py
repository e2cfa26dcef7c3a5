"""How robustness is distributed."""

from brittle.report.chapters.distribution.chapter import DistributionChapter

__all__ = ["DistributionChapter"]
