"""Claims of the papers on estimators and free scores, with findings.

Figures of the papers stand in the claims; every other number is read from the results.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from studies.agreement import CLOSELY, CONVERGED, MILD, judged
from studies.counting import equal_copies
from studies.estimators.entrants import PRINTED
from studies.estimators.read import Results
from studies.markdown import decimals, percent
from studies.study import Agreement, Finding

NEAR = 1.25
"""Ratio of two errors up to which the sigmoid approximates the integral well."""


def ends(numbers: Sequence[float], places: int) -> str:
    """Return the least and the most."""
    return f"{decimals(min(numbers), places)} to {decimals(max(numbers), places)}"


def _errors(results: Results, name: str, budget: int = 0) -> list[float]:
    """Return the errors of an estimator as printed, at each level."""
    return [results.one(level, PRINTED, name, budget)["error"] for level in results.levels]


def best_estimators(results: Results) -> list[Finding]:
    """Judge the order of the papers' estimators, at each level."""
    budget, lines = results.budgets[-1], []
    names = (("mmse", budget), ("mmse_mvs", budget), ("taylor", 0), ("taylor_mvs", 0), ("softmax", 0))
    for place, level in enumerate(results.levels):
        mmse, mmse_mvs, taylor, taylor_mvs, softmax = (_errors(results, *name)[place] for name in names)
        tangent, sampled = (taylor, taylor_mvs), max(mmse, mmse_mvs)
        holds = [sampled < min(tangent), min(tangent) <= CLOSELY * sampled, max(tangent) < softmax]
        lines.append(Finding(
            "MMSE and its sigmoid form are the best estimators, Taylor's follow closely, softmax trails",
            "Han, UAI, 4.1, figure 2a",
            f"mean error of MMSE {decimals(mmse, 3)}, of Taylor {decimals(taylor, 3)}, of softmax "
            f"{decimals(softmax, 3)}",
            judged(holds),
            on=f"{level} noise",
        ))  # fmt: skip
    return lines


def small_noise(results: Results) -> Finding:
    """Errors by the size of the noise."""
    grows = []
    for name in (("taylor", 0), ("mmse", results.budgets[-1])):
        of = [results.of_networks(level, PRINTED, *name) for level in results.levels]
        grows += [bool(np.all(np.diff([errors[network] for errors in of]) > 0)) for network in results.names]
    return Finding(
        "the smaller sigma, the more accurate Taylor and MMSE",
        "Han, UAI, 4.1, figure 2a",
        f"the error grows with every step of the noise in {sum(grows)} of {len(grows)} cases",
        judged(grows),
    )


def convergence(results: Results) -> Finding:
    """MMSE with the fewest draws beside MMSE with the most."""
    fewest, largest = results.budgets[0], results.budgets[-1]
    pairs = zip(_errors(results, "mmse", fewest), _errors(results, "mmse", largest), strict=True)
    ratios = [first_error / last_error for first_error, last_error in pairs]
    return Finding(
        "MMSE has converged with about 5 draws",
        "Han, UAI, 3, 4.1; workshop, 4.1",
        f"with so few its error is {ends(ratios, 1)} times that with {largest}",
        judged([ratio <= CONVERGED for ratio in ratios]),
    )


def counting_is_slow(results: Results) -> Finding:
    """How many draws of plain counting have the error of MMSE."""
    rows = [results.one(level, PRINTED, "mmse", results.budgets[0]) for level in results.levels]
    references = [results.reference(level) for level in results.levels]
    pairs = zip(rows, references, strict=True)
    copies = [equal_copies(row["ratio"], row["passes"] - 1, reference) for row, reference in pairs]
    return Finding(
        "counting needs about 10,000 draws, MMSE 5",
        "Han, UAI, 4.2, table 1; workshop, 4.2, table 1",
        f"MMSE with so few takes {decimals(rows[0]['passes'], 0)} passes and is as far off as {ends(copies, 0)} "
        f"counted "
        f"copies",
        judged([count > row["passes"] for count, row in zip(copies, rows, strict=True)]),
    )


def sigmoid(results: Results) -> Finding:
    """Judge the sigmoid in the place of the normal integral."""
    ratios = []
    for name, budget in (("taylor", 0), ("mmse", results.budgets[-1])):
        pairs = zip(_errors(results, f"{name}_mvs", budget), _errors(results, name, budget), strict=True)
        ratios.append([with_sigmoid / with_integral for with_sigmoid, with_integral in pairs])
    return Finding(
        "the multivariate sigmoid approximates the normal integral well",
        "Han, UAI, 4.1, figure 10; workshop, figure 3",
        f"with it MMSE's error is {ends(ratios[1], 1)} times as large",
        judged([ratio <= NEAR for of_both in ratios for ratio in of_both]),
    )


def softmax_value(results: Results) -> Finding:
    """Judge the value of softmax."""
    softmax_errors = _errors(results, "softmax")
    sampled = [_errors(results, name, results.budgets[-1]) for name in ("mmse", "mmse_mvs")]
    worst = np.max([_errors(results, "taylor"), _errors(results, "taylor_mvs"), *sampled], axis=0)
    return Finding(
        "softmax is a poor estimator of robustness, behind all others",
        "Han, UAI, 3.2.3, 4.1",
        f"it is off by {ends(softmax_errors, 2)}",
        judged([bool(error > bound) for error, bound in zip(softmax_errors, worst, strict=True)]),
    )


def softmax_order(results: Results) -> Finding:
    """Judge the order that softmax gives."""
    ranks = [results.one(level, PRINTED, "softmax", 0)["spearman"] for level in results.levels]
    return Finding(
        "softmax and robustness are not strongly correlated",
        "Han, workshop, 4.3, figures 5 to 7",
        f"Spearman's correlation is {ends(ranks, 2)}, in the mean over networks",
        judged([rank < MILD for rank in ranks]),
    )


def laplacian_flips(results: Results) -> Finding:
    """Confident points by their Laplacian."""
    frame = results.confident
    frame = frame[(frame["lowest"] > 0) | (frame["highest"] > 0)]
    more = frame["lowest"] > frame["highest"]
    return Finding(
        "of confident predictions those with the lowest Laplacian flip far more often: 59.9% against 2.0% on CIFAR-10",
        "Yang, 4.2, table 1",
        f"they flip more on {int(more.sum())} of {len(more)} networks where any flips",
        judged([*map(bool, more)]),
        on="middle noise",
    )


def margins_find(results: Results) -> Finding:
    """Free margins and the nearest counterexample."""
    return Finding(
        "does the logit margin find the points with a near counterexample?",
        "",
        f"AUC {decimals(results.foretells('adversarial', 'logit_margin')['auc'], 2)} over networks of every training; "
        f"the margin consistency study says on which it does",
        Agreement.UNSAID,
    )


def flips_counted(results: Results) -> str:
    """Return the share of copies that flip at each level, in the mean."""
    shares = results.networks.groupby("level", sort=False)["flips"].mean()
    return ", ".join(percent(float(share), 0) for share in shares)
