"""The estimators against Monte Carlo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from brittle.analysis.agreement import agreement, by_setting
from brittle.report.chapter import Chapter, Text, files_beside
from brittle.report.chapters.agreement.charts import agreement_chart
from brittle.report.contents import Contents
from brittle.report.figure import Figure, panels
from brittle.report.parts import Grid
from brittle.report.wording import MISSING, fixed, show
from brittle.store.settings import Setting

FILES = files_beside(__name__)


@dataclass(frozen=True)
class Comparison:
    """Estimators against Monte Carlo under one noise: a heading and the table; `main` for the one to open first."""

    title: str
    grid: Grid
    main: bool


@dataclass(frozen=True, eq=False)
class Agreement:
    """Estimators against Monte Carlo.

    Attributes:
        frame: the frame of `brittle.analysis.agreement` with `setting` and `place`.
        comparisons: the same as tables, one for each noise setting.
        note: what is compared and what is left out.
    """

    frame: pd.DataFrame
    comparisons: tuple[Comparison, ...]
    note: str

    @property
    def spoken(self) -> str:
        """The figure in words: of every noise level the estimator with the smallest error."""
        known = self.frame.dropna(subset=["mae"])
        groups = known.groupby("setting", sort=False)
        best = [(str(setting), group.loc[group["mae"].idxmin()]) for setting, group in groups]
        return " ".join(
            f"At {setting}, the smallest error is {fixed(row['mae'], 4)}, of {row['estimator']}."
            for setting, row in best
        )


class AgreementChapter(Chapter[Agreement]):
    """The estimators against Monte Carlo."""

    name: ClassVar[str] = "agreement"
    title: ClassVar[str] = "Estimators against Monte Carlo"
    template: ClassVar[Text] = FILES / "chapter.html.jinja"
    in_methods: ClassVar[bool] = True

    def summarize(self, contents: Contents) -> Agreement | None:
        """Errors and rank correlations; None where the run holds nothing to compare."""
        frame = agreement(contents)
        if frame.empty:
            return None
        main = contents.chosen.setting if contents.chosen is not None else None
        groups = by_setting(frame)
        comparisons = [_comparison(contents, setting, rows, setting == main) for setting, rows in groups.items()]
        return Agreement(
            frame=_drawn(contents, frame, groups),
            comparisons=tuple(sorted(comparisons, key=lambda one: not one.main)),
            note=_note(frame),
        )

    def figures(self, result: Agreement) -> Mapping[str, Figure]:
        """Error and rank correlation against the cost."""
        return {"agreement": panels(agreement_chart, result.frame)}


def _drawn(contents: Contents, frame: pd.DataFrame, groups: Mapping[Setting, pd.DataFrame]) -> pd.DataFrame:
    """The rows of the noise settings that are drawn."""
    panels = [
        rows.assign(
            setting=show(str(setting)),
            estimator=[show(name, 40) for name in rows["estimator"]],
            place=[contents.place(score) for score in rows["score"]],
        )
        for setting, rows in groups.items()
        if setting in contents.panels
    ]
    return pd.concat(panels, ignore_index=True) if panels else frame.iloc[:0].assign(setting="", place=0)


def _comparison(contents: Contents, setting: Setting, rows: pd.DataFrame, main: bool) -> Comparison:
    widest = rows.loc[rows["reference_draws"].idxmax()]
    title = (
        f"{show(str(setting))}: Monte Carlo with {widest['reference_draws']:,} draws, mean p_robust "
        f"{fixed(widest['mean_p_robust'])}, its own expected error {fixed(widest['floor'], 4)}"
    )
    cells = tuple(
        (
            show(row["estimator"], 60) + (" *" if row["shares_draws"] else ""),
            MISSING if pd.isna(row["budget"]) else f"{row['budget']:,}",
            f"{row['cost']:,.0f}",
            fixed(row["mae"], 4),
            fixed(row["floor"], 4),
            fixed(row["tau"]),
            f"{row['points']:,}",
        )
        for row in rows.to_dict("records")
    )
    header = (
        "Estimator",
        "Draws",
        "Passes per point",
        "Mean abs. error",
        "Of the reference",
        "Kendall's tau",
        "Points",
    )
    colours = tuple(contents.colour(score) for score in rows["score"])
    return Comparison(title, Grid(header, (False, *[True] * 6), cells, colours), main)


def _note(frame: pd.DataFrame) -> str:
    left = max(frame["left_out"])
    return " ".join(
        part
        for part in (
            "An estimator that read some of the reference's own draws is compared with the votes of the others, so "
            "that no draw is on both sides.",
            "* Too few others remained, so the whole reference was used and the error is understated."
            if any(frame["shares_draws"])
            else "",
            f"Points without a value on either side, at most {left:,}, are left out." if left else "",
        )
        if part
    )
