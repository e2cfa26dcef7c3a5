"""The answers of the study of estimators, a sentence each, from the results."""

from __future__ import annotations

from studies.estimators.entrants import LIBRARY
from studies.estimators.read import Results, named
from studies.markdown import decimals, interval, slashed

OUTCOMES = ("adversarial", "corruption", "wrong")
"""What free scores foretell besides noise."""


def in_short(results: Results) -> list[str]:
    """Which estimator, whether softmax may stand in, which free score."""
    return [*_budgets(results), _softmax(results), *_free(results)]


def _budgets(results: Results) -> list[str]:
    budget, most, said = results.middle, results.budgets[-1], []
    names = [("shrinkage", budget), ("monte_carlo", budget), ("moments", budget), ("taylor", 0), ("softmax", 0)]
    for level in results.levels:
        rows = [results.one(level, LIBRARY, *name) for name in names]
        told = ", ".join(f"`{row['estimator']}` {decimals(row['error'], 4)}" for row in rows)
        said.append(
            f"At {level} noise, with at most {budget} draws where there are any, `p_robust` is off by: {told}. The "
            f"default, `shrinkage`, took {decimals(rows[0]['passes'], 0)} passes, counting "
            f"{decimals(rows[1]['passes'], 0)}."
        )
    ratios = [results.one(level, LIBRARY, "shrinkage", most)["ratio"] for level in results.levels]
    said.append(
        f"With at most {most} draws the default has {slashed(ratios, 2)} of the error of counting with as many passes, "
        f"at {results.all_levels} noise."
    )
    return said


def _softmax(results: Results) -> str:
    soft, tangent = (
        [results.one(level, LIBRARY, name, 0) for level in results.levels] for name in ("softmax", "taylor")
    )
    return (
        f"Softmax as a number is off by {slashed((row['error'] for row in soft), 2)}; as an order of the points it has "
        f"a Kendall's tau with the truth of {slashed((row['kendall'] for row in soft), 2)}, Taylor of "
        f"{slashed((row['kendall'] for row in tangent), 2)}."
    )


def _free(results: Results) -> list[str]:
    said = []
    for outcome in (*(f"noise, {level}" for level in results.levels), *OUTCOMES):
        cheap, best = results.as_good(outcome, results.of_one_pass), results.as_good(outcome)
        rest = ""
        if cheap[0] not in best:
            one = results.foretells(outcome, best[0])
            rest = f"; with {decimals(one['passes'], 0)} passes {named(best)} has {decimals(one['auc'], 2)}"
        said.append(
            f"Of the scores of one pass {named(cheap)} foretells *{outcome}* best, AUC "
            f"{interval(results.foretells(outcome, cheap[0]), 'auc', 2)}{rest}."
        )
    return said
