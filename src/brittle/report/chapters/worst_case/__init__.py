"""The worst case: how far the nearest other decisions are, and what tells."""

from brittle.report.chapters.worst_case.case import Case, open_cases
from brittle.report.chapters.worst_case.chapter import WorstCaseChapter
from brittle.report.chapters.worst_case.stand_in import compare_scores

__all__ = ["Case", "WorstCaseChapter", "compare_scores", "open_cases"]
