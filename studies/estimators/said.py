"""What the study found, a line for each thing, the papers' first."""

from __future__ import annotations

from studies.estimators.ours import (
    default_and_counting,
    free_flips,
    intervals,
    moments_and_counting,
    wrong_and_corrupted,
)
from studies.estimators.papers import (
    best_estimators,
    convergence,
    counting_is_slow,
    laplacian_flips,
    margins_find,
    sigmoid,
    small_noise,
    softmax_order,
    softmax_value,
)
from studies.estimators.read import Results
from studies.study import Finding, Tables

LINES = (
    best_estimators,
    small_noise,
    convergence,
    counting_is_slow,
    sigmoid,
    softmax_value,
    softmax_order,
    margins_find,
    laplacian_flips,
    moments_and_counting,
    default_and_counting,
    intervals,
    free_flips,
    wrong_and_corrupted,
)


def findings(tables: Tables) -> list[Finding]:
    """Every finding, from the results."""
    results = Results(tables)
    return [line(results) for line in LINES]
