"""What the papers say of convergence, run times and the bounds of the error, beside what is found.

Figures of the papers stand in the claims; every other number is read from the results.
"""

from __future__ import annotations

from studies.agreement import CONVERGED, judged
from studies.average_case.curvature import SHIFT
from studies.average_case.estimating import MMSE_, TAYLOR
from studies.average_case.read import Results, sigmas_of
from studies.average_case.timing import BATCHED, PAPER_COPIES, PAPER_DRAWS, SERIAL
from studies.markdown import decimals, significant, slashed
from studies.study import Agreement, Finding

UAI, WORKSHOP = "UAI paper", "workshop paper"


def counting(results: Results) -> Finding:
    """Figures 4 and 10 of the workshop paper."""
    rows = results.frames["counting"].groupby("copies")["error"].mean()
    asked = " / ".join(decimals(float(one), 0) for one in rows.index)
    mmse = float(
        results.at_own_sigma("errors").query("estimator == @MMSE_ and draws == @results.budgets[-1]")["error"].mean()
    )
    enough = [copies for copies, error in rows.items() if error <= mmse]
    least = decimals(enough[0], 0) if enough else f"over {decimals(float(rows.index[-1]), 0)}"
    return Finding(
        "counting takes about 10,000 copies a point to converge",
        f"{WORKSHOP}, section 4.2, figures 4 and 10; {UAI}, sections 3.1 and 4.2",
        f"{results.own_noise}, {asked} copies are off by {slashed(rows, 4)}; MMSE with {results.budgets[-1]} draws is "
        f"off by {decimals(mmse, 4)}, "
        f"and counting by less from {least} copies on",
        judged([bool(enough) and enough[0] >= PAPER_COPIES]),
        "the error falls as one over the root of the number and settles nowhere, so how many are enough depends on the "
        "error that is asked for; the paper names none, so the rule asks whether counting needs that many copies to be "
        "as near as MMSE",
    )


def few_draws(results: Results) -> Finding:
    """Figure 11."""
    table = {draws: results.telling_error(MMSE_, draws).to_numpy() for draws in results.budgets}
    ratios = table[PAPER_DRAWS] / table[results.budgets[-1]]
    few, most = results.printed(MMSE_, PAPER_DRAWS), results.printed(MMSE_)
    shown = "; ".join(f"{draws} draws {slashed(errors, 3)}" for draws, errors in table.items())
    return Finding(
        "MMSE has converged with about 5 draws (5 to 10 in the workshop paper; where they measure errors they take "
        "500 and 1,000)",
        f"{UAI}, definition 3, sections 4.1 and 4.2; {WORKSHOP}, sections 3 and 4.1, figure 11",
        f"at sigma {sigmas_of(results)}: {shown}; with {PAPER_DRAWS} draws {slashed(ratios, 1)} times the error with "
        f"the most; at each network's own sigma {PAPER_DRAWS} draws {decimals(few, 3)}, {results.printed_draws} draws "
        f"{decimals(most, 3)}, {decimals(few / most, 1)} times",
        judged([bool(one <= CONVERGED) for one in [*ratios, few / most]]),
        f"independent copies leave noise in the mean of the margins; converged means here: at most "
        f"{decimals(CONVERGED, 1)} times the error with the most draws",
    )


def _copies(number: float, most: int) -> str:
    """A number of copies; above the reference it cannot be told."""
    return f"over {decimals(most, 0)}" if number > most else "under 1" if number < 1 else decimals(number, 0)


def as_near(results: Results) -> Finding:
    """Copies with the same error."""
    parts, most = [], int(results.networks["reference"].iloc[0])
    for name, draws in ((TAYLOR, 0), (MMSE_, PAPER_DRAWS), (MMSE_, results.budgets[-1])):
        rows = results.errors(name, draws)
        middle = rows.groupby("sigma")["copies"].median()[results.telling]
        passes = float(rows["passes"].mean())
        copies = [_copies(one, most) for one in middle]
        said = f"MMSE with {draws} draws" if draws else "Taylor"
        parts.append(f"{said}, {decimals(passes, 0)} passes: {' / '.join(copies)}")
    rows = results.frames["printed"].query("estimator == @MMSE_ and draws == @results.printed_draws")
    parts.append(
        f"MMSE with {results.printed_draws} draws, {decimals(float(rows['passes'].mean()), 0)} passes, at each "
        f"network's own sigma: {_copies(float(rows['copies'].median()), most)}"
    )
    return Finding(
        "how many copies make counting as near as the analytic estimators?",
        "",
        f"at sigma {sigmas_of(results)}, in the median over networks: {'; '.join(parts)}",
        Agreement.UNSAID,
        "a copy costs one pass, a draw of MMSE one and one more for each class; where fewer copies than passes do as "
        "well, counting is the cheaper of the two; MMSE as the papers print it, and the library's own form is nearer "
        "(see the study of estimators)",
    )


def times(results: Results) -> Finding:
    """Tables 1 and 3."""
    parts, holds = [], []
    for way in (SERIAL, BATCHED):
        for (name, draws), said, paper in (((TAYLOR, 0), "Taylor", 35), ((MMSE_, PAPER_DRAWS), "MMSE", 17)):
            ratio = results.times_as_long(name, draws, way)
            middle = float(ratio.median())
            holds.append(middle >= paper)
            parts.append(
                f"{said} {way}: {decimals(middle, 0)} ({decimals(float(ratio.min()), 0)} to "
                f"{decimals(float(ratio.max()), 0)})"
            )
    return Finding(
        "Taylor is 35 times and MMSE 17 times faster than counting 10,000 copies (on a graphics card, points "
        "together; on a processor, by the same tables, 759 and 148 times one at a time, 640 and 144 times together)",
        f"{UAI}, section 4.2, table 1; {WORKSHOP}, section 4.2, tables 1 and 3",
        f"on a processor counting {decimals(PAPER_COPIES, 0)} copies takes so many times as long, in the median over "
        f"networks, with the least and the most: {'; '.join(parts)}",
        judged(holds),
        "the verdict asks for the two numbers of the text, which are the smallest; so many copies buy a smaller "
        "error than the estimators have: for the same error see the line above; the estimators' times hold all that "
        "a run of the library does, counting is a bare loop",
    )


def product(results: Results) -> Finding:
    """Proposition 1, exactly."""
    rows = results.frames["counterexample"]
    dimensions = " / ".join(decimals(float(one), 0) for one in rows["dimension"])
    off = (rows["truth"] - rows["taylor"]).abs()
    return Finding(
        "Taylor's error is at most a small constant times the product of the normalised curvatures of all margins "
        "(quadratic margins, in the limit of many dimensions)",
        f"{UAI}, proposition 1",
        f"for one linear and one bent margin the product is {significant(float(rows['product'].max()))}, and Taylor "
        f"is off by {slashed(off, 3)} in {dimensions} dimensions; the sum that holds allows "
        f"{decimals(float(rows['sum'].iloc[0]), 3)}, where the bend shifts its margin by {decimals(SHIFT, 0)} "
        f"standard deviation",
        judged([bool(one <= bound) for one, bound in zip(off, rows["product"], strict=True)]),
        "one bent margin is enough for an error: the errors of the margins add up, and a product forgets that",
    )


def constant(results: Results) -> Finding:
    """Propositions 1 and 2, on networks."""
    claim = "is the constant of the propositions small, and about one number, on networks?"
    every = results.frames["curvature"].query("margins > 1")
    parts = []
    for name, said in ((TAYLOR, "Taylor (proposition 1)"), (MMSE_, "MMSE (proposition 2)")):
        own = every[every["estimator"] == name]
        points, frame = int(own["points"].sum()), own.dropna(subset="product_range")
        if frame.empty:
            parts.append(f"{said}: too few points tell")
            continue
        zero = round(float((own["product_zero"] * own["points"]).sum()))
        middle, most = frame.median(numeric_only=True), frame.max(numeric_only=True)
        parts.append(
            f"{said}: from one point of a network to the next the constant that the product needs spans "
            f"{decimals(middle['product_range'], 1)} powers of ten between its lowest and its highest tenth in the "
            f"median over {len(frame)} networks, {decimals(most['product_range'], 0)} at most; at {zero} of the "
            f"{points} points that tell no constant is enough, as the product is zero; the constant of the sum spans "
            f"{decimals(middle['sum_range'], 1)}, {decimals(most['sum_range'], 1)} at most; the rank correlation with "
            f"the error is {decimals(middle['product_rank'], 2)} for the product and "
            f"{decimals(middle['sum_rank'], 2)} for the sum"
        )
    if not every["product_range"].notna().any():
        return Finding(claim, "", "; ".join(parts), Agreement.UNMEASURED, "")
    return Finding(
        claim,
        "",
        "; ".join(parts),
        Agreement.UNSAID,
        f"the curvature says how much a margin bends, not whether the boundary lies within the noise at all; "
        f"curvatures are those of the margins averaged over the noise, because most of the networks are piecewise "
        f"linear; a margin that is straight all over the noise makes the product zero, or nearly; the error of MMSE "
        f"with {results.budgets[-1]} draws holds what the draws add; networks of two classes have one margin, and so "
        f"no product",
    )
