"""A table with what every section of the page asks of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from brittle.analysis.class_bias import class_name
from brittle.analysis.columns import Column, Setting, columns, settings, typical
from brittle.analysis.extremes import tie_breaker
from brittle.report.wording import MISSING, shown
from brittle.store.table import Table

MAX_PANELS = 4
"""Noise levels shown side by side."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A table, opened.

    Attributes:
        table: the run.
        columns: its scores.
        chosen: the column that speaks for a point where one number is wanted, if any has a value.
        settings: the noise settings that have a robustness.
        panels: those of them that are shown side by side.
        confidence: of all intervals.
    """

    table: Table
    columns: tuple[Column, ...]
    chosen: Column | None
    settings: tuple[Setting, ...]
    panels: tuple[Setting, ...]
    confidence: float

    @property
    def provenance(self) -> dict[str, Any]:
        """The record of the run."""
        return self.table.provenance

    def part(self, name: str) -> dict[str, Any]:
        """A part of the provenance; empty where the run recorded none."""
        found = self.provenance.get(name)
        return found if isinstance(found, dict) else {}

    def class_text(self, number: float | None) -> str:
        """The name of a class as the page shows it."""
        return MISSING if number is None or pd.isna(number) else shown(class_name(self.table, int(number)), 40)

    def noise_text(self, setting: Setting) -> str:
        """A noise setting with three digits, as far as these tell the settings of the run apart."""
        sigmas = {column.setting.sigma for column in self.columns if column.setting.sigma is not None}
        rounded = None if setting.sigma is None else float(f"{setting.sigma:.3g}")
        alone = sum(f"{sigma:.3g}" == f"{setting.sigma:.3g}" for sigma in sigmas) <= 1 if sigmas and rounded else False
        return shown(str(setting._replace(sigma=rounded) if alone else setting), 60)

    def radius_text(self, setting: Setting) -> str:
        """The radius of noise on a sphere in brackets, where the shape of the inputs is known; else empty."""
        shape = self.part("data").get("input_shape")
        sides = shape if isinstance(shape, list) and all(isinstance(side, int) for side in shape) else []
        if setting.noise != "sphere" or setting.sigma is None or not sides:
            return ""
        return f" (radius {setting.sigma * math.sqrt(math.prod(sides)):.3g})"

    def ties_text(self, column: Column) -> str:
        """How points that tie in `column` are ordered; empty where none do."""
        if not column.value.dropna().duplicated().any():
            return ""
        second = tie_breaker(self.columns, column)
        by = f"{shown(second.label)}, then by " if second is not None else ""
        return f"Points that tie are ordered by {by}their place in the data."


def open_table(table: Table) -> Subject:
    """`table` with its columns and the choice among them."""
    found = columns(table)
    chosen, available = typical(found), settings(found)
    return Subject(
        table=table,
        columns=found,
        chosen=chosen,
        settings=available,
        panels=spread(available, chosen.setting if chosen is not None else None),
        confidence=float(table.provenance.get("confidence") or 0.99),
    )


def spread(available: Sequence[Setting], chosen: Setting | None) -> tuple[Setting, ...]:
    """At most `MAX_PANELS` of the settings, evenly spread, the ends and `chosen` among them."""
    if len(available) <= MAX_PANELS:
        return tuple(available)
    last = len(available) - 1
    wanted = {round(step * last / (MAX_PANELS - 1)) for step in range(MAX_PANELS)}
    if chosen in available and (place := available.index(chosen)) not in wanted:
        wanted.remove(min(wanted - {0, last}, key=lambda kept: abs(kept - place)))
        wanted.add(place)
    return tuple(available[place] for place in sorted(wanted))
