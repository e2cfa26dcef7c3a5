"""The worst case: how far the nearest other decisions are, and what tells."""

from brittle.report.chapters.worst_case.chapter import WorstCaseChapter

__all__ = ["WorstCaseChapter"]
