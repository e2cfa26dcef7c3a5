"""The robust accuracy of many points, from attacks on a few of them and one pass for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from brittle.data import sample_points
from brittle.data.formats import Data
from brittle.errors import warn
from brittle.estimate import CONFIDENCE
from brittle.extensions.worst_case.robust_accuracy import (
    EstimatedRobustAccuracy,
    RobustAccuracy,
    direct_robust_accuracy,
    estimate_robust_accuracy,
)
from brittle.model.classifier import Classifier
from brittle.run.arguments import make_job
from brittle.run.job import Job
from brittle.run.progress import Progress
from brittle.run.progress import progress as shown_progress
from brittle.run.scoring import Memory, execute
from brittle.scores import InputMargin, LogitMargin
from brittle.store.table import Table
from brittle.text import aligned, number, parse_epsilon


@dataclass(frozen=True)
class SampledRobustAccuracy:
    """The robust accuracy of all points, from attacks on a few and one pass for each, and that of these few alone.

    Attributes:
        estimated: estimate for all points, by `brittle.analysis.estimate_robust_accuracy`.
        counted: robust accuracy of the attacked points, by `brittle.analysis.direct_robust_accuracy`.
        labelled: True if the data have labels; otherwise every prediction counts as right.
        norm: norm of the distance.
        passes: number of passes through the network.
        passes_for_all: number of passes that attacks on all points would take, at the mean of the attacked points.
    """

    estimated: EstimatedRobustAccuracy
    counted: RobustAccuracy
    labelled: bool
    norm: str
    passes: int
    passes_for_all: int

    def __str__(self) -> str:
        """Format the answers with their intervals, the threshold, and the passes."""
        estimated, counted = self.estimated, self.counted
        if estimated.reason is not None:
            return estimated.reason
        share = "robust accuracy" if self.labelled else "share of predictions that no other was found within epsilon of"
        rows = (
            ("rectified", _share(estimated.rectified, estimated.low, estimated.high)),
            ("Algorithm 1", f"{estimated.estimate:.1%}"),
            ("attacked points alone", _share(counted.robust_accuracy, counted.low, counted.high)),
        )
        threshold = f"a logit margin up to {number(estimated.threshold)}"
        fragile = f"{threshold}, which finds {estimated.tpr:.1%} of such attacked points"
        lines = [
            f"{share}, epsilon {number(estimated.epsilon)} in {self.norm}, {estimated.points:,} points, "
            f"{estimated.subset_points:,} of them attacked; [{100 * estimated.confidence:g}% intervals]:",
            *aligned(rows),
            "no attacked point was non-robust" if np.isnan(estimated.tpr) else f"not robust: {fragile}",
            f"{self.passes:,} passes; attacks on all points would take about {self.passes_for_all:,}",
        ]
        if estimated.subset_points == estimated.points:
            lines.append("all points were attacked, so nothing was saved: attack fewer, or give more points")
        if not estimated.low <= estimated.estimate <= estimated.high:
            lines.append("Algorithm 1 is outside the interval of the rectified answer, so it is biased here")
        if estimated.dropped:
            lines.append(f"left out, without a logit margin or a label: {estimated.dropped:,}")
        return "\n".join(lines)


def robust_accuracy(
    classifier: Classifier,
    data: Data,
    epsilon: float | str,
    attack: int = 500,
    *,
    norm: str = "linf",
    effort: str = "standard",
    seed: int = 0,
    confidence: float = CONFIDENCE,
    progress: Progress | bool | None = None,
    note: Callable[[str, str], None] = warn,
) -> SampledRobustAccuracy:
    """Estimate the robust accuracy of all points from their logit margins and the input margins of `attack` points.

    See `brittle.analysis.estimate_robust_accuracy`. The attacked points are drawn by `brittle.data.sample_points`.

    Validity: as for `estimate_robust_accuracy`. Attacks find upper bounds of distances, so the true robust accuracy is
    at most that after attacks on all points.

    References:
        Detecting brittle decisions for free: leveraging margin consistency in deep robust classifiers, Jonas Ngnawé et
        al., 2024, section 2.4, Algorithm 1, https://arxiv.org/abs/2406.18451

    Args:
        classifier: the trained model.
        data: as `brittle.score` takes them; without labels every prediction counts as right.
        epsilon: perturbation size in the units of the inputs, such as 0.5 or `"8/255"`.
        attack: number of points to attack; all if the data have no more.
        norm: norm of the distance, `linf`, `l2`, `l1` or `l0`.
        effort: effort of the attacks: `fast`, `standard` or `thorough`.
        seed: seed of the draw and of the attacks.
        confidence: confidence of the intervals.
        progress: as for `brittle.score`.
        note: called with the code and the sentence of every note; by default it warns.

    Raises:
        DataError: the data do not fit the declaration, or too many rows at the start get no number.
        ModelError: the model cannot be scored as it stands.
        ParameterError: a parameter is outside its range.

    Example:
        >>> import torch, brittle
        >>> network = torch.nn.Linear(2, 2)
        >>> network.load_state_dict({"weight": torch.eye(2), "bias": torch.zeros(2)})
        <All keys matched successfully>
        >>> x = torch.tensor([[0.9, 0.1], [0.1, 0.8], [0.45, 0.5], [0.3, 0.9]])  # margins 0.4, 0.35, 0.025, 0.3
        >>> classifier = brittle.Classifier(network, bounds=(0, 1))
        >>> brittle.robust_accuracy(classifier, (x, torch.tensor([0, 1, 1, 0])), 0.2, attack=4).estimated.estimate
        0.5
    """
    size = parse_epsilon(epsilon)
    scores = LogitMargin(), InputMargin(norm, effort=effort)
    job = make_job(classifier, data, scores, seed, None, confidence)
    attack_job = replace(job, points=sample_points(job.points, attack, seed), scores=scores[1:])
    attacked = _table(attack_job, progress, note=note)
    clean = _table(replace(job, scores=scores[:1]), progress, skip_doctor=True)
    labelled = clean.record.account.labelled > 0
    logit_margins = clean[scores[0]].value
    margin = attacked[scores[1]].value.reindex(logit_margins.index).to_numpy()
    correct = np.asarray(clean.points["correct"].to_pylist(), dtype=np.float64) if labelled else np.ones(len(margin))
    subset = ~np.isnan(margin)
    attack_passes = attacked.record.account.passes
    return SampledRobustAccuracy(
        estimate_robust_accuracy(margin, logit_margins.to_numpy(), correct, size, subset, confidence),
        direct_robust_accuracy(margin[subset], correct[subset], size, confidence),
        labelled,
        norm,
        clean.record.account.passes + attack_passes,
        round(attack_passes / len(attack_job.points) * len(job.points)),
    )


def _table(job: Job, progress: Progress | bool | None, **settings: Any) -> Table:
    """Run `job` in memory and return its table."""
    memory = Memory()
    with shown_progress(progress) as advance:
        execute(job, memory, progress=advance, **settings)
    return memory.table()


def _share(value: float, low: float, high: float) -> str:
    return f"{value:.1%} [{low:.1%}, {high:.1%}]"
