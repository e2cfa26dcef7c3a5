"""The scores of a table, one column at a time, and which of them speaks for the run."""

from __future__ import annotations

import math
import weakref
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import pandas as pd

from brittle.estimate import Status
from brittle.store.table import FLIP_PROBABILITY, SCORES, Table, parameters_json, score_label

GAUSSIAN = "gaussian"
"""The noise family of a column whose parameters name none."""

PREFERENCE = (
    ("monte_carlo", 200),
    ("moments", 0),
    ("mmse", 0),
    ("mmse_margin", 0),
    ("mmse_mvs", 0),
    ("taylor", 0),
    ("taylor_mvs", 0),
    ("monte_carlo", 0),
    ("softmax", 0),
)
"""Which estimator speaks for a run where one number per point is wanted, and the draws it needs at least."""

TYPICAL_P_ROBUST = 0.7
"""The noise level whose mean robustness is nearest to this tells points apart best: few at 1, few at chance."""

_last: tuple[Callable[[], Table | None], tuple[Column, ...]] = (lambda: None, ())
"""A reference to the table that was read last, and its columns."""

_NUMBERS = ["value", "low", "high"]
_NO_ROWS = cast(pd.DataFrame, SCORES.empty_table().to_pandas().astype(dict.fromkeys(_NUMBERS, "float64")))
_COMMON_KEYS = ("sigma", "noise", "action", "draws")
WITHOUT_VALUE = frozenset(status.slug for status in Status if not status.has_value)
"""Statuses, as tables write them, that no number comes with."""


class Setting(NamedTuple):
    """The noise that a robustness refers to: its level in pixel units and its family."""

    sigma: float | None
    noise: str

    def __str__(self) -> str:
        sigma = "no noise level" if self.sigma is None else f"sigma {self.sigma:g}"
        return sigma if self.noise == GAUSSIAN else f"{sigma}, {self.noise}"


ANY_NOISE = Setting(None, GAUSSIAN)
"""The setting of a score that knows no noise."""


@dataclass(frozen=True, eq=False)
class Column:
    """One score with one set of parameters, for every point of a table.

    Attributes:
        score: name in the catalogue, such as `moments`.
        parameters: its parameters, such as `{"draws": 20, "sigma": 0.1}`.
        variant: the score's name, with those parameters other than noise and draws that tell it from its siblings.
        quantity: what the value is, such as `flip_probability`.
        label: the score with all its parameters, as one writes it.
        title: what people call it.
        reference: where it is defined.
        rows: the score's rows of the table, indexed by point in the order of the data; `value`, `low` and `high` are
            NaN wherever the status carries no number.
    """

    score: str
    parameters: dict[str, Any]
    variant: str
    quantity: str
    label: str
    title: str
    reference: str
    rows: pd.DataFrame

    @property
    def is_probability(self) -> bool:
        """Whether the value is a flip probability."""
        return self.quantity == FLIP_PROBABILITY

    @property
    def setting(self) -> Setting:
        """The noise that the column refers to."""
        sigma = self.parameters.get("sigma")
        family = [str(self.parameters.get("noise", GAUSSIAN))]
        family += [str(self.parameters["action"])] if "action" in self.parameters else []
        return Setting(float(sigma) if isinstance(sigma, int | float) else None, " ".join(family))

    @property
    def draws(self) -> int | None:
        """Noise draws per point, where the score samples."""
        draws = self.parameters.get("draws")
        return draws if isinstance(draws, int) else None

    @property
    def value(self) -> pd.Series:
        """The score of each point; NaN where there is none."""
        return cast(pd.Series, self.rows["value"])

    @property
    def p_robust(self) -> pd.Series:
        """Probability that the prediction keeps; `1 - value`."""
        return 1.0 - self.value

    @property
    def cost(self) -> float:
        """Mean passes through the network per point with a value; NaN where no point has one."""
        return float(self.rows.loc[self.value.notna(), "passes"].mean())


def columns(table: Table) -> tuple[Column, ...]:
    """The columns of `table`, in the order of its provenance.

    Those of the table that was read last are kept while it lives, since one report asks for them many times.
    """
    global _last
    kept, found = _last
    if kept() is not table:
        found = _columns(table)
        _last = (weakref.ref(table), found)
    return found


def _columns(table: Table) -> tuple[Column, ...]:
    groups: dict[Any, pd.DataFrame] = dict(list(_valued(table).groupby(["score", "parameters"], sort=False)))
    entries = {(entry["score"], parameters_json(entry["parameters"])): entry for entry in _entries(table)}
    variants = _variants(list(entries.values()))
    points = table.points["point"].to_pylist()
    return tuple(
        _column(entry, variant, groups.get(key, _NO_ROWS).set_index("point").reindex(points))
        for (key, entry), variant in zip(entries.items(), variants, strict=True)
    )


def probability_columns(table: Table) -> tuple[Column, ...]:
    """The columns of `table` that hold flip probabilities."""
    return tuple(column for column in columns(table) if column.is_probability)


def settings(columns: Sequence[Column]) -> tuple[Setting, ...]:
    """The noise settings of the probability columns, by sigma; one without sigma if no column has any."""
    found = {column.setting for column in columns if column.is_probability and column.value.notna().any()}
    leveled = sorted((setting for setting in found if setting.sigma is not None), key=lambda s: (s.sigma, s.noise))
    return tuple(leveled) or tuple(found)


def largest_budgets(columns: Sequence[Column]) -> tuple[Column, ...]:
    """Of each estimator and setting, the probability column with the most draws."""
    best: dict[tuple[Setting, str], Column] = {}
    for column in columns:
        key = (column.setting, column.variant)
        if column.is_probability and (key not in best or (column.draws or 0) > (best[key].draws or 0)):
            best[key] = column
    return tuple(best.values())


def preferred(columns: Sequence[Column], setting: Setting, exclude: str | None = None) -> Column | None:
    """The column that speaks for the robustness under `setting`: the first of `PREFERENCE` that has a value.

    Args:
        columns: the columns of a table.
        setting: the noise; a column that knows no noise level serves under every one.
        exclude: name of a score to pass over, to break the ties of another.
    """
    candidates = [
        column
        for column in largest_budgets(columns)
        if column.setting in (setting, ANY_NOISE) and column.value.notna().any()
    ]
    for score, draws in PREFERENCE:
        for column in candidates:
            if column.score == score != exclude and (column.draws or 0) >= draws:
                return column
    return None


def typical(columns: Sequence[Column]) -> Column | None:
    """The preferred column of the setting whose mean robustness is nearest to `TYPICAL_P_ROBUST`."""
    chosen = [column for setting in settings(columns) if (column := preferred(columns, setting)) is not None]
    return min(chosen, key=lambda column: abs(float(column.p_robust.mean()) - TYPICAL_P_ROBUST), default=None)


def _entries(table: Table) -> list[dict[str, Any]]:
    return [entry for entry in table.provenance.get("scores") or [] if {"score", "parameters"} <= entry.keys()]


def _variants(entries: list[dict[str, Any]]) -> list[str]:
    """Names that tell siblings apart by their parameters other than noise and draws, where they differ."""
    others = [{k: v for k, v in entry["parameters"].items() if k not in _COMMON_KEYS} for entry in entries]
    seen: defaultdict[str, set[str]] = defaultdict(set)
    for entry, other in zip(entries, others, strict=True):
        seen[entry["score"]].add(parameters_json(other))
    return [
        score_label(entry["score"], other) if len(seen[entry["score"]]) > 1 else entry["score"]
        for entry, other in zip(entries, others, strict=True)
    ]


def _valued(table: Table) -> pd.DataFrame:
    """The scores, without a number wherever the status carries none."""
    rows = table.long().astype(dict.fromkeys(_NUMBERS, "float64"))
    rows.loc[rows["status"].isin(list(WITHOUT_VALUE)), _NUMBERS] = math.nan
    return rows


def _column(entry: dict[str, Any], variant: str, rows: pd.DataFrame) -> Column:
    return Column(
        score=entry["score"],
        parameters=entry["parameters"],
        variant=storable(variant),
        quantity=entry.get("quantity", ""),
        label=storable(entry.get("label") or score_label(entry["score"], entry["parameters"])),
        title=storable(entry.get("title") or entry["score"]),
        reference=storable(entry.get("reference") or ""),
        rows=rows,
    )


def storable(text: object) -> str:
    """`text` without the halves of characters that JSON can hold and a frame cannot."""
    return str(text).encode("utf-8", "replace").decode("utf-8")
