"""Content of a page: a run, with the questions that several chapters ask of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pandas as pd

from brittle.analysis.class_bias import ClassBias, class_bias
from brittle.analysis.columns import CHANGE, class_name, laplacian_column, margin_columns, sampled_columns
from brittle.analysis.overview import Overview, overview
from brittle.estimate import DISTANCES
from brittle.extensions.report.charts import score_colours
from brittle.extensions.report.wording import MISSING, show
from brittle.store.columns import Column
from brittle.store.record import NoiseRecord
from brittle.store.representative import settings, typical
from brittle.store.settings import Setting
from brittle.store.table import Table


@dataclass(frozen=True, eq=False, repr=False)
class Contents(Table):
    """A run as every chapter reads it: its table, with the arguments of the page.

    Attributes:
        epsilon: perturbation size that was asked for, in pixel units; None where a chapter is to choose.
        epsilon_text: how it was written, such as `2/255`; empty for the number.
        rivals: other runs over the same points, by the names that the page gives them.
    """

    epsilon: float | None = None
    epsilon_text: str = ""
    rivals: Mapping[str, Contents] = field(default_factory=dict)

    @property
    def confidence(self) -> float:
        return self.record.confidence

    @cached_property
    def chosen(self) -> Column | None:
        """The column that speaks for a point where one number is wanted, if any has a value."""
        return typical(self.columns)

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        """The noise settings that have a robustness."""
        return settings(self.columns)

    @cached_property
    def margins(self) -> Mapping[str, Column]:
        """The first input margins with a value in each norm."""
        column_by_norm: dict[str, Column] = {}
        for column in margin_columns(self):
            if (norm := column.parameters.get("norm")) in DISTANCES:
                column_by_norm.setdefault(str(norm), column)
        return {norm: column for norm, column in column_by_norm.items() if column.value.notna().any()}

    @cached_property
    def laplacian(self) -> Column | None:
        """The Laplacian that speaks for the run, if any has a value."""
        return laplacian_column(self.columns)

    @cached_property
    def changes(self) -> Mapping[Setting, Column]:
        """The sampled change at each noise setting, by sigma."""
        return sampled_columns(self.columns, CHANGE)

    @cached_property
    def change_setting(self) -> Setting | None:
        """The noise setting at which sampling decides the sign of the change for most points; of equals the last."""
        order = list(self.changes)
        return max(order, key=lambda noise: (sum(decided_signs(self.changes[noise])), order.index(noise)), default=None)

    @cached_property
    def noises(self) -> Mapping[str, NoiseRecord]:
        """Facts about the noise families of the run, by the names in their settings."""
        return {column.setting.noise: column.noise for column in self.columns if column.noise is not None}

    @cached_property
    def tells_robustness(self) -> bool:
        """True where the page is about robustness under noise: the run holds some, or nothing else."""
        return self.chosen is not None or not (self.margins or self.changes or self.laplacian is not None)

    @cached_property
    def overview(self) -> Overview:
        return overview(self)

    @cached_property
    def bias(self) -> ClassBias | None:
        """Robustness by class under the setting that speaks for the run."""
        return None if self.chosen is None else class_bias(self, self.chosen)

    @cached_property
    def colours(self) -> Mapping[str, str]:
        return score_colours(self.columns)

    def class_text(self, number: float | None) -> str:
        """Return the name of a class as the page shows it."""
        return MISSING if number is None or pd.isna(number) else show(class_name(self, int(number)), 40)

    def answer_text(self, number: float | None, words: object) -> str:
        """Return a label or a prediction as the page shows it: the name of its class, or words of other decisions."""
        has_class = number is not None and not pd.isna(number)
        return self.class_text(number) if has_class or not isinstance(words, str) else show(words, 40)

    def score_cell(self, column: Column) -> str:
        """Return the title of a score, and below it its name for commands."""
        return f"{show(column.title, 60)}\n{show(column.variant, 60)}"

    def class_labels(self, numbers: Iterable[int]) -> dict[int, str]:
        """Names of classes for the rows of a figure, made distinct by the class's number where two share one."""
        names = {number: show(class_name(self, number), 28) for number in numbers}
        times = Counter(names.values())
        return {number: f"{name} ({number})" if times[name] > 1 else name for number, name in names.items()}

    def noise_text(self, setting: Setting) -> str:
        """Return a noise setting with three digits, as far as these tell the settings of the run apart."""
        sigmas = {column.setting.sigma for column in self.columns if column.setting.sigma is not None}
        rounded = float(f"{setting.sigma:.3g}") if setting.sigma is not None and setting.in_pixels else None
        alone = sum(f"{sigma:.3g}" == f"{setting.sigma:.3g}" for sigma in sigmas) <= 1 if sigmas and rounded else False
        return show(str(setting._replace(sigma=rounded) if alone else setting), 60)

    def radius_text(self, setting: Setting) -> str:
        """Return the radius of noise on a sphere in brackets, where the shape of the inputs is known; else empty."""
        sides, noise = self.record.data.input_shape, self.noises.get(setting.noise)
        if noise is None or not noise.fixed_length or setting.sigma is None or not sides:
            return ""
        return f" (radius {setting.sigma * math.sqrt(math.prod(sides)):.3g})"


def decided_signs(column: Column) -> tuple[int, int]:
    """Points whose change is surely below 0, and those whose is surely above."""
    low, high = (column.rows[end].tolist() for end in ("low", "high"))
    return sum(end < 0.0 for end in high), sum(end > 0.0 for end in low)


def extreme_classes(bias: ClassBias, limit: int) -> list[int]:
    """Numbers of the classes that are shown, the least robust first: all, or of more than `limit` the extreme ones.

    These are the classes whose interval has the lowest upper end, then those whose interval has the highest lower end.
    A class of few points has a wide interval, and so does not stand at an end by luck.
    """
    rows = bias.classes.to_dict("records")
    if len(rows) > limit:
        lowest = sorted(rows, key=lambda row: row["high"])[: limit // 2]
        remaining = [row for row in rows if row not in lowest]
        highest = sorted(remaining, key=lambda row: -row["low"])[: limit - len(lowest)]
        rows = [row for row in rows if row in lowest] + [row for row in rows if row in highest]
    return [int(row["class"]) for row in rows]
