"""Claims of the papers on their estimators, with findings; `said_points` has their claims on points.

Figures of the papers stand in the claims; every other number is read from the results.
"""

from __future__ import annotations

import numpy as np

from studies.agreement import CLOSELY, CONVERGED, judged
from studies.average_case.estimating import MMSE_, MMSE_MVS, ORDER, SOFTMAX, TAYLOR, TAYLOR_MVS
from studies.average_case.read import LINEAR, Results
from studies.average_case.said_points import of_points
from studies.average_case.timing import (
    FASTER,
    LIBRARY,
    PAPER_COPIES,
    PAPER_DRAWS,
    PAPERS,
    PRINTED,
    PRINTED_DRAWS,
    SMALL,
)  # fmt: skip
from studies.markdown import data_name, decimals, percent
from studies.study import Agreement, Finding, Tables

CLOSE = 0.02
"""Mean absolute difference of probabilities below which one is called a good approximation of the other."""

STRONG = 0.9
"""Pearson's correlation from which two quantities are strongly correlated."""

MACHINES = 2.0
"""Factor by which a ratio of run times may differ on another machine and still agree."""

CODES = {LIBRARY: "the library's code", PRINTED: "the formulas as printed"}
"""Origins of the timed code."""

FLOORS = 2.0
"""Multiple of the count's own error below which an estimator's error cannot be seen."""


def findings(tables: Tables) -> list[Finding]:
    """Return every finding, from the results."""
    results = Results(tables)
    parts = results.parts()
    return [
        *(order(part, on) for on, part in parts.items()), smaller(results), linear(results),
        *(regularised(part, on) for on, part in parts.items() if part.families()), sigmoid(results), scaled(results),
        counting(results), few_draws(results), as_near(results), *(times(results, code) for code in CODES),
        small(results), *of_points(results, parts), product(results),
    ]  # fmt: skip


def order(results: Results, on: str) -> Finding:
    """Figure 2a."""
    errors_by_name = {name: results.telling_error(name).to_numpy() for name in ORDER}
    tangent = np.array([errors_by_name[TAYLOR], errors_by_name[TAYLOR_MVS]])
    sampled = np.maximum(errors_by_name[MMSE_], errors_by_name[MMSE_MVS])
    printed_errors = {name: results.printed(name) for name in ORDER}
    tangents, drawn = (
        (printed_errors[TAYLOR], printed_errors[TAYLOR_MVS]),
        max(printed_errors[MMSE_], printed_errors[MMSE_MVS]),
    )
    holds = [*(sampled < tangent.min(axis=0)), *(tangent.min(axis=0) <= CLOSELY * sampled)]
    holds += [
        *(tangent.max(axis=0) < errors_by_name[SOFTMAX]),
        drawn < min(tangents),
        max(tangents) < printed_errors[SOFTMAX],
    ]
    return Finding(
        "MMSE and its sigmoid form are the best estimators, Taylor's follow closely, softmax trails (mean errors)",
        "UAI 4.1, figure 2a",
        f"MMSE {decimals(printed_errors[MMSE_], 3)}, Taylor {decimals(printed_errors[TAYLOR], 3)}, softmax "
        f"{decimals(printed_errors[SOFTMAX], 3)}",
        judged([*map(bool, holds)]),
        on=data_name(on),
    )


def smaller(results: Results) -> Finding:
    """Errors by sigma."""
    shares, holds = [], []
    for name in (TAYLOR, MMSE_):
        errors = (
            results.errors(name).pivot(index="network", columns="sigma", values="error")[results.telling].to_numpy()
        )
        holds.append(bool(np.all(np.diff(errors.mean(axis=0)) > 0)))
        shares.append(percent(float((np.diff(errors, axis=1) > 0).mean())))
    return Finding(
        "the smaller sigma, the more accurate Taylor and MMSE",
        "UAI 4.1, figure 2a; workshop, figure 1",
        f"from one sigma to the next Taylor's error grows in {shares[0]} of the cases, MMSE's in {shares[1]}",
        judged(holds),
    )


def linear(results: Results) -> Finding:
    """Linear networks; what MMSE's own draws add is scaled to the number of the paper, as the root of the number."""
    holds, budget = [], results.budgets[-1]
    for name in (TAYLOR, MMSE_):
        rows = results.errors(name).pipe(lambda rows: rows[rows["architecture"] == LINEAR])
        squares = np.maximum(rows["error"] ** 2 - rows["floor"] ** 2, 0)  # without what the count is off by
        errors = np.sqrt(squares * (budget / PRINTED_DRAWS if name == MMSE_ else 1) + rows["floor"] ** 2)
        holds += [*(errors <= FLOORS * rows["floor"] + results.least_error)]
    return Finding(
        "for linear models Taylor and MMSE are accurate at every sigma",
        "both, 4.1; workshop A.4",
        f"{sum(map(bool, holds))} of {len(holds)} errors are as small as the count can show, MMSE's scaled to "
        f"{PRINTED_DRAWS} draws",
        judged(holds),
    )


def regularised(results: Results, on: str) -> Finding:
    """Figure 2b."""
    ends, steps = list[bool](), list[bool]()
    for family in results.families():
        table = results.errors(MMSE_).pivot(index="network", columns="sigma", values="error").loc[family["network"]]
        errors = table[results.telling].to_numpy()
        ends += [*map(bool, errors[-1] < errors[0])]
        steps += [*map(bool, (np.diff(errors, axis=0) < 0).all(axis=0))]
    return Finding(
        "the stronger the gradient-norm regularisation, the smaller MMSE's error",
        "UAI 4.1, figure 2b",
        f"strongest below none at {sum(ends)} of {len(ends)} sigmas, falling with every step at {sum(steps)}",
        judged([*ends, *steps]),
        on=data_name(on),
    )


def sigmoid(results: Results) -> Finding:
    """Figures 3, 10 and 15."""
    networks, problems = results.frames["sigmoid"], results.frames["problems"]
    rows = networks.groupby("sigma")[["sigmoid", "sigmoid_pearson"]].mean().loc[results.telling]
    differences = problems[problems["kind"] == "differences"]
    near = [*(rows["sigmoid"] <= CLOSE), *(differences["sigmoid"] <= CLOSE)]
    strong = [*(rows["sigmoid_pearson"].dropna() >= STRONG), *(differences["sigmoid_pearson"] >= STRONG)]
    return Finding(
        "the multivariate sigmoid is strongly correlated with the normal integral, with a low error",
        "UAI 4.1, figure 10; workshop, figures 3, 15",
        f"correlation {decimals(rows['sigmoid_pearson'].min(), 2)} or more; off by "
        f"{decimals(rows['sigmoid'].min(), 2)} "
        f"at the smallest and {decimals(rows['sigmoid'].max(), 2)} at the largest sigma",
        judged([*map(bool, near), *map(bool, strong)]),
    )


def nearer(results: Results) -> tuple[str, str]:
    """How many times nearer to the integral the sigmoid is with the factor, the least and the most over sigmas."""
    rows = results.frames["sigmoid"].groupby("sigma")[["sigmoid", "scaled"]].mean().loc[results.telling]
    ratio = rows["sigmoid"] / rows["scaled"]
    return decimals(float(ratio.min()), 0), decimals(float(ratio.max()), 0)


def scaled(results: Results) -> Finding:
    """Judge the factor."""
    lowest, highest = nearer(results)
    return Finding(
        "does the factor 1.702 of one dimension belong in the multivariate sigmoid?",
        "",
        f"yes: with it the sigmoid is {lowest} to {highest} times nearer to the integral",
        Agreement.UNSAID,
    )


def enough(results: Results) -> tuple[float, int, float]:
    """Return MMSE's error with the most draws, the fewest copies with a smaller one, and its passes; NaN for none."""
    rows = results.frames["counting"].groupby("copies")["error"].mean()
    at_sigma = results.at_own_sigma("errors").query("estimator == @MMSE_ and draws == @results.budgets[-1]")
    mmse = float(at_sigma["error"].mean())
    copies = [int(copies) for copies, error in rows.items() if error <= mmse]
    return mmse, copies[0] if copies else 0, float(at_sigma["passes"].mean())


def counting(results: Results) -> Finding:
    """Figures 4 and 10 of the workshop paper."""
    _, copies, passes = enough(results)
    counted = f"{copies} copies" if copies else "more copies than were counted"
    return Finding(
        "counting takes about 10,000 copies a point to converge",
        "workshop 4.2, figures 4, 10; UAI 3.1, 4.2",
        f"{counted} are nearer to the truth than MMSE with {results.budgets[-1]} draws, which takes "
        f"{decimals(passes, 0)} passes",
        judged([copies >= PAPER_COPIES]),
    )


def few_draws(results: Results) -> Finding:
    """Figure 11."""
    with_few, with_most = results.printed(MMSE_, PAPER_DRAWS), results.printed(MMSE_)
    return Finding(
        "MMSE has converged with about 5 draws",
        "UAI 3, 4.1, 4.2; workshop 4.1, figure 11",
        f"with {PAPER_DRAWS} draws it has {decimals(with_few / with_most, 1)} times the error that it has with "
        f"{results.printed_draws}",
        judged([with_few / with_most <= CONVERGED]),
    )


def as_near(results: Results) -> Finding:
    """Judge the number of copies with the same error."""
    rows = results.frames["printed"].query("estimator == @MMSE_ and draws == @results.printed_draws")
    return Finding(
        "how many copies are as near as MMSE with the paper's draws?",
        "",
        f"{decimals(float(rows['copies'].median()), 0)} copies, in the median; its "
        f"{results.printed_draws} draws take {decimals(float(rows['passes'].mean()), 0)} passes",
        Agreement.UNSAID,
    )


def ratios(results: Results, architecture: str, code: str = LIBRARY) -> dict[str, float]:
    """How many times as long counting takes as each estimator that the papers time."""
    return {name: float(results.times_as_long(name, code)[architecture]) for name in FASTER}


def in_short(times_by_name: dict[str, float]) -> str:
    """Return these ratios in a few words."""
    return f"{decimals(times_by_name[TAYLOR], 0)}, and {decimals(times_by_name[MMSE_], 0)} ({PAPER_DRAWS} draws)"


def times(results: Results, code: str) -> Finding:
    """Table 1 of the UAI paper and tables 1 and 3 of the workshop paper, on a processor."""
    times_by_name = ratios(results, PAPERS, code)
    return Finding(
        "on a processor, a point at a time, on ResNet-18, counting 10,000 copies takes 759 times as long as Taylor and "
        "148 times as long as MMSE",
        "UAI, table 1; workshop, table 3",
        in_short(times_by_name),
        judged(1 / MACHINES <= times_by_name[name] / FASTER[name] <= MACHINES for name in times_by_name),
        on=CODES[code],
    )


def small(results: Results) -> Finding:
    """Judge the same where a pass takes next to no time."""
    return Finding(
        "and on small networks?",
        "",
        f"less: on a CNN {in_short(ratios(results, SMALL))}",
        Agreement.UNSAID,
    )


def product(results: Results) -> Finding:
    """Proposition 1, exactly."""
    rows = results.frames["counterexample"]
    off = (rows["truth"] - rows["taylor"]).abs()
    return Finding(
        "Taylor's error is at most a small constant times the product of the normalised curvatures of all margins",
        "UAI, proposition 1",
        f"for one linear and one bent margin the product is {decimals(float(rows['product'].max()), 0)}, and Taylor is "
        f"off by up to {decimals(float(off.max()), 2)}",
        judged([bool(error <= bound) for error, bound in zip(off, rows["product"], strict=True)]),
    )
