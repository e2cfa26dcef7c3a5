"""What the page of the study reads: tables and numbers in words, all of them from the results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from brittle.analysis.detection import TPR
from studies.groups import GROUPS
from studies.margin_consistency.facts import NORMS
from studies.margin_consistency.words import STRONG, frame_of
from studies.markdown import NOTHING, between, decimals, in_words, percent, significant, table
from studies.over_networks import CONFIDENCE, FEWEST
from studies.study import Tables
from studies.tables import Frame, minutes_of

NAMES = {"linf": "Linf", "l2": "L2"}


def content(tables: Tables) -> Mapping[str, Any]:
    """The values of the template's names."""
    networks, few = frame_of(tables, "networks"), frame_of(tables, "few")
    linf = networks[networks["norm"] == NORMS[0]]
    l2 = networks[networks["norm"] == NORMS[1]]
    return {
        "networks": len(linf),
        "datasets": in_words(linf["dataset"]),
        "points": int(linf["points"].max()),
        "points_euclidean": int(l2["points"].max()) if len(l2) else 0,
        "all_points": int(few["all"].max()) if len(few) else 0,
        "effort": linf["effort"].iloc[0],
        "passes": decimals(float(linf["passes"].mean()), 0),
        "wrong_matter": decimals(float((networks["tau_of_all"] - networks["tau"]).abs().max()), 2),
        "confidence": percent(CONFIDENCE),
        "fewest": FEWEST,
        "failed": int(networks["failed"].sum()),
        "masked": int(networks["masked"].sum()),
        "strong": decimals(STRONG, 2),
        "tables": {NAMES[norm]: consistency_table(networks[networks["norm"] == norm]) for norm in NORMS},
        "scores_table": scores_table(frame_of(tables, "scores")),
        "few_table": few_table(few),
        "head_table": head_table(linf),
        "checked_table": checked_table(frame_of(tables, "checked")),
        "pseudo_table": pseudo_table(frame_of(tables, "pseudo")),
        "tpr": percent(TPR),
        "minutes": decimals(minutes_of(tables), 0),
    }


def ordered(frame: Frame) -> Frame:
    """By group, the most consistent networks first."""
    places = {group: place for place, group in enumerate(GROUPS)}
    columns = [column for column in ("place", "tau") if column in ("place", *frame.columns)]
    ascending = [True, False][: len(columns)]
    return frame.assign(place=frame["group"].map(places)).sort_values(columns, ascending=ascending, kind="stable")


def consistency_table(frame: Frame) -> str:
    """Table 1 of the paper, for the networks here."""
    rows = [
        (
            f"`{one.network}`", one.group, f"{one.right}", between(one.tau, one.tau_low, one.tau_high, 2),
            percent(one.accuracy), significant(one.epsilon, 2), percent(one.robust), decimals(one.auroc, 2),
            decimals(one.aupr, 2), decimals(one.fpr95, 2), significant(one.middle, 2), decimals(one.auroc_middle, 2),
        )
        for one in ordered(frame).itertuples()
    ]  # fmt: skip
    head = (
        "network", "training", "points", "tau", "accuracy", "epsilon", "robust", "AUROC", "AUPR", "FPR",
        "median margin", "AUROC there",
    )  # fmt: skip
    return table(head, rows)


def scores_table(frame: Frame) -> str:
    """Mean tau of each score, by norm and group."""
    columns = [(norm, group) for norm in NORMS for group in GROUPS if len(_at(frame, norm, group))]
    rows = [
        (
            score.replace("_", " "),
            *(decimals(float(_at(part, norm, group)["tau"].mean()), 2) for norm, group in columns),
        )
        for score, part in frame.groupby("score", sort=False)
    ]
    return table(("score", *(f"{NAMES[norm]}, {group}" for norm, group in columns)), rows)


def _at(frame: Frame, norm: str, group: str) -> Frame:
    return frame[(frame["norm"] == norm) & (frame["group"] == group)]


def few_table(frame: Frame) -> str:
    """Errors of the robust accuracy from subsets, of each network."""
    rows = []
    for name, own in ordered(frame).groupby("network", sort=False) if len(frame) else []:
        first = own.iloc[0]
        cells = [
            f"{percent(one.estimate_error, 1)}, {percent(one.most, 1)}, {percent(one.counted_error, 1)}"
            for one in own.itertuples()
        ]
        shares = (percent(first[one], 1) for one in ("by_margins", "by_attack", "attacked"))
        rows.append((f"`{name}`", significant(first["epsilon"], 2), *shares, *cells))
    sizes = [f"{size} of {among}" for size, among in dict.fromkeys(zip(frame["size"], frame["among"], strict=True))]
    return table(("network", "epsilon", "by margins", "attacked", "attacked, all", *sizes), rows) if rows else NOTHING


def head_table(linf: Frame) -> str:
    """Distances between the rows of the head, and how features move."""
    rows = [
        (
            f"`{one.network}`", f"{int(one.pairs)}" if one.pairs == one.pairs else NOTHING, decimals(one.variation, 2),
            f"{decimals(one.nearest, 2)} to {decimals(one.farthest, 2)}", decimals(one.moved, 2),
            decimals(one.spread, 1),
        )
        for one in ordered(linf).itertuples()
    ]  # fmt: skip
    return table(("network", "pairs", "deviation", "range", "features keep distances", "factor"), rows)


def checked_table(frame: Frame) -> str:
    """The check of the search, a row a network, with both norms in each cell."""
    rows = []
    for name, own in frame.groupby("network", sort=False):
        each = [*own.itertuples()]
        exact = [f"{decimals(one.exact_mean, 4)} (to {decimals(one.exact_most, 4)})" for one in each]
        known = own["exact_mean"].notna().any()
        rows.append((
            f"`{name}`", _both(f"{one.there} of {one.points}" for one in each),
            _both(f"{one.points - one.held}" for one in each), _both(exact) if known else NOTHING,
        ))  # fmt: skip
    return table(("network", "confirmed", "nearer found", "found over exact"), rows)


def _both(cells: Iterable[str]) -> str:
    return " / ".join(cells)


def pseudo_table(frame: Frame) -> str:
    """Table 2 of the paper, for the weakest networks here."""
    rows = [
        (
            f"`{one.network}`", one.score.replace("_", " "), decimals(one.tau, 2), decimals(one.auroc, 2),
            decimals(one.aupr, 2), decimals(one.fpr95, 2),
        )
        for one in frame.itertuples()
    ]  # fmt: skip
    return table(("network", "score", "tau", "AUROC", "AUPR", "FPR"), rows) if rows else NOTHING
