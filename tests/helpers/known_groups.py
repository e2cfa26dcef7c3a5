"""Runs with points of known state (hold, break, undecided) and correctness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from helpers.tables import make_table, with_rows, with_scores
from scipy.stats import beta

from brittle.estimate import Parameter, parameters_json
from brittle.store.schemas import POINTS
from brittle.store.table import Table

HOLD, BREAK, OPEN = (0.0, 0.05), (0.2, 0.4), (0.05, 0.2)
"""Intervals of the flip probability at the limit 0.9."""


def made(
    ends: Sequence[tuple[float, float] | None],
    correct: Sequence[bool | None] | None = None,
    classes: Sequence[int] | None = None,
    evidence: str = "counted",
) -> Table:
    """Return a run of one score whose points have these intervals, or no number; `correct` None is no label."""
    run = make_table(points=len(ends), scores=("monte_carlo",), sigmas=(0.1,), budgets=(400,))
    scores = run.long()
    scores["status"] = ["nonfinite_logits" if interval is None else "ok" for interval in ends]
    for name, pick in (("low", min), ("high", max), ("value", lambda interval: sum(interval) / 2)):
        scores[name] = [float("nan") if interval is None else pick(interval) for interval in ends]
    scores["evidence"] = evidence
    points = run.points.to_pandas()
    labels = list(classes or [0] * len(ends))
    truths = list(correct) if correct is not None else [True] * len(ends)
    points["label"] = pa.array(
        [None if truth is None else key for truth, key in zip(truths, labels, strict=True)]
    ).to_pandas()
    points["predicted"] = [
        key if truth in (None, True) else (key + 1) % 10 for truth, key in zip(truths, labels, strict=True)
    ]
    points["correct"] = truths
    return replace(with_rows(run, scores), points=pa.Table.from_pandas(points, schema=POINTS, preserve_index=False))


def counted(copies: Sequence[int], flips: Sequence[int]) -> Table:
    """Return a run with the Clopper-Pearson intervals of so many flips among so many copies."""
    pairs = [*zip(copies, flips, strict=True)]
    low = [float(beta.ppf(0.005, k, n - k + 1)) if k else 0.0 for n, k in pairs]
    high = [float(beta.ppf(0.995, k + 1, n - k)) if k < n else 1.0 for n, k in pairs]
    run = made([*zip(low, high, strict=True)])
    (score,) = run.record.scores
    alike: dict[str, Parameter] = {"draws": max(copies), "sigma": 0.1}
    parameters = alike if len(set(copies)) == 1 else {"limit": 0.9, **alike}
    changed = {"counted_low": low, "counted_high": high, "passes": [n + 1 for n in copies]}
    frame = run.long().assign(parameters=parameters_json(parameters), **changed)
    return with_scores(with_rows(run, frame), [replace(score, parameters=parameters)])
