"""The first screen: how brittle, where, how sure, what next."""

from brittle.report.chapters.overview.chapter import OverviewChapter

__all__ = ["OverviewChapter"]
