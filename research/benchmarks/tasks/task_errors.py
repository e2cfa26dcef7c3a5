"""Errors of estimators on one task, against plain counting over separate draws without code of the package."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor

import brittle
from brittle.data import Points
from brittle.scores import Score

CONFIDENCE = 0.99
BLOCK = 1000

Draw = Callable[[Tensor, int, torch.Generator], Tensor]
"""Function that draws noisy copies of one point, `[count, ...]`."""

Holds = Callable[[Tensor, Tensor], Tensor]
"""Function of outputs at copies, `[count, C]`, and at the point, `[1, C]`: whether the decision holds."""


@dataclass(frozen=True)
class Setting:
    """A model, noise and a decision, each once for the package and once without it.

    Attributes:
        name: name of the task.
        outputs: outputs of the model for rows of inputs.
        classifier: the same model for the package.
        points: inputs, `[N, ...]`, or a sequence of inputs of different lengths.
        draw: noisy copies.
        holds: the decision.
        scores: estimators, by names.
        scored: points for the package, where they have more than inputs; else None.
    """

    name: str
    outputs: Callable[[Tensor], Tensor]
    classifier: brittle.Classifier
    points: Tensor | Sequence[Tensor]
    draw: Draw
    holds: Holds
    scores: dict[str, Score]
    scored: Points | None = None


@dataclass(frozen=True)
class Errors:
    """Errors of an estimator.

    Attributes:
        score: name of the score.
        error: root mean square error of the flip probability, without that of the reference.
        passes: mean passes.
        missed: number of intervals, of `intervals`, without the reference.
        clear: number of these outside the reference's own 99.9% interval.
        chance: probability that as many or more miss where each misses with 1%.
        off: mean signed error.
        without: number of estimates without a value, which are left out.
    """

    score: str
    error: float
    passes: float
    missed: int
    clear: int
    intervals: int
    chance: float
    off: float
    without: int


@torch.no_grad()
def reference(setting: Setting, draws: int) -> Tensor:
    """Return the flip probability of every point by plain counting, `[N]`, float64."""
    generator, flips = torch.Generator().manual_seed(2026), []
    for point in setting.points:
        at_point, lost = setting.outputs(point[None]), 0
        for start in range(0, draws, BLOCK):
            copies = setting.draw(point, min(BLOCK, draws - start), generator)
            lost += int((~setting.holds(setting.outputs(copies), at_point)).sum())
        flips.append(lost / draws)
    return torch.tensor(flips, dtype=torch.float64)


def errors(setting: Setting, truth: Tensor, draws: int, replicates: int) -> list[Errors]:
    """Return the errors of every estimator over seeds; `draws` are those of the reference."""
    rows: dict[str, list[np.ndarray]] = {name: [] for name in setting.scores}
    points: Any = setting.points if setting.scored is None else setting.scored
    for seed in range(replicates):
        table = brittle.score(
            setting.classifier, points, list(setting.scores.values()), seed=seed, confidence=CONFIDENCE,
            progress=False, skip_doctor=True,
        )  # fmt: skip
        for name, score in setting.scores.items():
            column = table[score]
            rows[name].append(
                np.stack([np.asarray(column.value), np.asarray(column.low), np.asarray(column.high), column.passes])
            )
    return [_errors(name, np.stack(of, axis=1), truth.numpy(), draws) for name, of in rows.items()]


def _errors(name: str, estimates: np.ndarray, truth: np.ndarray, draws: int) -> Errors:
    value, low, high, passes = estimates
    reference_error = float((truth * (1 - truth)).mean()) / (draws - 1)
    error = math.sqrt(max(float(np.nanmean(np.square(value - truth))) - reference_error, 0.0))
    missed = int(((truth < low) | (truth > high)).sum())
    flips = np.rint(truth * draws)
    lowest = np.nan_to_num(stats.beta.ppf(5e-4, flips, draws - flips + 1), nan=0.0)
    highest = np.nan_to_num(stats.beta.ppf(1 - 5e-4, flips + 1, draws - flips), nan=1.0)
    clear = int(((highest < low) | (lowest > high)).sum())
    chance = float(stats.binom.sf(missed - 1, value.size, 1 - CONFIDENCE))
    without = int(np.isnan(value).sum())
    return Errors(
        name, error, float(passes.mean()), missed, clear, value.size, chance, float(np.nanmean(value - truth)), without
    )


def line(name: str, truth: Tensor, estimator_errors: Sequence[Errors]) -> str:
    """Format the figures of one setting: errors as shares of that of `monte_carlo` with as many copies."""
    counting = next(row for row in estimator_errors if row.score == "monte_carlo")
    one_copy = counting.error * math.sqrt(counting.passes - 1)
    lines = [f"{name}: {float(truth.mean()):.3f} of the copies flip"]
    for row in estimator_errors:
        beside = f"{row.missed} of {row.intervals} intervals miss, {row.clear} clearly"
        share = row.error * math.sqrt(row.passes - 1) / one_copy if one_copy else math.nan
        lines.append(
            f"  {row.score:<12} error {row.error:.4f}, {share:.2f} of counting's; {row.passes:.0f} passes; "
            f"{beside} (as many by chance: {row.chance:.2g}); off by {row.off:+.4f}"
            + f"; {row.without} without a number"
            * bool(row.without)
        )
    return "\n".join(lines)
