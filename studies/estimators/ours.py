"""What no paper says: the library's own estimators, their intervals, and the free scores beside one another."""

from __future__ import annotations

import numpy as np

from studies.estimators.entrants import LIBRARY
from studies.estimators.read import Results, named
from studies.markdown import decimals, interval, percent, slashed
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

NOMINAL = 0.01
"""Share of the intervals that may miss."""


def moments_and_counting(results: Results) -> Finding:
    """`moments` beside counting with as many draws."""
    told, lost = [], []
    for budget in (results.middle, results.budgets[-1]):
        ratios = [results.one(level, LIBRARY, "moments", budget)["ratio"] for level in results.levels]
        told.append(f"{slashed(ratios, 2)} with {budget} draws")
        pair = (LIBRARY, "moments", budget), (LIBRARY, "monte_carlo", budget)
        lost.append(f"{sum(len(results.worse(level, *pair)) for level in results.levels)}")
    return Finding(
        "is the normal model of `moments` better than counting as many copies?",
        "",
        f"at {results.all_levels} noise its error divided by that of independent counting is {told[0]} and {told[1]}; "
        f"beside the count of the same copies it loses {lost[0]} and {lost[1]} of "
        f"{len(results.levels) * len(results.names)} pairs of network and noise",
        Agreement.UNSAID,
        "where margins are not normal the model has a bias, which more draws do not remove",
    )


def default_and_counting(results: Results) -> Finding:
    """The default beside counting as many copies."""
    told = []
    for budget in (results.middle, results.budgets[-1]):
        each = [results.of_networks(level, LIBRARY, "shrinkage", budget, "ratio") for level in results.levels]
        ratios = np.concatenate([one.to_numpy() for one in each])
        mean = float(np.exp(np.log(ratios[ratios > 0]).mean()))
        told.append(f"{decimals(mean, 2)} (worst {decimals(float(np.nanmax(ratios)), 2)}) with at most {budget} draws")
    return Finding(
        "is the default, `shrinkage`, better than counting with as many passes?",
        "",
        f"over all networks and levels its error divided by that of independent counting is {' and '.join(told)}",
        Agreement.UNSAID,
        "it goes over to the count where the copies speak against the model, and draws more where it matters",
    )


def intervals(results: Results) -> Finding:
    """Intervals that miss more often than they say."""
    frame, columns = results.estimators, ["intervals", "missed", "outside"]
    chosen = frame[(frame["origin"] == LIBRARY) & frame["estimator"].isin(SAMPLED)]
    total = chosen.groupby("estimator", sort=False)[columns].sum()
    shares = (total["missed"] / total["intervals"]).sort_values(ascending=False)
    outside = (total["outside"] / total["intervals"]).sort_values(ascending=False)
    above = [f"`{name}` {percent(share, 1)}" for name, share in shares.items() if share > NOMINAL]
    frame = results.errors[(results.errors["origin"] == LIBRARY) & results.errors["estimator"].isin(SAMPLED)]
    each = frame.groupby(["estimator", "network", "level"], sort=False)[columns].sum()
    parts = (each["missed"] / each["intervals"]).sort_values(ascending=False)
    name, network, level = parts.index[0]
    rest = max((share for share in shares if share <= NOMINAL), default=np.nan)
    return Finding(
        "do intervals of 99% hold the truth?",
        "",
        (f"more than {percent(NOMINAL)} surely miss of {', '.join(above)}; " if above else "")
        + f"of {'the others' if above else 'all that cover sampling'} at most {percent(rest, 1)} surely miss; the "
        f"worst is `{name}` on `{network}` at {level} noise, {percent(parts.iloc[0], 1)}; the count itself, which is "
        f"not the truth, lies outside of at most {percent(float(outside.iloc[0]), 1)} (`{outside.index[0]}`)",
        Agreement.UNSAID,
        "those that surely miss are too few, as a count leaves doubt, and those without the count too many; the share "
        "that misses lies between; an interval by a model of the margins does not cover that the model is wrong where "
        "no copy shows it",
    )


def free_flips(results: Results) -> Finding:
    """The free score that finds what breaks under noise."""
    told, tangent = [], []
    for level in results.levels:
        best = results.as_good(f"noise, {level}", results.of_one_pass)
        auc = results.foretells(f"noise, {level}", best[0])["auc"]
        told.append(f"{level}: {named(best)}, AUC {decimals(auc, 2)}")
        tangent.append(results.foretells(f"noise, {level}", "taylor")["auc"])
    return Finding(
        "which score of one pass finds the points that noise breaks?",
        "",
        f"{'; '.join(told)}; Taylor, with its gradients, {slashed(tangent, 2)}",
        Agreement.UNSAID,
        "scores of one pass differ less from one another than networks do",
    )


def wrong_and_corrupted(results: Results) -> Finding:
    """The free score that finds mistakes, and the one that finds what a corruption changes."""
    parts = []
    for outcome in ("wrong", "corruption"):
        best = results.as_good(outcome)
        auc = interval(results.foretells(outcome, best[0]), "auc", 2)
        softmax = decimals(results.foretells(outcome, "max_probability")["auc"], 2)
        parts.append(f"{outcome}: {named(best)}, AUC {auc}, softmax {softmax}")
    return Finding(
        "which score without noisy copies finds wrong predictions, and which those that a corruption changes?",
        "",
        "; ".join(parts),
        Agreement.UNSAID,
        "both are more frequent where the network is in doubt, which all of these scores show",
    )
