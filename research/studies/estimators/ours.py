"""Findings without a paper: the library's own estimators, their intervals, and a comparison of the free scores."""

from __future__ import annotations

import numpy as np

from studies.estimators.entrants import LIBRARY
from studies.estimators.read import Results
from studies.markdown import decimals, percent
from studies.study import Agreement, Finding

SAMPLED = (
    "monte_carlo",
    "moments",
    "shrinkage",
    "shrinkage, all draws",
    "mmse",
    "mmse linear",
    "mmse_mvs",
)
"""Estimators of the library whose intervals cover sampling."""


def lost(results: Results) -> tuple[int, int]:
    """Networks and levels on which `moments` is further off than the count of the same copies, and all of them."""
    budget = results.budgets[-1]
    pair = (LIBRARY, "moments", budget), (LIBRARY, "monte_carlo", budget)
    return sum(len(results.worse(level, *pair)) for level in results.levels), len(results.levels) * len(results.names)


def moments_and_counting(results: Results) -> Finding:
    """`moments` beside counting with as many draws."""
    ratios = [results.one(level, LIBRARY, "moments", results.budgets[-1])["ratio"] for level in results.levels]
    worse, cases = lost(results)
    return Finding(
        "is the normal model of `moments` better than counting as many copies?",
        "",
        f"in the mean, with at most {decimals(max(ratios), 2)} of the error; but it loses in {worse} of {cases} cases",
        Agreement.UNSAID,
    )


def shares(results: Results, budget: int) -> tuple[float, float, int]:
    """Return the error of the default by that of counting with as many passes, over networks and levels of noise.

    The geometric mean, the worst, and in how many cases the default is further off.
    """
    ratios_by_level = [results.of_networks(level, LIBRARY, "shrinkage", budget, "ratio") for level in results.levels]
    ratios = np.concatenate([series.to_numpy() for series in ratios_by_level])
    return float(np.exp(np.log(ratios[ratios > 0]).mean())), float(np.nanmax(ratios)), int((ratios > 1).sum())


def over_budgets(results: Results) -> str:
    """Return the means and the worst cases of all budgets, from the least to the most."""
    means, worst, _ = zip(*(shares(results, budget) for budget in results.budgets), strict=True)
    return (
        f"{decimals(min(means), 2)} to {decimals(max(means), 2)} of the error of counting in the geometric mean, and "
        f"{decimals(min(worst), 2)} to {decimals(max(worst), 2)} of it in the worst case"
    )


def default_and_counting(results: Results) -> list[Finding]:
    """Judge the default beside counting as many copies, with each number of draws."""
    lines = []
    for budget in results.budgets:
        mean, worst, further = shares(results, budget)
        lines.append(Finding(
            "is the default, `shrinkage`, better than counting with as many passes?",
            "",
            f"it has {decimals(mean, 2)} of the error in the geometric mean and {decimals(worst, 2)} in the worst "
            f"case, and is further off in {further} cases",
            Agreement.UNSAID,
            on=f"at most {budget} draws",
        ))  # fmt: skip
    return lines


def intervals(results: Results) -> Finding:
    """Intervals that miss more often than they say."""
    frame = results.errors[(results.errors["origin"] == LIBRARY) & results.errors["estimator"].isin(SAMPLED)]
    counts = frame.groupby(["estimator", "network", "level"], sort=False)[["intervals", "missed"]].sum()
    parts = counts["missed"] / counts["intervals"]
    return Finding(
        "do intervals of 99% hold the truth?",
        "",
        f"{percent(float(counts['missed'].sum() / counts['intervals'].sum()), 1)} surely miss, "
        f"{percent(float(parts.max()), 1)} on the worst network",
        Agreement.UNSAID,
    )


def free_flips(results: Results) -> list[Finding]:
    """Judge the free score that finds what breaks under noise, at each level."""
    lines = []
    for level in results.levels:
        best = results.as_good(f"noise, {level}", results.of_one_pass)[0]
        auc = results.foretells(f"noise, {level}", best)["auc"]
        lines.append(Finding(
            "which score of one pass finds the points that noise breaks?",
            "",
            f"`{best}`, AUC {decimals(auc, 2)}",
            Agreement.UNSAID,
            on=f"{level} noise",
        ))  # fmt: skip
    return lines


def wrong_and_corrupted(results: Results) -> list[Finding]:
    """Judge the free score that finds mistakes, and the one that finds what a corruption changes."""
    lines = []
    for outcome, on in (("wrong", "wrong predictions"), ("corruption", "changed by corruption")):
        best = results.as_good(outcome)[0]
        auc, softmax = (decimals(results.foretells(outcome, name)["auc"], 2) for name in (best, "max_probability"))
        lines.append(Finding(
            "which score without noisy copies finds the others?",
            "",
            f"`{best}`, AUC {auc}; softmax has {softmax}",
            Agreement.UNSAID,
            on=on,
        ))  # fmt: skip
    return lines
