"""How robustness is distributed: histograms, means, and which estimator speaks for a point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from brittle.analysis.columns import TYPICAL_P_ROBUST, largest_budgets, preferred
from brittle.analysis.mean_interval import mean_interval
from brittle.errors import listed
from brittle.report.chapter import Brief, Chapter, Text, files_beside
from brittle.report.chapters.distribution.bins import tail_histogram
from brittle.report.chapters.distribution.charts import distribution_chart
from brittle.report.contents import Contents
from brittle.report.figure import Figure, panels
from brittle.report.parts import Number
from brittle.report.wording import draws_text, fixed, interval, percent, plural, show
from brittle.store.columns import Column
from brittle.store.settings import Setting

FILES = files_beside(__name__)

FRAGILE = 0.01
"""A prediction whose flip probability exceeds this counts as fragile."""


@dataclass(frozen=True, eq=False)
class Distribution:
    """How robustness is distributed.

    Attributes:
        frame: histograms: `setting`, `estimator`, `order`, and the columns of `tail_histogram`.
        limit: what the states are of.
        note: what the figure repeats and leaves out.
        means: mean p_robust under each noise setting that is shown.
        choice: which estimator and noise level speak for a point where one number is wanted.
    """

    frame: pd.DataFrame
    limit: float
    note: str
    means: tuple[Number, ...]
    choice: str

    @property
    def most(self) -> str:
        """The largest flip probability of a prediction that holds."""
        return f"{1.0 - self.limit:.4g}"

    @property
    def spoken(self) -> str:
        """The figure in words."""
        return " ".join(f"{number.title}: {number.value}, {number.note}" for number in self.means)


class DistributionChapter(Chapter[Distribution]):
    """How robustness is distributed."""

    name: ClassVar[str] = "distribution"
    title: ClassVar[str] = "How robustness is distributed"
    template: ClassVar[Text] = FILES / "chapter.html.jinja"
    terms: ClassVar[Text] = FILES / "terms.html.jinja"
    in_methods: ClassVar[bool] = True

    def summarize(self, contents: Contents) -> Distribution | None:
        """Histograms and means; None where no point has a robustness."""
        if contents.chosen is None:
            return None
        limit = contents.overview.limit
        frame, note = _histograms(contents, limit)
        found = [(setting, preferred(contents.columns, setting)) for setting in contents.panels]
        means = tuple(_mean(contents, setting, column) for setting, column in found if column is not None)
        return Distribution(frame, limit, note, means, _choice(contents))

    def figures(self, result: Distribution) -> Mapping[str, Figure]:
        """The histograms."""
        return {"distribution": panels(distribution_chart, result.frame)}

    def brief(self, result: Distribution) -> Brief:
        """The means, and what they are read from."""
        return Brief(result.means, result.choice)


def _histograms(contents: Contents, limit: float) -> tuple[pd.DataFrame, str]:
    """The histograms, with an estimator that knows no noise level repeated under every one, and a note on them."""
    columns = [column for column in largest_budgets(contents.columns) if column.value.notna().any()]
    parts = [
        tail_histogram(column, limit).assign(setting=show(str(setting)), estimator=_row_name(column), order=order)
        for setting in contents.panels
        for order, column in enumerate(columns)
        if column.setting == setting or column.setting.sigma is None
    ]
    plain = dict.fromkeys(show(column.variant, 40) for column in columns if column.setting.sigma is None)
    repeats = (
        f"Without a noise level and the same under each, as they say how sure the network is: {listed(list(plain), 3)}."
        if plain
        else ""
    )
    left = len(contents.settings) - len(contents.panels)
    omitted = f"{plural(left, 'further noise level')} of the run not drawn here." if left else ""
    frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    return frame, " ".join(part for part in (repeats, omitted) if part)


def _row_name(column: Column) -> str:
    """What a row of the figure shows: a score that knows no noise gives no flip probability."""
    name = show(column.variant, 40)
    return name if column.setting.sigma is not None else f"{name}: 1 \u2212 confidence, no flips"


def _mean(contents: Contents, setting: Setting, column: Column) -> Number:
    mean = mean_interval(column.p_robust, contents.confidence)
    fragile = float((column.value.dropna() > FRAGILE).mean())
    return Number(
        title=f"Mean p_robust, {show(str(setting))}",
        value=fixed(mean.mean),
        note=f"{interval(mean.low, mean.high)}. {percent(fragile)} of the points flip with a probability above "
        f"{100.0 * FRAGILE:g}%.",
    )


def _choice(contents: Contents) -> str:
    if contents.chosen is None:
        return ""
    level = (
        f" Its noise level is the one whose mean p_robust is nearest to {TYPICAL_P_ROBUST:g}, where points differ most."
        if len(contents.settings) > 1
        else ""
    )
    label = show(contents.chosen.shown)
    return f"Where one number per point is wanted, this page reads {label}.{level}{_order(contents)}"


def _order(contents: Contents) -> str:
    """In which order the estimators of the run may speak for it."""
    ranked = [(column.preference, _estimator(column)) for column in largest_budgets(contents.columns)
              if column.preference is not None and column.value.notna().any()]  # fmt: skip
    names = dict.fromkeys(name for _, name in sorted(ranked, key=lambda one: one[0]))
    if len(names) < 2:
        return ""
    return f" Its estimator is the first of those that this run holds, in this order: {', '.join(names)}."


def _estimator(column: Column) -> str:
    draws = draws_text(column.most_draws, column.stops)
    return f"{show(column.variant, 40)}{f' with {draws}' if draws else ''}"
