"""The worst case: how far the nearest other decisions are, what tells, and what they look like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from brittle.report.chapter import Brief, Chapter, Text, files_beside
from brittle.report.chapters.worst_case.case import MarginCase, open_cases
from brittle.report.chapters.worst_case.charts import detection_chart, nearest_chart, stand_in_chart
from brittle.report.chapters.worst_case.counterexamples import magnification, summarize_counterexamples
from brittle.report.chapters.worst_case.distances import summarize_distances
from brittle.report.chapters.worst_case.result import WorstCase
from brittle.report.chapters.worst_case.stand_in import compare_scores, summarize_stand_in
from brittle.report.chapters.worst_case.subset import summarize_subset
from brittle.report.contents import Contents
from brittle.report.figure import Figure

TITLES = {
    "linf": "Linf: the largest change of any one input value",
    "l2": "L2: the Euclidean length of the change",
    "l1": "L1: the sum of the changes of all input values",
    "l0": "L0: how many input values change",
}

FILES = files_beside(__name__)


class WorstCaseChapter(Chapter[tuple[WorstCase, ...]]):
    """The worst case, once for every norm."""

    name: ClassVar[str] = "worst-case"
    title: ClassVar[str] = "The worst case"
    template: ClassVar[Text] = FILES / "chapter.html.jinja"
    terms: ClassVar[Text] = FILES / "terms.html.jinja"
    methods: ClassVar[Text] = FILES / "methods.html.jinja"
    style: ClassVar[Text] = FILES / "style.css"

    def summarize(self, contents: Contents) -> tuple[WorstCase, ...] | None:
        """One result for each norm; None without input margins."""
        cases = open_cases(contents)
        factor = magnification(cases)
        return tuple(_worst_case(case, factor) for case in cases) or None

    def figures(self, result: tuple[WorstCase, ...]) -> Mapping[str, Figure]:
        """The figures of each norm, told apart by its number."""
        return {
            f"{name}-{number}": figure
            for number, case in enumerate(result)
            for name, figure in (
                ("nearest", Figure(nearest_chart, case.distances.frame, narrow=True)),
                ("stand_in", Figure(stand_in_chart, case.stand_in.scatter)),
                ("detection", Figure(detection_chart, case.stand_in.detection)),
            )
        }

    def brief(self, result: tuple[WorstCase, ...]) -> Brief:
        """The median distance and the robust accuracy in each norm."""
        return Brief(tuple(number for case in result for number in case.headline))


def _worst_case(case: MarginCase, factor: int) -> WorstCase:
    distances, compared = summarize_distances(case), compare_scores(case)
    return WorstCase(
        title=TITLES[case.norm],
        epsilon=f"Where one perturbation size is needed, it is epsilon = {_epsilon_text(case)}: {case.epsilon.reason}.",
        headline=(distances.numbers[0], distances.numbers[2 if case.labelled else 1]),
        distances=distances,
        stand_in=summarize_stand_in(case, compared),
        subset=summarize_subset(case, compared),
        counterexamples=summarize_counterexamples(case, factor),
    )


def _epsilon_text(case: MarginCase) -> str:
    text, number = case.epsilon.text, f"{case.epsilon.value:.3g}"
    return text if "/" not in text else f"{text} = {number}"
