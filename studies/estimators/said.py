"""What the papers say of estimators and free scores, and what the results say of it.

Figures of the papers stand in the claims; every other number is read from the results.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from studies.estimators.entrants import LIBRARY, PRINTED
from studies.estimators.read import Results
from studies.markdown import between, decimals, percent
from studies.study import Agreement, Finding, Tables

UAI, WORKSHOP, MARGINS, LAPLACE = "Han, UAI", "Han, workshop", "Ngnawé", "Yang"
NEAR = 1.25
"""Errors of less than this ratio are called close."""

GOOD_AUC = 0.9
"""From which a free score is said to find points."""

MILD = 0.7
"""Rank correlation below which two quantities are only mildly related."""

SAMPLED = ("monte_carlo", "moments", "shrinkage", "shrinkage, all draws", "mmse", "mmse linear", "mmse_mvs", "mmse_margin")
"""Estimators of the library whose intervals cover sampling."""

NOMINAL = 0.01
"""Intervals of 99% that may miss."""


def judged(holds: Sequence[bool]) -> Agreement:
    """Whether something that a paper says holds everywhere, somewhere or nowhere."""
    return Agreement.AGREES if all(holds) else Agreement.IN_PART if any(holds) else Agreement.DIFFERS


def findings(tables: Tables) -> list[Finding]:
    """One line for each thing that is said."""
    results = Results(tables)
    return [say(results) for say in (
        best_estimators, small_noise, convergence, counting_is_slow, sigmoid, softmax_value, softmax_order,
        margins_find, laplacian_flips, moments_and_counting, default_and_counting, intervals, free_flips, wrong,
    )]  # fmt: skip


def _printed(results: Results, name: str, budget: int) -> list[float]:
    return [results.one(level, PRINTED, name, budget)["error"] for level in results.levels]


def _by_level(results: Results, numbers: Sequence[str]) -> str:
    """Numbers of the levels in their order."""
    return " / ".join(numbers) + f" at {' / '.join(results.levels)} noise"


def best_estimators(results: Results) -> Finding:
    """The order of the papers' estimators."""
    most = results.budgets[-1]
    errors = {name: _printed(results, name, budget) for name, budget in (
        ("mmse", most), ("mmse_mvs", most), ("taylor", 0), ("taylor_mvs", 0), ("softmax", 0),
    )}  # fmt: skip
    holds = []
    for place in range(len(results.levels)):
        averaged = max(errors["mmse"][place], errors["mmse_mvs"][place])
        tangent = errors["taylor"][place], errors["taylor_mvs"][place]
        holds += [averaged < min(tangent), max(tangent) < errors["softmax"][place]]
    told = "; ".join(f"{name} {_by_level(results, [decimals(one, 3) for one in found])}" if name == "mmse" else
                     f"{name} {' / '.join(decimals(one, 3) for one in found)}" for name, found in errors.items())
    return Finding(
        "MMSE and its sigmoid form are the best estimators, Taylor and its sigmoid form follow closely, softmax trails",
        f"{UAI}, section 4.1, figure 2a",
        f"mean absolute error as printed, MMSE with {most} draws: {told}",
        judged(holds),
        "the order of MMSE, Taylor and softmax holds in the mean; the sigmoid form of MMSE puts far too much into the "
        "tails wherever points are safe, and how far Taylor falls behind depends on how the network bends",
    )


def small_noise(results: Results) -> Finding:
    """Errors by the size of the noise."""
    most, names = results.budgets[-1], (("taylor", 0), ("mmse", results.budgets[-1]))
    found = {name: _printed(results, name, budget) for name, budget in names}
    holds = [bool(np.all(np.diff(errors) > 0)) for errors in found.values()]
    each = [
        float(np.mean([np.all(np.diff([results.of_networks(level, PRINTED, name, budget)[one] for level in
                                       results.levels]) > 0) for one in results.names]))
        for name, budget in names
    ]  # fmt: skip
    return Finding(
        "the smaller sigma, the more accurate Taylor and MMSE",
        f"{UAI}, section 4.1, figure 2a",
        f"Taylor {_by_level(results, [decimals(one, 3) for one in found['taylor']])}, MMSE with {most} draws "
        f"{' / '.join(decimals(one, 3) for one in found['mmse'])}; on {percent(each[0])} and {percent(each[1])} of the "
        f"networks the error grows at every step",
        judged(holds),
        "at small noise nearly every point has a flip probability near zero, which any estimator gets right",
    )


def convergence(results: Results) -> Finding:
    """MMSE with the fewest draws beside MMSE with the most."""
    few, most = results.budgets[0], results.budgets[-1]
    first, last = _printed(results, "mmse", few), _printed(results, "mmse", most)
    ratios = [one / other for one, other in zip(first, last, strict=True)]
    return Finding(
        "MMSE has converged with about 5 draws (5 to 10 in the workshop paper)",
        f"{UAI}, definition 3 and section 4.2; {WORKSHOP}, section 3",
        f"with {few} draws the error is {_by_level(results, [f'{decimals(one, 1)} times' for one in ratios])} "
        f"that with {most} draws ({' / '.join(decimals(one, 3) for one in first)} against "
        f"{' / '.join(decimals(one, 3) for one in last)})",
        judged([one <= NEAR for one in ratios]),
        "over few independent draws the mean of the margins carries noise of the same size as the bias that stays; "
        "pairs of opposite draws, as the library takes them, remove most of it",
    )


def counting_is_slow(results: Results) -> Finding:
    """How many draws of plain counting have the error of MMSE with few."""
    few, most = results.budgets[0], results.budgets[-1]
    rows = [results.one(level, PRINTED, "mmse", few) for level in results.levels]
    equal = [row["passes"] / row["ratio"] ** 2 for row in rows]
    last = [row["passes"] / row["ratio"] ** 2 for row in
            (results.one(level, PRINTED, "mmse", most) for level in results.levels)]  # fmt: skip
    return Finding(
        "counting needs about 10,000 draws, MMSE 5 and Taylor none: 17 and 35 times faster (by its own table of times 148 "
        "and 759 times, and a draw of MMSE takes as long as 13 counted copies)",
        f"{UAI}, section 4.2, table 1; {WORKSHOP}, section 4.2",
        f"the error of MMSE with {few} draws ({decimals(rows[0]['passes'], 0)} passes) is that of counting "
        f"{_by_level(results, [decimals(one, 0) for one in equal])} copies, of MMSE with {most} draws "
        f"{' / '.join(decimals(one, 0) for one in last)}",
        judged([one > row["passes"] for one, row in zip(equal, rows, strict=True)]),
        "the paper counts until the count no longer moves, and sets that beside estimators that are off by far more; at "
        "equal error the comparison is with few copies",
    )


def sigmoid(results: Results) -> Finding:
    """The sigmoid in the place of the normal integral."""
    most, holds, told = results.budgets[-1], [], []
    for name, budget in (("taylor", 0), ("mmse", most)):
        ratios = [one / other for one, other in zip(_printed(results, f"{name}_mvs", budget),
                                                    _printed(results, name, budget), strict=True)]  # fmt: skip
        holds += [one <= NEAR for one in ratios]
        told.append(f"{name} {' / '.join(decimals(one, 1) for one in ratios)}")
    bias = [results.one(level, PRINTED, "mmse_mvs", most)["bias"] for level in results.levels]
    return Finding(
        "the multivariate sigmoid approximates the normal integral well",
        f"{UAI}, section 4.1, figure 10; {WORKSHOP}, figure 3",
        f"error with the sigmoid as a multiple of that with the integral: {'; '.join(told)} at "
        f"{' / '.join(results.levels)} noise; its bias in MMSE is {' / '.join(decimals(one, 3) for one in bias)}",
        judged(holds),
        "the logistic curve falls off as an exponential where the normal one falls off as its square, and the product "
        "over classes adds up; it keeps the order of points, which is what the paper's correlation shows",
    )


def softmax_value(results: Results) -> Finding:
    """The value of softmax."""
    rows = [results.one(level, PRINTED, "softmax", 0) for level in results.levels]
    tangent = [results.one(level, PRINTED, "taylor", 0)["error"] for level in results.levels]
    return Finding(
        "softmax is a poor estimator of robustness",
        f"{UAI}, sections 3.2.3 and 4.1",
        f"mean absolute error {_by_level(results, [between(*row[['error', 'error_low', 'error_high']], 3) for row in rows])}"
        f", Taylor {' / '.join(decimals(one, 3) for one in tangent)}",
        judged([row["error"] > one * NEAR for row, one in zip(rows, tangent, strict=True)]),
        "it knows nothing of the noise, so it is one number for every sigma",
    )


def softmax_order(results: Results) -> Finding:
    """The order that softmax gives."""
    rows = [results.one(level, PRINTED, "softmax", 0) for level in results.levels]
    others = [results.one(level, PRINTED, "taylor", 0)["spearman"] for level in results.levels]
    return Finding(
        "softmax and robustness are not strongly correlated, mildly even for robust networks",
        f"{WORKSHOP}, section 4.3, figures 5 to 7",
        "Spearman correlation with the truth "
        f"{_by_level(results, [between(*row[['spearman', 'spearman_low', 'spearman_high']], 2) for row in rows])}, of "
        f"Taylor {' / '.join(decimals(one, 2) for one in others)}",
        judged([row["spearman"] < MILD for row in rows]),
        "the order of points at small noise is that of their distance to a boundary, which any margin knows",
    )


def margins_find(results: Results) -> Finding:
    """Free margins and the nearest counterexample."""
    row = results.foretells("adversarial", "logit_margin")
    frame = results.free
    each = frame[(frame["outcome"] == "adversarial") & (frame["score"] == "logit_margin")]
    best = results.best_score("adversarial")
    return Finding(
        "the logit margin of adversarially trained networks orders points as their input margins do (Kendall 0.68 to "
        "0.85 for all but two of 33 networks) and finds the weak ones (AUROC 93% to 98%)",
        f"{MARGINS}, table 1",
        f"Kendall {between(*row[['kendall', 'kendall_low', 'kendall_high']], 2)}, AUC "
        f"{between(*row[['auc', 'auc_low', 'auc_high']], 2)}; between networks Kendall from "
        f"{decimals(each['kendall'].min(), 2)} to {decimals(each['kendall'].max(), 2)}; the best is `{best['score']}` with "
        f"AUC {decimals(best['auc'], 2)}",
        judged([one >= GOOD_AUC for one in each["auc"].dropna()]),
        "these networks are of every kind, most without adversarial training, the norm is another, and weak points are "
        "the half with the smaller margins, not those below one radius",
    )


def laplacian_flips(results: Results) -> Finding:
    """Confident points by their Laplacian."""
    frame = results.confident
    lower = frame["lowest"] > frame["highest"]
    return Finding(
        "of confident predictions those with the lowest Laplacian flip far more often than those with the highest (59.9% "
        "against 2.0% on CIFAR-10 at radius 2)",
        f"{LAPLACE}, section 4.2, table 1",
        f"flips at middle noise, lowest quarter against highest: {percent(frame['lowest'].mean(), 1)} against "
        f"{percent(frame['highest'].mean(), 1)}; more on {int(lower.sum())} of {len(frame)} networks with enough confident "
        f"points",
        judged([*lower]),
        "most of these networks are piecewise linear, where the Laplacian at a point is blind to the kinks around it",
    )


def moments_and_counting(results: Results) -> Finding:
    """`moments` beside counting with as many draws."""
    few, most = results.budgets[min(2, len(results.budgets) - 1)], results.budgets[-1]
    told, losses = [], []
    for budget in (few, most):
        ratios = [results.one(level, LIBRARY, "moments", budget)["ratio"] for level in results.levels]
        lost = sum(len(results.worse(level, (LIBRARY, "moments", budget), (LIBRARY, "monte_carlo", budget)))
                   for level in results.levels)  # fmt: skip
        told.append(f"{' / '.join(decimals(one, 2) for one in ratios)} with {budget} draws")
        losses.append(f"{lost}")
    return Finding(
        "is the normal model of `moments` better than counting the same copies?",
        "",
        f"its error is {told[0]} and {told[1]} of that of counting, at {' / '.join(results.levels)} noise; of "
        f"{len(results.levels) * len(results.names)} pairs of network and noise it loses {losses[0]} and {losses[1]}",
        Agreement.UNSAID,
        "where margins are not normal the model has a bias, which more draws do not remove",
    )


def default_and_counting(results: Results) -> Finding:
    """The default beside counting as many copies."""
    told = []
    for budget in (results.budgets[min(2, len(results.budgets) - 1)], results.budgets[-1]):
        frame = results.errors
        chosen = (frame["origin"] == LIBRARY) & (frame["estimator"] == "shrinkage") & (frame["budget"] == budget)
        ratios = frame[chosen]["ratio"].dropna()
        mean = float(np.exp(np.log(ratios[ratios > 0]).mean()))
        told.append(f"{decimals(mean, 2)} (worst {decimals(ratios.max(), 2)}) with at most {budget} draws")
    return Finding(
        "is the default, `shrinkage`, better than counting with as many passes?",
        "",
        f"its error is {' and '.join(told)} of that of counting, over all networks and levels",
        Agreement.UNSAID,
        "it goes over to the count where the copies speak against the model, and draws more where it matters",
    )


def intervals(results: Results) -> Finding:
    """Intervals that miss more often than they say."""
    frame = results.estimators
    chosen = frame[(frame["origin"] == LIBRARY) & frame["estimator"].isin(SAMPLED)]
    total = chosen.groupby("estimator", sort=False)[["intervals", "missed"]].sum()
    shares = (total["missed"] / total["intervals"]).sort_values(ascending=False)
    above = [f"`{name}` {percent(share, 1)}" for name, share in shares.items() if share > NOMINAL]
    rest = max((share for share in shares if share <= NOMINAL), default=np.nan)
    return Finding(
        "do intervals of 99% hold the truth?",
        "",
        (f"more than 1 in 100 surely miss: {', '.join(above)}; " if above else "") + f"the others at most {percent(rest, 1)}",
        Agreement.UNSAID,
        "an interval by a model of the margins does not cover that the model is wrong where no copy shows it",
    )


def free_flips(results: Results) -> Finding:
    """The free score that finds what breaks under noise."""
    told = []
    for level in results.levels:
        best = results.best_score(f"noise, {level}", [name for name in set(results.scores["score"])
                                                      if results.foretells(f"noise, {level}", name)["passes"] == 1])
        told.append(f"`{best['score']}` {decimals(best['auc'], 2)}")
    tangent = [decimals(results.foretells(f"noise, {level}", "taylor")["auc"], 2) for level in results.levels]
    return Finding(
        "which score of one pass finds the points that noise breaks?",
        "",
        f"AUC {_by_level(results, told)}; Taylor, with its gradients, {' / '.join(tangent)}",
        Agreement.UNSAID,
        "the differences between margins and probabilities are smaller than those between networks",
    )


def wrong(results: Results) -> Finding:
    """The free score that finds mistakes."""
    best, other = results.best_score("wrong"), results.foretells("wrong", "max_probability")
    away = results.best_score("corruption")
    return Finding(
        "which free score finds wrong predictions, and which those that a corruption changes?",
        "",
        f"wrong: `{best['score']}` {between(*best[['auc', 'auc_low', 'auc_high']], 2)}, softmax "
        f"{decimals(other['auc'], 2)}; corruption: `{away['score']}` "
        f"{between(*away[['auc', 'auc_low', 'auc_high']], 2)}",
        Agreement.UNSAID,
        "what makes a prediction wrong is not what makes it break: both grow where the network is in doubt",
    )
