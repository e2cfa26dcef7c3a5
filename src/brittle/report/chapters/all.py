"""The chapters of the page, in their order: the only list."""

from __future__ import annotations

from typing import Any

from brittle.report.chapter import Chapter
from brittle.report.chapters.agreement import AgreementChapter
from brittle.report.chapters.cheap_scores import CheapScoresChapter
from brittle.report.chapters.classes import ClassesChapter
from brittle.report.chapters.decisions import DecisionsChapter
from brittle.report.chapters.distribution import DistributionChapter
from brittle.report.chapters.expected_change import ExpectedChangeChapter
from brittle.report.chapters.fragile import FragileChapter
from brittle.report.chapters.images import ImagesChapter
from brittle.report.chapters.other_runs import OtherRunsChapter
from brittle.report.chapters.repeat import RepeatChapter
from brittle.report.chapters.scored import ScoredChapter
from brittle.report.chapters.worst_case import WorstCaseChapter

CHAPTERS: tuple[Chapter[Any], ...] = (
    ScoredChapter(),
    DistributionChapter(),
    DecisionsChapter(),
    ClassesChapter(),
    ImagesChapter(),
    AgreementChapter(),
    CheapScoresChapter(),
    FragileChapter(),
    WorstCaseChapter(),
    ExpectedChangeChapter(),
    OtherRunsChapter(),
    RepeatChapter(),
)
"""What `write_report` shows by default; a chapter without anything to say is left out."""
