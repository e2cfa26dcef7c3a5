"""Findings of the study, a line each, the papers' first."""

from __future__ import annotations

from studies.estimators.ours import (
    default_and_counting,
    free_flips,
    intervals,
    moments_and_counting,
    wrong_and_corrupted,
)  # fmt: skip
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
)  # fmt: skip
from studies.estimators.read import Results
from studies.study import Finding, Tables


def findings(tables: Tables) -> list[Finding]:
    """Return every finding, from the results."""
    results = Results(tables)
    return [
        *best_estimators(results), small_noise(results), convergence(results), counting_is_slow(results),
        sigmoid(results), softmax_value(results), softmax_order(results), laplacian_flips(results),
        margins_find(results), moments_and_counting(results), *default_and_counting(results),
        intervals(results),
        *free_flips(results), *wrong_and_corrupted(results),
    ]  # fmt: skip
