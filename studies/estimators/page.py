"""What the page of the study of estimators reads: tables and numbers in words, all of them from the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from brittle.intervals import clopper_pearson
from studies.counting import SURE
from studies.estimators.entrants import LIBRARY, OWN, PRINTED
from studies.estimators.ours import NOMINAL, SAMPLED
from studies.estimators.read import Results, Row
from studies.estimators.short import OUTCOMES, in_short
from studies.markdown import decimals, in_words, interval, percent, significant, slashed, table
from studies.study import Tables
from studies.tables import minutes_of


def content(tables: Tables) -> Mapping[str, Any]:
    """The values of the template's names."""
    results = Results(tables)
    first = results.networks.iloc[0]
    return {
        "networks": len(results.names),
        "datasets": in_words(results.networks["dataset"]),
        "points": int(first["points"]),
        "flips": slashed(100 * results.networks.groupby("level", sort=False)["flips"].mean(), 1),
        "references": " / ".join(f"{results.reference(level):,}" for level in results.levels),
        "reference": f"{results.reference(results.levels[0]):,}",
        "free_points": int(results.free[results.free["outcome"] == "wrong"]["points"].max()),
        "minutes": decimals(minutes_of(tables), 0),
        "confidence": percent(1 - NOMINAL),
        "sure": percent(SURE, 1),
        "budgets": ", ".join(map(str, results.budgets)),
        "in_short": in_short(results),
        "unsure": slashed(results.networks.groupby("level", sort=False)["error_of_truth"].mean(), 4),
        "without_number": without_number(results),
        "levels_table": levels_table(results),
        "best_table": best_table(results),
        "error_tables": {level: error_table(results, level) for level in results.levels},
        "ratio_table": ratio_table(results),
        "rank_table": rank_table(results),
        "softmax_table": softmax_table(results),
        "printed_table": printed_table(results),
        "auc_table": auc_table(results),
        "interval_table": interval_table(results),
        "losses": losses(results),
        "missing_intervals": missing_intervals(results),
        "against_printed": against_printed(results),
        "absent_table": absent_table(tables),
    }


def without_number(results: Results) -> str:
    """Estimators that had no number at some point."""
    frame = results.errors.merge(
        results.networks[["network", "level", "points"]], on=["network", "level"], suffixes=("", "_all")
    )
    frame["lost"] = frame["points_all"] - frame["points"]
    lost = frame[frame["lost"] > 0].groupby(["origin", "estimator"], sort=False)[["lost", "points_all"]].sum()
    if lost.empty:
        return "Every estimator has a number at every point."
    told = ", ".join(f"{_named(*name)} {percent(row['lost'] / row['points_all'], 1)}" for name, row in lost.iterrows())
    return f"Points and budgets without a number, which the means leave out: {told}."


def levels_table(results: Results) -> str:
    """The networks, their accuracy, and sigma with what it flips at each level."""
    rows = []
    for name, group in results.networks.groupby("network", sort=False):
        cells = [f"{significant(one.sigma, 3)} ({percent(one.flips, 1)})" for one in group.itertuples()]
        rows.append([f"`{name}`", group["dataset"].iloc[0], percent(group["accuracy"].iloc[0]), *cells])
    return table(("network", "data", "right", *(f"{level}: sigma (flips)" for level in results.levels)), rows)


def _entrants(results: Results, origins: tuple[str, ...]) -> list[tuple[str, str]]:
    frame = results.estimators[results.estimators["origin"].isin(origins)]
    return [*dict.fromkeys(zip(frame["origin"], frame["estimator"], strict=True))]


def _named(origin: str, name: str) -> str:
    return f"`{name}`" if origin == LIBRARY else f"`{name}` {origin}"


def _grid(results: Results, level: str, cell: Callable[[Row], str], origins: tuple[str, ...]) -> list[list[str]]:
    """A row for each estimator: its name, and a cell for each budget; of those without one a cell before."""
    frame = results.estimators[results.estimators["level"] == level]
    rows = []
    for origin, name in _entrants(results, origins):
        own = frame[(frame["origin"] == origin) & (frame["estimator"] == name)].set_index("budget")
        if len(own):
            cells = [cell(own.loc[budget]) if budget in own.index else "" for budget in (0, *results.budgets)]
            rows.append([_named(origin, name), *cells])
    return rows


def error_table(results: Results, level: str) -> str:
    """Mean absolute errors at one level."""
    head = ("estimator", "no draws", *(f"{budget}" for budget in results.budgets))
    rows = _grid(results, level, lambda row: decimals(row["error"], 4), (LIBRARY, PRINTED, OWN))
    return table(head, rows)


def ratio_table(results: Results) -> str:
    """Errors as shares of that of counting with as many passes, at the middle and the largest budget."""
    budgets = results.middle, results.budgets[-1]
    rows = []
    for origin, name in _entrants(results, (LIBRARY, PRINTED, OWN)):
        cells: list[str] = []
        for level in results.levels:
            frame = results.estimators
            own = frame[(frame["level"] == level) & (frame["origin"] == origin) & (frame["estimator"] == name)]
            chosen = own[own["budget"].isin((0, *budgets))].sort_values("budget")
            cells.append(slashed(chosen["ratio"], 2))
        rows.append([_named(origin, name), *cells])
    return table((f"estimator, with {budgets[0]} / {budgets[-1]} draws", *results.levels), rows)


def best_table(results: Results) -> str:
    """The estimator with the smallest mean error within so many passes."""
    frame = results.estimators[results.estimators["networks"] == len(results.names)]
    costs = [
        1,
        results.one(results.levels[0], LIBRARY, "taylor", 0)["passes"],
        *(b + b % 2 + 1 for b in results.budgets),
    ]
    rows = []
    for passes in sorted(set(costs)):
        cells = []
        for level in results.levels:
            own = frame[(frame["level"] == level) & (frame["passes"] <= passes + 0.5)]
            best = own.loc[own["error"].round(6).idxmin()]  # of equals the first, which is the library's
            budget = f", {best['budget']} draws" if best["budget"] else ""
            counted = own[(own["estimator"] == "monte_carlo") & (own["origin"] == LIBRARY)]["error"].min()
            named = _named(best["origin"], best["estimator"]) + budget
            cells.append(f"{named}: {interval(best, 'error', 4)}; counting {decimals(counted, 4)}")
        rows.append([decimals(passes, 0), *cells])
    return table(("passes at most", *(f"{level} noise" for level in results.levels)), rows)


def rank_table(results: Results) -> str:
    """Kendall's tau with the truth."""
    budget = results.middle
    rows = []
    for origin, name in _entrants(results, (LIBRARY, PRINTED, OWN)):
        cells = []
        for level in results.levels:
            frame = results.estimators
            own = frame[(frame["level"] == level) & (frame["origin"] == origin) & (frame["estimator"] == name)]
            found = own[own["budget"].isin((0, budget))].to_dict("records")
            cells.append(interval(found[0], "kendall", 2) if found else "")
        rows.append([_named(origin, name), *cells])
    return table((f"estimator, with {budget} draws", *results.levels), rows)


def softmax_table(results: Results) -> str:
    """Softmax beside one linearisation and few copies."""
    few = results.middle
    rows = []
    for name, budget in (("softmax", 0), ("taylor", 0), ("monte_carlo", few), ("shrinkage", few)):
        for level in results.levels:
            row = results.one(level, LIBRARY, name, budget)
            rows.append([
                f"`{name}`" + (f", {budget} draws" if budget else ""), level, decimals(row["passes"], 0),
                interval(row, "error", 3), decimals(row["bias"], 3),
                decimals(row["spearman"], 2), decimals(row["kendall"], 2),
            ])  # fmt: skip
    return table(("estimator", "noise", "passes", "error of p_robust", "bias", "Spearman", "Kendall"), rows)


def printed_table(results: Results) -> str:
    """The paper's MMSE beside the library's with as many draws."""
    rows = []
    for budget in results.budgets:
        cells = []
        for origin, name in ((PRINTED, "mmse"), (LIBRARY, "mmse linear"), (LIBRARY, "mmse"), (PRINTED, "mmse_mvs")):
            numbers = [results.one(level, origin, name, budget)["error"] for level in results.levels]
            cells.append(slashed(numbers, 3))
        rows.append([f"{budget}", *cells])
    return table(("draws", "as printed", "in pairs", "in pairs, its variance mended", "as printed, sigmoid"), rows)


def auc_table(results: Results) -> str:
    """AUC of each free score for each outcome."""
    outcomes = [*(f"noise, {level}" for level in results.levels), *OUTCOMES]
    rows = []
    for name in dict.fromkeys(results.scores["score"]):
        found = [results.foretells(outcome, name) for outcome in outcomes]
        cells = [interval(row, "auc", 2) for row in found]
        rows.append([f"`{name}`", decimals(found[0]["passes"], 0), *cells])
    return table(("score", "passes", *outcomes), rows)


def interval_table(results: Results) -> str:
    """Intervals, those that surely miss, and their width at the fewest and the most draws."""
    few, most = results.budgets[0], results.budgets[-1]
    frame = results.estimators[results.estimators["origin"].isin((LIBRARY, OWN))]
    rows = []
    for name in dict.fromkeys(frame[frame["intervals"] > 0]["estimator"]):
        for level in results.levels:
            own = frame[(frame["estimator"] == name) & (frame["level"] == level)]
            count, missed, outside = (int(own[name].sum()) for name in ("intervals", "missed", "outside"))
            if not count:
                continue
            low, high = clopper_pearson(missed, count, 1 - NOMINAL)
            ends = own.set_index("budget")["width"]
            widths = [decimals(ends[budget], 3) for budget in (few, most) if budget in ends.index] or [
                decimals(ends.iloc[0], 3)
            ]
            share = f"{missed} ({percent(missed / count, 1)}; {percent(float(low), 1)} to {percent(float(high), 1)})"
            rows.append([f"`{name}`", level, f"{count:,}", share, percent(outside / count, 1), " / ".join(widths)])
    head = ("estimator", "noise", "intervals", "surely miss", "without the count", f"mean width, {few} / {most} draws")
    return table(head, rows)


def losses(results: Results) -> str:
    """Where `moments` and the default are further off than counting the same copies, or as many."""
    most, rows = results.budgets[-1], []
    for name in ("moments", "shrinkage, all draws"):
        for level in results.levels:
            for network in results.worse(level, (LIBRARY, name, most), (LIBRARY, "monte_carlo", most)):
                errors = [results.of_networks(level, LIBRARY, one, most)[network] for one in (name, "monte_carlo")]
                bias = results.of_networks(level, LIBRARY, name, most, "bias")[network]
                cells = [f"`{name}`", f"`{network}`", level, *(decimals(one, 4) for one in errors), decimals(bias, 4)]
                rows.append(cells)
    if not rows:
        return f"With {most} draws there is no such network."
    head = (f"estimator, {most} draws", "network", "noise", "error", "counting the same copies", "bias")
    return table(head, rows)


def against_printed(results: Results) -> str:
    """Levels and budgets at which the library's MMSE is further off than the paper's."""
    rows = []
    for level in results.levels:
        for budget in results.budgets:
            pair = (LIBRARY, "mmse", budget), (PRINTED, "mmse", budget)
            ours, theirs = (results.one(level, *one)["error"] for one in pair)
            if ours > theirs:
                lost = f"{len(results.worse(level, *pair))} of {len(results.names)}"
                rows.append([level, f"{budget}", decimals(ours, 4), decimals(theirs, 4), lost])
    if not rows:
        return "There is none."
    return table(("noise", "draws", "`mmse`", "`mmse` as printed", "networks on which it is further off"), rows)


def missing_intervals(results: Results) -> str:
    """Network, level and estimator where more intervals surely miss than 1 in 100 explains."""
    frame = results.errors[(results.errors["origin"] == LIBRARY) & results.errors["estimator"].isin(SAMPLED)]
    total = frame.groupby(["estimator", "network", "level"], sort=False)[["intervals", "missed"]].sum().reset_index()
    total["share"] = total["missed"] / total["intervals"]
    bad = total[total["share"] > NOMINAL].sort_values("share", ascending=False)
    if bad.empty:
        return "There is none."
    rows = [
        [
            f"`{one.estimator}`",
            f"`{one.network}`",
            one.level,
            f"{one.intervals}",
            f"{one.missed} ({percent(one.share)})",
        ]
        for one in bad.itertuples()
    ]
    return table(("estimator", "network", "noise", "intervals, all budgets", "surely miss"), rows)


def absent_table(tables: Tables) -> str:
    """Scores that a network does not have."""
    frame = tables["absent"].to_pandas()
    if frame.empty:
        return "Every network has every score."
    return table(("network", "score", "reason"), frame[["network", "score", "reason"]].to_numpy().tolist())
