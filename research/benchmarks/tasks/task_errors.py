"""Estimators on one task beside plain counting over draws of its own, without code of the package."""

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
"""So many noisy copies of one point, `[count, ...]`."""

Kept = Callable[[Tensor, Tensor], Tensor]
"""Whether the outputs for copies, `[count, C]`, still say what that for the point says, `[1, C]`."""


@dataclass(frozen=True)
class Setting:
    """A model, noise and a decision, each once for the package and once without it.

    Attributes:
        name: of the task.
        outputs: what the model returns for rows of inputs.
        classifier: the same for the package.
        points: inputs, `[N, ...]`, or one for each point where they differ in length.
        draw: noisy copies.
        kept: the decision.
        scores: estimators, by names.
        scored: the points for the package, where they are more than their inputs; else None.
    """

    name: str
    outputs: Callable[[Tensor], Tensor]
    classifier: brittle.Classifier
    points: Tensor | Sequence[Tensor]
    draw: Draw
    kept: Kept
    scores: dict[str, Score]
    scored: Points | None = None


@dataclass(frozen=True)
class Errors:
    """How far an estimator is off.

    Attributes:
        score: its name.
        error: root mean square error of the flip probability, less what the reference's own error adds.
        passes: in the mean.
        missed: intervals that do not hold the reference, of `intervals`.
        clear: those of them that lie beside the reference's own 99.9% interval.
        chance: probability that as many or more miss where each misses with 1%.
        off: mean signed error.
        without: estimates without a number, which are left out.
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
    """Flip probability of every point by plain counting, `[N]`, float64."""
    generator, flips = torch.Generator().manual_seed(2026), []
    for point in setting.points:
        own, lost = setting.outputs(point[None]), 0
        for start in range(0, draws, BLOCK):
            copies = setting.draw(point, min(BLOCK, draws - start), generator)
            lost += int((~setting.kept(setting.outputs(copies), own)).sum())
        flips.append(lost / draws)
    return torch.tensor(flips, dtype=torch.float64)


def errors(setting: Setting, truth: Tensor, draws: int, replicates: int) -> list[Errors]:
    """Every estimator with so many seeds; `draws` are those of the reference."""
    rows: dict[str, list[np.ndarray]] = {name: [] for name in setting.scores}
    points: Any = setting.points if setting.scored is None else setting.scored
    for seed in range(replicates):
        found = brittle.score(
            setting.classifier, points, list(setting.scores.values()), seed=seed, confidence=CONFIDENCE,
            progress=False, skip_doctor=True,
        )  # fmt: skip
        for name, score in setting.scores.items():
            own = found[score]
            rows[name].append(np.stack([np.asarray(own.value), np.asarray(own.low), np.asarray(own.high), own.passes]))
    return [_errors(name, np.stack(of, axis=1), truth.numpy(), draws) for name, of in rows.items()]


def _errors(name: str, found: np.ndarray, truth: np.ndarray, draws: int) -> Errors:
    value, low, high, passes = found
    own = float((truth * (1 - truth)).mean()) / (draws - 1)
    error = math.sqrt(max(float(np.nanmean(np.square(value - truth))) - own, 0.0))
    missed = int(((truth < low) | (truth > high)).sum())
    flips = np.rint(truth * draws)
    least = np.nan_to_num(stats.beta.ppf(5e-4, flips, draws - flips + 1), nan=0.0)
    most = np.nan_to_num(stats.beta.ppf(1 - 5e-4, flips + 1, draws - flips), nan=1.0)
    clear = int(((most < low) | (least > high)).sum())
    chance = float(stats.binom.sf(missed - 1, value.size, 1 - CONFIDENCE))
    without = int(np.isnan(value).sum())
    return Errors(
        name, error, float(passes.mean()), missed, clear, value.size, chance, float(np.nanmean(value - truth)), without
    )


def line(name: str, truth: Tensor, found: Sequence[Errors]) -> str:
    """The figures of one setting: errors as shares of that of `monte_carlo` with as many copies."""
    counting = next(one for one in found if one.score == "monte_carlo")
    one_copy = counting.error * math.sqrt(counting.passes - 1)
    said = [f"{name}: {float(truth.mean()):.3f} of the copies flip"]
    for one in found:
        beside = f"{one.missed} of {one.intervals} intervals miss, {one.clear} clearly"
        share = one.error * math.sqrt(one.passes - 1) / one_copy if one_copy else math.nan
        said.append(
            f"  {one.score:<12} error {one.error:.4f}, {share:.2f} of counting's; {one.passes:.0f} passes; "
            f"{beside} (as many by chance: {one.chance:.2g}); off by {one.off:+.4f}"
            + f"; {one.without} without a number"
            * bool(one.without)
        )
    return "\n".join(said)
