"""What the sections of the chapter share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from brittle.analysis.label_flips import CONFIDENCE
from brittle.analysis.mean_interval import MeanInterval, ranged_interval
from brittle.report.contents import Contents
from brittle.report.wording import plural
from brittle.store.columns import Column
from brittle.store.settings import Setting


@dataclass(frozen=True, eq=False)
class ChangeCase:
    """The run, the noise setting that the chapter speaks of, and the confidence of its predictions.

    Attributes:
        contents: the run.
        chosen: the noise setting; None where nothing was sampled.
        sure: the column of the largest probability; None where the run has none.
    """

    contents: Contents
    chosen: Setting | None
    sure: Column | None

    def name(self, setting: Setting) -> str:
        """The noise setting as the chapter writes it."""
        return self.contents.noise_text(setting)


def open_case(contents: Contents) -> ChangeCase | None:
    """The case of a run; None where neither a Laplacian nor a sampled change has a value."""
    if contents.laplacian is None and not contents.changes:
        return None
    sure = next((one for one in contents.columns if one.score == CONFIDENCE and one.value.notna().any()), None)
    return ChangeCase(contents, choose_setting(contents.changes), sure)


def choose_setting(sampled: Mapping[Setting, Column]) -> Setting | None:
    """The noise setting at which sampling decides the sign of the change for most points; of equals the last."""
    order = list(sampled)
    return max(order, key=lambda setting: (_decided(sampled[setting]), order.index(setting)), default=None)


def _decided(column: Column) -> int:
    return rising(column) + falling(column)


def rising(column: Column) -> int:
    """Points whose change is surely above 0."""
    return int(np.sum(column.rows["low"].to_numpy() > 0.0))


def falling(column: Column) -> int:
    """Points whose change is surely below 0."""
    return int(np.sum(column.rows["high"].to_numpy() < 0.0))


def setting_text(case: ChangeCase) -> str:
    """Which noise setting the chapter speaks of, and why that one; empty where nothing was sampled."""
    if case.chosen is None:
        return ""
    column = case.contents.changes[case.chosen]
    name = f"{case.name(case.chosen)}{case.contents.radius_text(case.chosen)}"
    if len(case.contents.changes) == 1:
        return f"The change was sampled at {name}, with {plural(column.draws or 0, 'draw')} per point."
    count = f"{_decided(column):,} of {int(column.value.notna().sum()):,}"
    return (
        f"Where one noise level is needed, it is {name}: there sampling decides for most points ({count}) whether "
        "their probability rises or falls; of levels that tie, the noisiest."
    )


def mean_change(column: Column, confidence: float) -> MeanInterval:
    """Mean over points with its interval; a change of a probability lies between -1 and 1."""
    values = column.value.to_numpy(dtype=np.float64).clip(-1.0, 1.0)  # a table may come from anybody
    return ranged_interval(values, -1.0, 1.0, confidence)
