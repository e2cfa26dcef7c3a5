"""What the papers say of estimators and free scores, beside what is found.

Figures of the papers stand in the claims; every other number is read from the results.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from studies.agreement import CLOSELY, CONVERGED, MILD, judged
from studies.counting import equal_copies
from studies.estimators.entrants import PRINTED
from studies.estimators.read import Results, named
from studies.markdown import decimals, interval, percent, slashed
from studies.study import Agreement, Finding

UAI, WORKSHOP, MARGINS, LAPLACE = "Han, UAI", "Han, workshop", "Ngnawé et al.", "Yang"

NEAR = 1.25
"""Ratio of two errors up to which the sigmoid approximates the integral well."""


def _errors(results: Results, name: str, budget: int = 0) -> list[float]:
    """Of an estimator as printed, at each level."""
    return [results.one(level, PRINTED, name, budget)["error"] for level in results.levels]


def best_estimators(results: Results) -> Finding:
    """The order of the papers' estimators."""
    most, holds = results.budgets[-1], []
    mmse, mmse_mvs = (_errors(results, name, most) for name in ("mmse", "mmse_mvs"))
    taylor, taylor_mvs, softmax = (_errors(results, name) for name in ("taylor", "taylor_mvs", "softmax"))
    for place in range(len(results.levels)):
        tangent = taylor[place], taylor_mvs[place]
        sampled = max(mmse[place], mmse_mvs[place])
        holds += [sampled < min(tangent), min(tangent) <= CLOSELY * sampled, max(tangent) < softmax[place]]
    return Finding(
        "MMSE and its sigmoid form are the best estimators, Taylor and its sigmoid form follow closely, softmax trails",
        f"{UAI}, section 4.1, figure 2a",
        f"mean absolute error at {results.all_levels} noise: MMSE with {most} draws {slashed(mmse, 3)}, its sigmoid "
        f"form {slashed(mmse_mvs, 3)}; Taylor {slashed(taylor, 3)}, its sigmoid form {slashed(taylor_mvs, 3)}; softmax "
        f"{slashed(softmax, 3)}",
        judged(holds),
        "MMSE sees as far as the noise reaches; its sigmoid form is too low wherever points are safe, and Taylor "
        "falls as far behind as the network bends within the noise; the verdict asks at each level whether both of "
        "MMSE's are nearer than both of Taylor's, the nearer of Taylor's is off by at most "
        f"{decimals(CLOSELY, 0)} times as much, and softmax is the farthest",
    )


def small_noise(results: Results) -> Finding:
    """Errors by the size of the noise."""
    most = results.budgets[-1]
    names = (("taylor", 0), ("mmse", most))
    found = [_errors(results, *name) for name in names]
    grows = []
    for name in names:
        of = [results.of_networks(level, PRINTED, *name) for level in results.levels]
        grows.append(float(np.mean([np.all(np.diff([one[network] for one in of]) > 0) for network in results.names])))
    return Finding(
        "the smaller sigma, the more accurate Taylor and MMSE",
        f"{UAI}, section 4.1, figure 2a",
        f"at {results.all_levels} noise Taylor is off by {slashed(found[0], 3)}, MMSE with {most} draws by "
        f"{slashed(found[1], 3)}; the error grows at every step on {percent(grows[0])} and {percent(grows[1])} of the "
        f"networks",
        judged([bool(np.all(np.diff(errors) > 0)) for errors in found]),
        "at small noise nearly every point has a flip probability near zero, which is easy to get right",
    )


def convergence(results: Results) -> Finding:
    """MMSE with the fewest draws beside MMSE with the most."""
    few, most = results.budgets[0], results.budgets[-1]
    first, last = _errors(results, "mmse", few), _errors(results, "mmse", most)
    ratios = [one / other for one, other in zip(first, last, strict=True)]
    return Finding(
        "MMSE has converged with about 5 draws (5 to 10 in the workshop paper; where they measure errors they take "
        "500 and 1,000)",
        f"{UAI}, definition 3, sections 4.1 and 4.2; {WORKSHOP}, sections 3 and 4.1",
        f"with {few} draws the error is {slashed(ratios, 1)} times that with {most} at {results.all_levels} noise "
        f"({slashed(first, 3)} against {slashed(last, 3)})",
        judged([one <= CONVERGED for one in ratios]),
        f"over few independent draws the mean of the margins carries noise; pairs of opposite draws, as the library "
        f"takes them, remove most of it; converged means here: at most {decimals(CONVERGED, 1)} times the error with "
        f"the most draws",
    )


def _copies(numbers: Sequence[float], references: Sequence[int]) -> str:
    """Numbers of copies at each level; above the reference it cannot tell them."""
    pairs = zip(numbers, references, strict=True)
    return " / ".join(decimals(one, 0) if one <= most else f"over {decimals(most, 0)}" for one, most in pairs)


def counting_is_slow(results: Results) -> Finding:
    """How many draws of plain counting have the error of MMSE."""
    few, most = results.budgets[0], results.budgets[-1]
    spent, equal = [], []
    references = [results.reference(level) for level in results.levels]
    for budget in (few, most):
        rows = [results.one(level, PRINTED, "mmse", budget) for level in results.levels]
        spent.append([row["passes"] for row in rows])
        pairs = zip(rows, references, strict=True)
        equal.append([equal_copies(row["ratio"], row["passes"] - 1, reference) for row, reference in pairs])
    return Finding(
        "counting needs about 10,000 draws, MMSE 5 and Taylor none: these are 17 and 35 times faster (on a graphics "
        "card; on a processor, by the same table, 148 and 759 times, and a draw of MMSE takes as long there as about "
        "14 counted copies)",
        f"{UAI}, section 4.2, table 1; {WORKSHOP}, section 4.2, table 1",
        f"at {results.all_levels} noise MMSE with {few} draws, {decimals(spent[0][0], 0)} passes, is as far off as "
        f"counting {_copies(equal[0], references)} copies; with {most} draws, {decimals(spent[1][0], 0)} passes, as "
        f"counting {_copies(equal[1], references)}",
        judged([copies > passes for copies, passes in zip(equal[0], spent[0], strict=True)]),
        "the verdict asks for the same error: does MMSE take fewer passes than counting? the paper counts until the "
        "count no longer moves, and sets that beside estimators that are off by more; for so many copies the ratio "
        "of times is as the paper says (see the study of average-case robustness)",
    )


def sigmoid(results: Results) -> Finding:
    """The sigmoid in the place of the normal integral."""
    most, ratios = results.budgets[-1], []
    for name, budget in (("taylor", 0), ("mmse", most)):
        pairs = zip(_errors(results, f"{name}_mvs", budget), _errors(results, name, budget), strict=True)
        ratios.append([one / other for one, other in pairs])
    bias = [results.one(level, PRINTED, "mmse_mvs", most)["bias"] for level in results.levels]
    return Finding(
        "the multivariate sigmoid approximates the normal integral well",
        f"{UAI}, section 4.1, figure 10; {WORKSHOP}, figure 3",
        f"with the sigmoid the error is {slashed(ratios[0], 1)} times that with the integral for Taylor, "
        f"{slashed(ratios[1], 1)} times for MMSE, at {results.all_levels} noise; its bias in MMSE is "
        f"{slashed(bias, 3)}",
        judged([one <= NEAR for of_both in ratios for one in of_both]),
        "the logistic curve falls off as an exponential where the normal one falls off faster, and competitors add up; "
        "it keeps the order of points, which is what the correlation in the paper shows; where the integral is far too "
        f"high, as Taylor's at large noise, its bias the other way makes up for some of it; well means here: at most "
        f"{decimals(NEAR, 2)} times the error",
    )


def softmax_value(results: Results) -> Finding:
    """The value of softmax."""
    rows = [results.one(level, PRINTED, "softmax", 0) for level in results.levels]
    tangent = _errors(results, "taylor")
    sampled = [_errors(results, name, results.budgets[-1]) for name in ("mmse", "mmse_mvs")]
    others = np.max([tangent, _errors(results, "taylor_mvs"), *sampled], axis=0)
    return Finding(
        "softmax is a poor estimator of robustness, behind all others",
        f"{UAI}, sections 3.2.3 and 4.1",
        f"at {results.all_levels} noise softmax is off by {' / '.join(interval(row, 'error', 3) for row in rows)}, "
        f"Taylor by {slashed(tangent, 3)}, the worst of the others by {slashed(others, 3)}",
        judged([bool(row["error"] > one) for row, one in zip(rows, others, strict=True)]),
        "it knows nothing of the noise, so it is one number for every sigma; the larger the noise, the less the "
        "tangent at the point, which Taylor takes, says of where it reaches",
    )


def softmax_order(results: Results) -> Finding:
    """The order that softmax gives."""
    rows = [results.one(level, PRINTED, "softmax", 0) for level in results.levels]
    others = [results.one(level, PRINTED, "taylor", 0)["spearman"] for level in results.levels]
    return Finding(
        "softmax and robustness are not strongly correlated, mildly even for robust networks",
        f"{WORKSHOP}, section 4.3, figures 5 to 7",
        f"Spearman correlation with the truth at {results.all_levels} noise: softmax "
        f"{' / '.join(interval(row, 'spearman', 2) for row in rows)}, Taylor {slashed(others, 2)}",
        judged([row["spearman"] < MILD for row in rows]),
        "confidence falls towards a boundary, so it says something of every noise; at small noise the order is that "
        "of distances in the input, which takes gradients; far from the point these say less; the verdict asks the "
        "mean over networks, the study of average-case robustness each network",
    )


def margins_find(results: Results) -> Finding:
    """Free margins and the nearest counterexample."""
    row, best = results.foretells("adversarial", "logit_margin"), results.as_good("adversarial")
    frame = results.free[results.free["outcome"] == "adversarial"]
    each = frame[frame["score"] == "logit_margin"]
    return Finding(
        "does the logit margin find the points with a near counterexample on networks of every kind?",
        "",
        f"AUC {interval(row, 'auc', 2)}, Kendall {interval(row, 'kendall', 2)}, between networks from "
        f"{decimals(each['kendall'].min(), 2)} to {decimals(each['kendall'].max(), 2)}; best of all scores: "
        f"{named(best)}, AUC {decimals(results.foretells('adversarial', best[0])['auc'], 2)}",
        Agreement.UNSAID,
        f"{MARGINS} asks this of adversarially trained networks in Linf; most of these have another training, the norm "
        f"is L2, and weak are the half of the points with the smaller margins; the study of margin consistency "
        f"measures it as the paper does",
    )


def laplacian_flips(results: Results) -> Finding:
    """Confident points by their Laplacian."""
    frame = results.confident
    frame = frame[(frame["lowest"] > 0) | (frame["highest"] > 0)]
    more = [*(frame["lowest"] > frame["highest"])]
    return Finding(
        "of confident predictions those with the lowest Laplacian flip far more often than those with the highest "
        "(59.9% against 2.0% on CIFAR-10 at radius 2)",
        f"{LAPLACE}, section 4.2, table 1",
        f"at middle noise {percent(frame['lowest'].mean(), 1)} of the copies flip in the lowest quarter, "
        f"{percent(frame['highest'].mean(), 1)} in the highest; more in the lowest on {sum(more)} of {len(more)} "
        f"networks with confident points of which any flips",
        judged(more),
        "most of these networks are piecewise linear, where the Laplacian at a point is blind to the kinks around "
        "it; the noise, at which about one copy in ten flips, is mostly longer than the paper's, and the study of "
        "the expected change takes the paper's lengths",
    )
