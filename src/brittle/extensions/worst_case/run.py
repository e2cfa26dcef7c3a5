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
    """What attacks on a few points and one pass for each say of all, beside what these few say alone.

    Attributes:
        estimated: of all points, by `brittle.analysis.estimate_robust_accuracy`.
        counted: of the attacked points alone, by `brittle.analysis.direct_robust_accuracy`.
        labelled: whether the data have labels; else every prediction counts as right.
        norm: of the distance.
        passes: passes through the network that it took.
        passes_for_all: passes that attacks on all points would take, at the mean of those on the few.
    """

    estimated: EstimatedRobustAccuracy
    counted: RobustAccuracy
    labelled: bool
    norm: str
    passes: int
    passes_for_all: int

    def __str__(self) -> str:
        """A few lines: the answers with their intervals, the threshold, what was spent."""
        found, alone = self.estimated, self.counted
        if found.reason is not None:
            return found.reason
        share = "robust accuracy" if self.labelled else "share of predictions that no other was found within epsilon of"
        rows = (
            ("rectified", _share(found.rectified, found.low, found.high)),
            ("Algorithm 1", f"{found.estimate:.1%}"),
            ("attacked points alone", _share(alone.robust_accuracy, alone.low, alone.high)),
        )
        fragile = f"a logit margin up to {number(found.threshold)}, which finds {found.tpr:.1%} of such attacked points"
        lines = [
            f"{share}, epsilon {number(found.epsilon)} in {self.norm}, {found.points:,} points, "
            f"{found.subset_points:,} of them attacked; [{100 * found.confidence:g}% intervals]:",
            *aligned(rows),
            "no attacked point was non-robust" if np.isnan(found.tpr) else f"not robust: {fragile}",
            f"{self.passes:,} passes; attacks on all points would take about {self.passes_for_all:,}",
        ]
        if found.subset_points == found.points:
            lines.append("all points were attacked, so nothing was saved: attack fewer, or give more points")
        if not found.low <= found.estimate <= found.high:
            lines.append("Algorithm 1 is outside the interval of the rectified answer, so it is biased here")
        if found.dropped:
            lines.append(f"left out, without a logit margin or a label: {found.dropped:,}")
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
    """Robust accuracy of all points: `attack` of them, drawn at random, get their input margin, all a logit margin.

    The formulas are those of `brittle.analysis.estimate_robust_accuracy`. The draw is `brittle.data.sample_points`.

    Validity: as there. Attacks find upper bounds of distances, so the true robust accuracy is at most what attacks on
    all points would leave.

    References:
        Detecting brittle decisions for free: leveraging margin consistency in deep robust classifiers, Jonas Ngnawé et
        al., 2024, section 2.4, Algorithm 1, https://arxiv.org/abs/2406.18451

    Args:
        classifier: the trained model.
        data: as `brittle.score` takes them; without labels every prediction counts as right.
        epsilon: perturbation size in the units of the inputs, such as 0.5 or `"8/255"`.
        attack: points that are attacked; all where there are no more.
        norm: of the distance, `linf`, `l2`, `l1` or `l0`.
        effort: of the attacks: `fast`, `standard` or `thorough`.
        seed: of the draw and of the attacks.
        confidence: of the intervals.
        progress: as of `brittle.score`.
        note: called with the code and the sentence of every note; by default it warns.

    Raises:
        DataError: the data do not fit the declaration, or too many of the first rows get no number.
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
    few = replace(job, points=sample_points(job.points, attack, seed), scores=scores[1:])
    found = _table(few, progress, note=note)
    whole = _table(replace(job, scores=scores[:1]), progress, skip_doctor=True)
    labelled = whole.record.account.labelled > 0
    every = whole[scores[0]].value
    margin = found[scores[1]].value.reindex(every.index).to_numpy()
    correct = np.asarray(whole.points["correct"].to_pylist(), dtype=np.float64) if labelled else np.ones(len(every))
    subset = ~np.isnan(margin)
    spent = found.record.account.passes
    return SampledRobustAccuracy(
        estimate_robust_accuracy(margin, every.to_numpy(), correct, size, subset, confidence),
        direct_robust_accuracy(margin[subset], correct[subset], size, confidence),
        labelled,
        norm,
        whole.record.account.passes + spent,
        round(spent / len(few.points) * len(job.points)),
    )


def _table(job: Job, progress: Progress | bool | None, **settings: Any) -> Table:
    """The table of a run of `job` that is written nowhere."""
    place = Memory()
    with shown_progress(progress) as advance:
        execute(job, place, progress=advance, **settings)
    return place.table()


def _share(value: float, low: float, high: float) -> str:
    return f"{value:.1%} [{low:.1%}, {high:.1%}]"
