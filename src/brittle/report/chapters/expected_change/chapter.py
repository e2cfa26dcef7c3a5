"""The expected change: which way noise moves the predicted probability, and whether the Laplacian tells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from brittle.analysis.label_flips import mean_absolute
from brittle.report.chapter import Brief, Chapter, Text, files_beside
from brittle.report.chapters.expected_change.case import (
    ChangeCase,
    falling,
    mean_change,
    open_case,
    rising,
    setting_text,
)
from brittle.report.chapters.expected_change.charts import change_chart, means_chart, shares_chart
from brittle.report.chapters.expected_change.drops import summarize_drops
from brittle.report.chapters.expected_change.flips import flips_number, summarize_flips
from brittle.report.chapters.expected_change.prediction import summarize_prediction
from brittle.report.chapters.expected_change.result import ExpectedChange
from brittle.report.contents import Contents
from brittle.report.figure import Figure, panels
from brittle.report.parts import Number
from brittle.report.wording import plural, reach, short, signed, small_percent

FILES = files_beside(__name__)


class ExpectedChangeChapter(Chapter[ExpectedChange]):
    """The expected change."""

    name: ClassVar[str] = "expected-change"
    title: ClassVar[str] = "Expected change"
    template: ClassVar[Text] = FILES / "chapter.html.jinja"
    terms: ClassVar[Text] = FILES / "terms.html.jinja"
    methods: ClassVar[Text] = FILES / "methods.html.jinja"
    style: ClassVar[Text] = FILES / "style.css"

    def summarize(self, contents: Contents) -> ExpectedChange | None:
        """What the Laplacian and the sampled changes say; None where neither has a value."""
        case = open_case(contents)
        if case is None:
            return None
        found = (_mean_number(case), _laplacian_number(case), flips_number(contents, case.chosen))
        numbers = tuple(number for number in found if number is not None)
        return ExpectedChange(
            setting=setting_text(case),
            numbers=numbers,
            headline=numbers[:1],
            prediction=summarize_prediction(case),
            flips=summarize_flips(contents, case.chosen),
            drops=summarize_drops(case),
        )

    def figures(self, result: ExpectedChange) -> Mapping[str, Figure]:
        """Sampled against predicted change, and flips and Laplacians of groups of points."""
        return {
            "change": panels(change_chart, result.prediction.frame),
            "shares": Figure(shares_chart, result.flips.shares),
            "means": Figure(means_chart, result.flips.means),
        }

    def brief(self, result: ExpectedChange) -> Brief:
        """The mean change."""
        return Brief(result.headline)


def _mean_number(case: ChangeCase) -> Number | None:
    if case.chosen is None:
        return None
    column = case.contents.changes[case.chosen]
    mean, low, high = mean_change(column, case.contents.confidence)
    points = int(column.value.notna().sum())
    falls, rises = falling(column) / points, rising(column) / points
    return Number(
        f"Mean change of the predicted probability, {case.name(case.chosen)}",
        signed(mean),
        f"{reach(low, high)}. Sampling finds a fall at {small_percent(falls)} of {plural(points, 'point')}, a rise at "
        f"{small_percent(rises)}.",
    )


def _laplacian_number(case: ChangeCase) -> Number | None:
    if case.contents.laplacian is None:
        return None
    values = case.contents.laplacian.value.dropna()
    if np.isinf(values).any():
        return Number("Mean |Laplacian|", "∞", f"{plural(int(np.isinf(values).sum()), 'point')} without a finite one.")
    found = mean_absolute(case.contents, case.contents.laplacian)
    negative = small_percent(float((values < 0.0).mean()))
    return Number(
        "Mean |Laplacian|",
        short(found.mean, 3),
        f"{reach(found.low, found.high, 3)}, per squared pixel unit. It is negative for {negative} of "
        f"{plural(found.points, 'point')}.",
    )
