"""What the page of the study reads: tables and numbers in words, all of them from the results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from studies.expected_change.rules import HALF, MOST, TOLERANCE, papers, reach, read
from studies.expected_change.scored import PROBES
from studies.expected_change.summary import CONFIDENT, PAPERS, SURE
from studies.markdown import NOTHING, decimals, in_words, interval, percent, significant, table, with_ends
from studies.over_networks import over_networks
from studies.study import Tables
from studies.tables import Frame, minutes_of


def content(tables: Tables) -> Mapping[str, Any]:
    """The values of the template's names."""
    frames = read(tables)
    networks, changes, size = frames["networks"], frames["changes"], frames["size"].iloc[0]
    return {
        "factor": "`r^2 / (2n)`",
        "networks": len(networks),
        "bending": int((networks["group"] == "bends").sum()),
        "datasets": in_words(networks["dataset"]),
        "points": int(size["points"]),
        "radii": ", ".join(f"{one:g}" for one in sorted(set(changes["radius"]))),
        "pairs": int(size["pairs"]),
        "draws": int(size["draws"]),
        "probes": PROBES,
        "few": int(size["corrupted"]),
        "severities": ", ".join(str(one) for one in sorted(set(frames["corrupted"]["severity"]))),
        "kinds": ", ".join(f"`{one}`" for one in dict.fromkeys(frames["corrupted"]["kind"])),
        "tolerance": decimals(TOLERANCE, 1),
        "inverse": decimals(1 / TOLERANCE, 2),
        "most": percent(MOST),
        "half": percent(HALF),
        "sure": decimals(SURE, 1),
        "confident": decimals(CONFIDENT, 1),
        "errors_table": errors_table(changes, networks),
        "ratios_table": ratios_table(changes),
        "moments_table": moments_table(changes),
        "flips_table": flips_table(frames["flips"]),
        "flipping": papers(frames["flips"]).query("bottom > 0 or top > 0")["network"].nunique(),
        "ranking_table": ranking_table(frames["ranking"]),
        "corrupted_table": corrupted_table(frames["corrupted"]),
        "models_table": models_table(frames["models"]) if "models" in frames else "",
        "signs_table": signs_table(networks),
        "minutes": decimals(minutes_of(tables), 0),
    }


def errors_table(changes: Frame, networks: Frame) -> str:
    """The relative error of the Laplacian's prediction, and how far it holds, of each network."""
    reached = reach(changes)
    lengths = sorted(set(changes["radius"]))
    rows = []
    for one in networks.sort_values("group", kind="stable").itertuples():
        there = changes[changes["network"] == one.network]
        sigma = reached[one.network] / np.sqrt(one.inputs)
        rows.append((
            f"`{one.network}`", one.group, percent(one.kink),
            *(significant(value) for value in there["ratio"]), *map(error_of, papers(there).itertuples()),
            f"{reached[one.network]:g}" if sigma else "none", significant(sigma) if sigma else "-",
            percent(float(papers(there)["sign"].mean())),
        ))  # fmt: skip
    head = (
        "network", "kind", "kinks", *(f"r = {one:g}" for one in lengths), *(f"error, {one:g}" for one in PAPERS),
        "holds to r", "sigma", "sign right",
    )  # fmt: skip
    return table(head, rows)


def error_of(row: Any) -> str:
    """A relative error; where it is smaller than can be told, that."""
    return f"< {percent(row.told)}" if row.error < row.told else percent(row.error)


def ratios_table(changes: Frame) -> str:
    """Sign, order and size of the prediction by group and length, over networks."""
    found: Frame = over_networks(changes, ["group", "radius"], ["sign", "order", "falls"], [], 0)
    ratios = changes.groupby(["group", "radius"])["ratio"].quantile([0, 0.25, 0.75, 1]).unstack()
    rows = []
    for _, one in found.iterrows():
        ratio = ratios.loc[one["group"], one["radius"]]
        rows.append((
            one["group"], f"{one['radius']:g}", str(one["networks"]), with_ends(one, "sign", percent),
            interval(one, "order", 2), f"{significant(ratio[0.25])} to {significant(ratio[0.75])}",
            f"{significant(ratio[0])} to {significant(ratio[1])}", with_ends(one, "falls", percent),
        ))  # fmt: skip
    head = (
        "kind", "r", "networks", "sign right", "Spearman", "true by predicted, middle half", "least to most", "falls",
    )  # fmt: skip
    return table(head, rows)


def moments_table(changes: Frame) -> str:
    """Relative errors of the moments, medians over networks, and the bound."""
    names = ("sampled_mean", "sampled_variance", "tangent_variance", "sampled_absolute", "tangent_absolute", "loose")
    how: Any = dict.fromkeys(names, "median") | {"violated": "max"}
    found = changes.groupby(["group", "radius"])[[*how]].agg(how)
    rows = [
        (group, f"{radius:g}", *(percent(one[name]) for name in names[:-1]), significant(one["loose"]),
         percent(one["violated"], 1))
        for (group, radius), one in found.iterrows()
    ]  # fmt: skip
    head = (
        "kind", "r", "mean, sampled", "variance, sampled", "variance, gradient", "size, sampled", "size, gradient",
        "bound by size", "above the bound",
    )  # fmt: skip
    return table(head, rows)


def flips_table(flips: Frame) -> str:
    """Flips of the lowest and of the highest Laplacians among confident points, of each network with any."""
    frame = papers(flips)
    rows = []
    for network, own in frame.groupby("network", sort=False):
        if not (own[["bottom", "top"]] > 0).any(axis=None):
            continue
        cells = [f"{percent(one.top, 2)} / {percent(one.bottom, 2)}" for one in own.itertuples()]
        rows.append((f"`{network}`", str(int(own["group_size"].iloc[0])), *cells))
    return table(("network", "points each", *(f"r = {one:g}" for one in sorted(set(frame["radius"])))), rows)


def ranking_table(ranking: Frame) -> str:
    """AUC of each score for each outcome, over networks."""
    found: Frame = over_networks(ranking.dropna(subset="auc"), ["outcome", "among", "score"], ["auc"], [], 0)
    scores = [*dict.fromkeys(found["score"])]
    rows = []
    for (outcome, among), own in found.groupby(["outcome", "among"]):
        by_score = own.set_index("score")
        cells = [interval(by_score.loc[name], "auc", 2) if name in by_score.index else NOTHING for name in scores]
        rows.append((outcome, among, str(int(own["networks"].max())), *cells))
    return table(("lost by", "points", "networks", *(name.replace("_", " ") for name in scores)), rows)


def corrupted_table(corrupted: Frame) -> str:
    """The size of the Laplacian beside that of clean images, by kind and severity, over networks."""
    frame = corrupted.assign(ratio=corrupted["corrupted"] / corrupted["clean"])
    found: Frame = over_networks(frame, ["kind", "severity"], ["lost", "larger"], ["ratio"], 0)
    frame["above"] = frame["ratio"] > 1
    above = frame.groupby(["kind", "severity"])["above"].sum()
    rows = [
        (one["kind"], str(one["severity"]), with_ends(one, "ratio", significant),
         f"{above[one['kind'], one['severity']]} of {one['networks']}", percent(one["larger"]), percent(one["lost"], 1))
        for _, one in found.iterrows()
    ]  # fmt: skip
    return table(("kind", "severity", "size by clean", "larger mean on", "larger at", "class lost"), rows)


def models_table(models: Frame) -> str:
    """Each network beside the plain one."""
    rows = [
        (f"`{one.network}`", one.way, f"{percent(one.accuracy, 1)} ({percent(one.plain_accuracy, 1)})",
         f"{significant(one.norm)} ({significant(one.plain_norm)})",
         f"{significant(one.size)} ({significant(one.plain_size)})", significant(one.ratio), p_value(one.p),
         significant(one.change))
        for one in models.itertuples()
    ]  # fmt: skip
    head = (
        "network",
        "way",
        "accuracy (plain)",
        "norm of the weights (plain)",
        "size of the Laplacian (plain)",
        "ratio",
        "p",
        "counted change, ratio",
    )
    return table(head, rows)


def p_value(p: float) -> str:
    """A p-value with two digits, as a power of ten where it is small."""
    return significant(p) if p >= 0.001 else f"{p:.0e}"


def signs_table(networks: Frame) -> str:
    """The Laplacian over the points of each network."""
    rows = [
        (f"`{one.network}`", percent(one.right), percent(one.negative), significant(one.laplacian_right),
         significant(one.laplacian_wrong), significant(one.median_size), decimals(one.laplacian_confidence, 2),
         decimals(one.size_entropy, 2))
        for one in networks.itertuples()
    ]  # fmt: skip
    head = (
        "network", "right", "below zero", "mean if right", "mean if wrong", "median size", "with confidence",
        "size with entropy",
    )  # fmt: skip
    return table(head, rows)
