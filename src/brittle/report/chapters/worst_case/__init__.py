"""The worst case: how far the nearest other decisions are, and what tells."""

from brittle.report.chapters.worst_case.case import MarginCase, open_cases
from brittle.report.chapters.worst_case.chapter import WorstCaseChapter
from brittle.report.chapters.worst_case.stand_in import compare_scores

__all__ = ["MarginCase", "WorstCaseChapter", "compare_scores", "open_cases"]
