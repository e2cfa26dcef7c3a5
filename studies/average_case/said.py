"""What the papers say of their estimators, beside what is found.

Figures of the papers stand in the claims; every other number is read from the results.
"""

from __future__ import annotations

import numpy as np

from studies.agreement import CLOSELY, judged
from studies.average_case.estimating import MMSE_, MMSE_MVS, ORDER, SOFTMAX, TAYLOR, TAYLOR_MVS, TAYLOR_SCALED
from studies.average_case.read import LINEAR, Results, sigmas_of
from studies.average_case.said_costs import as_near, constant, counting, few_draws, product, times
from studies.average_case.said_points import of_points
from studies.average_case.sigmoid import SCALE
from studies.average_case.timing import PRINTED_DRAWS
from studies.markdown import decimals, percent, slashed
from studies.study import Agreement, Finding, Tables
from studies.tables import Frame

UAI, WORKSHOP = "UAI paper", "workshop paper"

CLOSE = 0.02
"""Mean absolute difference of probabilities below which one is called a good approximation of the other."""

STRONG = 0.9
"""Pearson's correlation from which two quantities are strongly correlated."""

FLOORS = 2.0
"""Times the error of the count itself, below which an estimator is as exact as can be seen."""


def findings(tables: Tables) -> list[Finding]:
    """Every finding, from the results."""
    results = Results(tables)
    return [
        order(results), smaller(results), linear(results), regularised(results), sigmoid(results), scaled(results),
        counting(results), few_draws(results), as_near(results), times(results), *of_points(results),
        product(results), constant(results),
    ]  # fmt: skip


def order(results: Results) -> Finding:
    """Figure 2a."""
    found = {name: results.telling_error(name).tolist() for name in ORDER}
    tangent = np.array([found[TAYLOR], found[TAYLOR_MVS]])
    best = np.array([found[MMSE_], found[MMSE_MVS]]).max(axis=0) < tangent.min(axis=0)
    trails = tangent.max(axis=0) < np.array(found[SOFTMAX])
    own = {name: results.printed(name) for name in ORDER}
    tangents = own[TAYLOR], own[TAYLOR_MVS]
    sampled = max(own[MMSE_], own[MMSE_MVS])
    closely = tangent.min(axis=0) <= CLOSELY * np.array([found[MMSE_], found[MMSE_MVS]]).max(axis=0)
    holds = [*best, *closely, *trails]
    holds += [sampled < min(tangents), min(tangents) <= CLOSELY * sampled, max(tangents) < own[SOFTMAX]]
    return Finding(
        "MMSE and its sigmoid form are the best estimators, Taylor and its sigmoid form follow closely, softmax trails",
        f"{UAI}, section 4.1, figure 2a",
        f"mean absolute error at sigma {sigmas_of(results)}: MMSE with {results.budgets[-1]} draws "
        f"{slashed(found[MMSE_], 3)}, its sigmoid form {slashed(found[MMSE_MVS], 3)}; Taylor "
        f"{slashed(found[TAYLOR], 3)}, its sigmoid form {slashed(found[TAYLOR_MVS], 3)}; softmax "
        f"{slashed(found[SOFTMAX], 3)}; with {results.printed_draws} draws of MMSE, as in the paper, "
        f"{results.own_noise}: MMSE {decimals(own[MMSE_], 3)}, its sigmoid form "
        f"{decimals(own[MMSE_MVS], 3)}; Taylor {decimals(own[TAYLOR], 3)}, its sigmoid form "
        f"{decimals(own[TAYLOR_MVS], 3)}; softmax {decimals(own[SOFTMAX], 3)}",
        judged([*map(bool, holds)]),
        f"MMSE sees as far as the noise reaches; the sigmoid forms are too low at points that are safe, so that MMSE's "
        f"need not beat Taylor there; Taylor falls behind as the network bends within the noise; the verdict asks at "
        f"each sigma whether both of MMSE's are nearer than both of Taylor's, the nearer of Taylor's is off by at most "
        f"{decimals(CLOSELY, 0)} times as much, and softmax is the farthest",
    )


def smaller(results: Results) -> Finding:
    """Errors by sigma."""
    parts, holds = [], []
    for name, said in ((TAYLOR, "Taylor"), (MMSE_, "MMSE")):
        errors = (
            results.errors(name).pivot(index="network", columns="sigma", values="error")[results.telling].to_numpy()
        )
        grows = np.diff(errors, axis=1) > 0
        holds.append(bool(np.all(np.diff(errors.mean(axis=0)) > 0)))
        parts.append(f"{said}'s error grows at {percent(float(grows.mean()))} of the steps from one sigma to the next")
    rows = results.by_sigma(SOFTMAX)
    rows = rows[rows["sigma"].isin(results.telling)]
    return Finding(
        "the smaller sigma, the more accurate the estimators; softmax is right at small sigma by chance only",
        f"{UAI}, section 4.1, figure 2a; {WORKSHOP}, figure 1",
        f"{'; '.join(parts)}; softmax is off by {slashed(rows['error'], 3)} where the mean truth is "
        f"{slashed(rows['kept'], 3)}",
        judged(holds),
        "the verdict is on Taylor and MMSE; at small noise nearly every point holds, which is easy to get right; "
        "softmax is one number for every sigma, so it can only be right where that number happens to fit",
    )


def linear(results: Results) -> Finding:
    """Linear networks; what MMSE's own draws add is scaled to the number of the paper, as the root of the number."""
    parts, holds, most = [], [], results.budgets[-1]
    for name, said in ((TAYLOR, "Taylor"), (MMSE_, "MMSE")):
        rows = results.errors(name).pipe(lambda rows: rows[rows["architecture"] == LINEAR])
        own = np.maximum(rows["error"] ** 2 - rows["floor"] ** 2, 0)  # without what the count is off by
        errors = np.sqrt(own * (most / PRINTED_DRAWS if name == MMSE_ else 1) + rows["floor"] ** 2)
        holds += [*(errors <= FLOORS * rows["floor"] + results.least_error)]
        drawn = f" with {most} draws" if name == MMSE_ else ""
        parts.append(f"{said}{drawn} {decimals(float(rows['error'].mean()), 4)}")
    rows = results.errors(TAYLOR).pipe(lambda rows: rows[rows["architecture"] == LINEAR])
    return Finding(
        "for linear models Taylor and MMSE are accurate at every sigma",
        f"both papers, section 4.1; {WORKSHOP}, appendix A.4",
        f"mean error over all sigmas on linear networks ({rows['network'].nunique()}): {', '.join(parts)}; the count "
        f"itself would be off by {decimals(float(rows['floor'].mean()), 4)} from a perfect estimator; scaled to the "
        f"draws of the paper {sum(map(bool, holds))} of {len(holds)} errors, one for each estimator, network and "
        f"sigma, are as small as the count can show",
        judged(holds),
        f"Taylor is exact there; MMSE as the papers print it averages the margins over independent copies, which "
        f"leaves noise even in a linear model; it falls with the root of the number, and the verdict scales it so to "
        f"the {decimals(PRINTED_DRAWS, 0)} draws of the UAI paper; opposite pairs of copies remove it",
    )


def regularised(results: Results) -> Finding:
    """Figure 2b."""
    holds, parts = [], []
    for family in results.families():
        for name, said in ((MMSE_, "MMSE"), (TAYLOR, "Taylor")):
            table = results.errors(name).pivot(index="network", columns="sigma", values="error").loc[family["network"]]
            found = table[results.telling].to_numpy()
            if name == MMSE_:
                holds += [*map(bool, (np.diff(found, axis=0) < 0).all(axis=0))]
            strengths = " / ".join(f"{strength:g}" for strength in family["strength"])
            parts.append(
                f"{family['dataset'].iloc[0]} {family['architecture'].iloc[0]} at strength {strengths}, {said}: "
                f"{slashed(found.mean(axis=1), 3)}"
            )
    return Finding(
        "for more robust models, of stronger gradient-norm regularisation, MMSE is more accurate over a larger sigma",
        f"{UAI}, section 4.1, figure 2b",
        f"MMSE's error falls with every step of the strength at {sum(holds)} of {len(holds)} sigmas of "
        f"{len(results.families())} families of networks; the mean errors over sigmas are "
        f"{'; '.join(parts) or 'not known, for want of such networks'}",
        judged(holds),
        "the rule asks, at each sigma, for a fall with every step of the strength; strength zero is plain training; at "
        "one sigma fewer copies flip in a more robust network, and points that hold are easy",
    )


def _by_dimension(frame: Frame, name: str) -> str:
    return slashed(frame[name], 3)


def sigmoid(results: Results) -> Finding:
    """Figures 3, 10 and 15."""
    own, problems = results.frames["sigmoid"], results.frames["problems"]
    rows = own.groupby("sigma")[["sigmoid", "sigmoid_pearson"]].mean().loc[results.telling]
    some = problems[problems["kind"] == "differences"]
    near = [*(rows["sigmoid"] <= CLOSE), *(some["sigmoid"] <= CLOSE)]
    strong = [*(rows["sigmoid_pearson"].dropna() >= STRONG), *(some["sigmoid_pearson"] >= STRONG)]
    return Finding(
        "the multivariate sigmoid is strongly correlated with the normal integral, with a low approximation error",
        f"{UAI}, section 4.1, figure 10; {WORKSHOP}, figures 3 and 15",
        f"at the margins of the networks and sigma {sigmas_of(results)} it is off by {slashed(rows['sigmoid'], 3)} in "
        f"the mean, with a correlation of {slashed(rows['sigmoid_pearson'], 2)}; on random problems of "
        f"{' / '.join(str(one) for one in some['dimension'])} dimensions by {_by_dimension(some, 'sigmoid')}, nearly "
        f"always too low (mean difference {_by_dimension(some, 'sigmoid_bias')}), correlation "
        f"{_by_dimension(some, 'sigmoid_pearson')}",
        judged([*map(bool, near), *map(bool, strong)]),
        f"the order is right, the value is not: a logistic curve of scale one is much flatter than the normal one; "
        f"low means here up to {decimals(CLOSE, 2)}, strong from {decimals(STRONG, 1)}",
    )


def scaled(results: Results) -> Finding:
    """The factor."""
    own, problems = results.frames["sigmoid"], results.frames["problems"]
    rows = own.groupby("sigma")[["sigmoid", "scaled"]].mean().loc[results.telling]
    some = problems[problems["kind"] == "differences"]
    printed, better = (results.telling_error(name) for name in (TAYLOR_MVS, TAYLOR_SCALED))
    return Finding(
        "does the factor of the approximation in one dimension, 1.702, belong in the multivariate sigmoid?",
        "",
        f"with {decimals(SCALE, 3)} it is off by {slashed(rows['scaled'], 3)} from the integral at the networks' "
        f"margins, {slashed(rows['sigmoid'] / rows['scaled'], 1)} times nearer than as printed, and by "
        f"{_by_dimension(some, 'scaled')} on the random problems, {slashed(some['sigmoid'] / some['scaled'], 1)} times "
        f"nearer; Taylor's sigmoid form is off from the count by {slashed(better, 3)} with it, {slashed(printed, 3)} "
        f"without",
        Agreement.UNSAID,
        "it is the scale at which the logistic curve lies nearest to the normal one; where Taylor's integral is far "
        "too high, at large noise, being too low makes up for some of it",
    )
