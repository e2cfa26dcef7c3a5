"""How robustness is distributed: histograms, means, and which estimator speaks for a point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from brittle.analysis.columns import TYPICAL_P_ROBUST, largest_budgets, preferred
from brittle.analysis.distribution import FRAGILE, histogram
from brittle.analysis.mean_interval import mean_interval
from brittle.report.chapter import Brief, Chapter, Text, files_beside
from brittle.report.chapters.distribution.charts import distribution_chart
from brittle.report.contents import Contents
from brittle.report.figure import Figure
from brittle.report.parts import Number
from brittle.report.wording import draws_text, fixed, interval, percent, plural, show
from brittle.store.columns import Column, Setting

FILES = files_beside(__name__)


@dataclass(frozen=True, eq=False)
class Distribution:
    """How robustness is distributed.

    Attributes:
        frame: histograms of p_robust: `setting`, `estimator`, `place`, `order`, `start`, `end`, `share`.
        note: what the figure repeats and leaves out.
        means: mean p_robust under each noise setting that is shown.
        choice: which estimator and noise level speak for a point where one number is wanted.
    """

    frame: pd.DataFrame
    note: str
    means: tuple[Number, ...]
    choice: str


class DistributionChapter(Chapter[Distribution]):
    """How robustness is distributed."""

    name: ClassVar[str] = "distribution"
    title: ClassVar[str] = "How robustness is distributed"
    template: ClassVar[Text] = FILES / "chapter.html.jinja"
    terms: ClassVar[Text] = FILES / "terms.html.jinja"
    begins_part: ClassVar[bool] = False

    def summarize(self, contents: Contents) -> Distribution | None:
        """Histograms and means; None where the page does not speak of robustness under noise."""
        if not contents.tells_robustness:
            return None
        frame, note = _histograms(contents)
        found = [(setting, preferred(contents.columns, setting)) for setting in contents.panels]
        means = tuple(_mean(contents, setting, column) for setting, column in found if column is not None)
        return Distribution(frame, note, means, _choice(contents))

    def figures(self, result: Distribution) -> Mapping[str, Figure]:
        """The histograms."""
        return {"distribution": Figure(distribution_chart, result.frame)}

    def brief(self, result: Distribution) -> Brief:
        """The means, and what they are read from."""
        return Brief(result.means, result.choice)


def _histograms(contents: Contents) -> tuple[pd.DataFrame, str]:
    """The histograms, with an estimator that knows no noise level repeated under every one, and a note on them."""
    frame = histogram(contents)
    order = {variant: place for place, variant in enumerate(dict.fromkeys(c.variant for c in contents.columns))}
    parts = [frame.iloc[:0].assign(setting="")]
    for setting in contents.panels:
        same = frame["sigma"].eq(setting.sigma) & frame["noise"].eq(setting.noise)
        parts.append(frame[same | frame["sigma"].isna()].assign(setting=show(str(setting))))
    drawn = pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)
    drawn = drawn.assign(
        order=[order[name] for name in drawn["estimator"]],
        estimator=[show(name, 40) for name in drawn["estimator"]],
        place=[contents.place(score) for score in drawn["score"]],
    )
    repeats = "" if all(frame["sigma"].notna()) else "An estimator that knows no noise level repeats in every column. "
    left = len(contents.settings) - len(contents.panels)
    omitted = f"{plural(left, 'further noise level')} of the run not drawn here." if left else ""
    return drawn, repeats + omitted


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
        return "No point of this run has a robustness, so there is little to show beyond what was scored."
    level = (
        f" Its noise level is the one whose mean p_robust is nearest to {TYPICAL_P_ROBUST:g}, where points differ most."
        if len(contents.settings) > 1
        else ""
    )
    label = show(contents.chosen.label)
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
