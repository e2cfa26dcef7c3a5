"""The results of the study, from the tables that its steps left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from studies.expected_change.measures import CONFIDENT, RADII
from studies.networks import names_of
from studies.ranks import auc, spearman
from studies.study import Tables
from studies.tables import Frame, as_table, frames_of

PAPERS = (0.5, 1.0, 2.0)
"""Lengths of the noise in the paper's table 1 and figure 4."""

SURE, FEWEST = 3.3, 5
"""Standard errors by which a counted number is surely not another; points of a kind below which nothing is said of
it."""

ALL, SURELY = "all", "confident"
"""Points that scores are to rank."""

RANKING = ("laplacian", "laplacian size", "max_probability", "probability_margin", "logit_margin", "entropy")
"""Scores that are to tell weak points from others."""

Array = NDArray[np.float64]


def summarise(tables_by_step: Mapping[str, Tables], seed: int) -> Tables:
    """`networks`, `changes`, `flips`, `ranking`, `corrupted`, `models`: of each network; `size`: how much was done."""
    del seed  # nothing is drawn here
    networks, changes, flips, ranking, corrupted, sizes = [], [], [], [], [], {}
    for name in names_of(tables_by_step):
        frames = {
            step: frames_of(tables_by_step[f"{name}/{step}"]) for step in ("points", "counted", "library", "corrupted")
        }
        about = frames["points"]["network"].iloc[0].to_dict()
        points, truth = frames["points"]["points"], frames["counted"]["changes"]
        lost = frames["corrupted"]["lost"]
        keys = {key: about[key] for key in ("network", "dataset")} | {"group": group_of(points)}
        networks.append(about | keys | of_points(points))
        for radius in RADII:
            at_radius = truth[truth["radius"] == radius].reset_index(drop=True)
            library = frames["library"]["changes"].query("radius == @radius").reset_index(drop=True)
            changes.append(
                keys | {"radius": radius} | of_changes(points, at_radius, library, radius, int(about["inputs"]))
            )
            flips.append(keys | {"radius": radius} | of_flips(points, at_radius["flips"].to_numpy()))
        weak = {"corruption": lost.groupby("point")["lost"].mean().to_numpy(dtype=np.float64)}
        weak |= {noise_of(length): truth[truth["radius"] == length]["flips"].to_numpy() for length in PAPERS}
        ranking += [keys | row for row in of_ranking(points, weak, ALL)]
        sure = frames_of(tables_by_step[f"{name}/confident"])
        if sure:
            lengths = sure["flips"].groupby("length", sort=False)["flips"]
            weak = {noise_of(length): flips.to_numpy() for length, flips in lengths}
            ranking += [keys | row for row in of_ranking(sure["points"], weak, SURELY)]
        corrupted += [keys | row for row in of_corrupted(points, lost, frames["corrupted"]["copies"])]
        sizes[name] = (points["laplacian"].abs().to_numpy(), truth[truth["radius"] == 1.0]["absolute"].to_numpy())
    rows_by_table = {
        "networks": networks, "changes": changes, "flips": flips, "ranking": ranking, "corrupted": corrupted,
        "models": of_models(pd.DataFrame(networks), sizes),
    }  # fmt: skip
    return {
        **{name: as_table(pd.DataFrame(rows)) for name, rows in rows_by_table.items() if rows},
        **tables_by_step["size"],
    }


def group_of(points: Frame) -> str:
    """`bends` where the network bends at most points, else `piecewise linear`."""
    return "bends" if points["bends"].mean() > 0.5 else "piecewise linear"


def of_points(points: Frame) -> dict[str, float]:
    """Return the Laplacian over points: by right and wrong predictions, its sign, its size, and beside confidence."""
    laplacian, correct = points["laplacian"].to_numpy(), points["right"].to_numpy()
    finite = np.isfinite(laplacian)
    wrong = finite & ~correct
    return {
        "points": len(points),
        "known": int(finite.sum()),
        "right": float(correct.mean()),
        "kink": float(points["kink"].mean()),
        "bent": float(points["bends"].mean()),
        "passes": float(points["passes"].mean()),
        "negative": float((laplacian[finite] < 0).mean()),
        "laplacian_right": float(laplacian[finite & correct].mean()) if (finite & correct).any() else np.nan,
        "laplacian_wrong": float(laplacian[wrong].mean()) if wrong.sum() >= FEWEST else np.nan,
        "size": float(np.abs(laplacian[finite]).mean()),
        "median_size": float(np.median(np.abs(laplacian[finite]))),
        "size_entropy": spearman(np.abs(laplacian), points["entropy"].to_numpy()),
        "laplacian_confidence": spearman(laplacian, points["max_probability"].to_numpy()),
    }


def relative_error(
    estimate: Array, truth: Array, truth_se: Array, estimate_se: Array | float = 0.0
) -> tuple[float, float]:
    """Return the root mean square of `estimate - truth` as a share of that of the truth, and its resolution.

    The mean of `(estimate - truth)^2` is that of the squared error plus that of `truth_se^2` (and of `estimate_se^2`,
    where the draws behind `estimate` are not the question), which are subtracted. The resolution is the root of these
    alone: a smaller error cannot be distinguished from none.
    """
    finite = np.isfinite(estimate)
    if not finite.any():
        return np.nan, np.nan
    spread = (truth_se[finite] ** 2 + (np.zeros_like(estimate) + estimate_se)[finite] ** 2).mean()
    square = ((estimate - truth)[finite] ** 2).mean() - spread
    truth_square = (truth[finite] ** 2 - truth_se[finite] ** 2).mean()
    if not truth_square > 0:
        return np.nan, np.nan
    return float(np.sqrt(max(square, 0.0) / truth_square)), float(np.sqrt(spread / truth_square))


def of_changes(points: Frame, truth: Frame, library: Frame, radius: float, inputs: int) -> dict[str, float]:
    """Compare the Laplacian's prediction `r^2 / (2 n) L`, sampled moments and bound with the truth at one radius.

    `sign` is the share of the points whose change is surely not 0 where the Laplacian has its sign; `ratio` the median
    there of true by predicted change. `violated` is the share of points where the mean size of the change is surely
    above the bound, `loose` the median of bound by mean size.
    """
    factor = radius**2 / (2 * inputs)
    predicted = factor * points["laplacian"].to_numpy()
    mean, error = truth["mean"].to_numpy(), truth["mean_se"].to_numpy()
    surely = (np.abs(mean) > SURE * error) & np.isfinite(predicted)
    same = np.sign(predicted) == np.sign(mean)
    size, size_se = truth["absolute"].to_numpy(), truth["absolute_se"].to_numpy()
    bound, high = library["bound"].to_numpy(), library["bound_high"].to_numpy()
    bounded = np.isfinite(bound) & (size > 0)
    off, resolution = relative_error(predicted, mean, error, factor * points["laplacian_se"].to_numpy())
    row = {
        "sigma": radius / np.sqrt(inputs),
        "error": off,
        "told": resolution,
        "surely": int(surely.sum()),
        "sign": float(same[surely].mean()) if surely.sum() >= FEWEST else np.nan,
        "ratio": float(np.median(mean[surely] / predicted[surely])) if surely.sum() >= FEWEST else np.nan,
        "order": spearman(predicted, mean),
        "falls": float((mean[surely] < 0).mean()) if surely.sum() >= FEWEST else np.nan,
        "bounded": int(bounded.sum()),
        "violated": float((size - SURE * size_se > high)[bounded].mean()) if bounded.any() else np.nan,
        "loose": float(np.median((bound / np.where(size > 0, size, 1))[bounded])) if bounded.any() else np.nan,
    }
    for name in ("mean", "variance", "absolute"):
        counted, counted_se = truth[name].to_numpy(), truth[f"{name}_se"].to_numpy()
        row[f"sampled_{name}"] = max(relative_error(library[name].to_numpy(), counted, counted_se))
        if name != "mean":
            row[f"tangent_{name}"] = max(relative_error(library[f"tangent_{name}"].to_numpy(), counted, counted_se))
    return row


def of_flips(points: Frame, flips: Array) -> dict[str, float]:
    """Table 1 and figure 4: flips of the confident points with the lowest and the highest Laplacian; a quarter each.

    And the mean Laplacian of the points that flipped at least once and of those that never did, with Welch's test.
    """
    frame = points.assign(flips=flips).dropna(subset="laplacian")
    ordered = frame[frame["max_probability"] >= CONFIDENT].sort_values("laplacian", kind="stable")["flips"].to_numpy()
    quarter = len(ordered) // 4
    ever = frame[frame["flips"] > 0]["laplacian"].to_numpy()
    never = frame[frame["flips"] == 0]["laplacian"].to_numpy()
    enough = min(len(ever), len(never)) >= FEWEST
    welch: Any = stats.ttest_ind(ever, never, equal_var=False) if enough else None
    return {
        "confident": len(ordered),
        "group_size": quarter,
        "bottom": float(ordered[:quarter].mean()) if quarter else np.nan,
        "top": float(ordered[-quarter:].mean()) if quarter else np.nan,
        "ever": len(ever),
        "laplacian_ever": float(ever.mean()) if enough else np.nan,
        "laplacian_never": float(never.mean()) if enough else np.nan,
        "p": float(welch.pvalue) if enough else np.nan,
    }


def noise_of(length: float) -> str:
    """Return the outcome of losing the class under noise of a length."""
    return f"noise of length {length:g}"


def of_ranking(points: Frame, outcomes: Mapping[str, Array], among: str) -> list[dict[str, Any]]:
    """How well each score tells weak points, with an outcome above the median, from the others."""
    safer = points.assign(**{"laplacian size": -points["laplacian"].abs(), "entropy": -points["entropy"]})
    rows = []
    for outcome, weak in outcomes.items():
        positive = weak > np.median(weak)
        rows += [
            {
                "outcome": outcome, "among": among, "score": name, "points": len(points), "weak": int(positive.sum()),
                "auc": auc(safer[name].to_numpy(), positive, FEWEST),
            }
            for name in RANKING
        ]  # fmt: skip
    return rows


def of_corrupted(points: Frame, lost: Frame, copies: Frame) -> list[dict[str, Any]]:
    """Mean size of the Laplacian on corrupted copies and on the same images clean, and the share of lost classes."""
    gone = lost.groupby(["kind", "severity"], sort=False)["lost"].mean()
    rows = []
    for (kind, severity), group in copies.groupby(["kind", "severity"], sort=False):
        after = group["laplacian"].abs().to_numpy()
        before = points["laplacian"].abs().to_numpy()[group["point"].to_numpy()]
        finite = np.isfinite(after) & np.isfinite(before)
        if finite.any():
            rows.append({
                "kind": kind, "severity": severity, "lost": float(gone[kind, severity]),
                "clean": float(before[finite].mean()), "corrupted": float(after[finite].mean()),
                "larger": float((after > before)[finite].mean()), "images": len(group),
            })  # fmt: skip
    return rows


def of_models(networks: Frame, sizes: Mapping[str, tuple[Array, Array]]) -> list[dict[str, Any]]:
    """Figure 6: each network beside the plain one of its data and architecture, at the same points.

    `ratio` is that of the mean size of the Laplacian, `p` of Welch's test on the sizes as in the paper; `change` is the
    ratio of the counted mean size of the change at radius 1.
    """
    rows = []
    for model in networks[(networks["way"] != "") & (networks["way"] != "plain")].itertuples():
        plain = networks[
            (networks["way"] == "plain")
            & (networks["dataset"] == model.dataset)
            & (networks["architecture"] == model.architecture)
        ]
        if len(plain):
            baseline = plain.iloc[0]
            (size, changed), (before, changed_before) = sizes[model.network], sizes[baseline["network"]]
            finite = np.isfinite(size) & np.isfinite(before)
            welch: Any = stats.ttest_ind(size[finite], before[finite], equal_var=False)
            rows.append({
                "network": model.network, "dataset": model.dataset, "architecture": model.architecture,
                "way": model.way, "group": model.group, "plain": baseline["network"], "accuracy": model.accuracy,
                "plain_accuracy": baseline["accuracy"], "norm": model.norm, "plain_norm": baseline["norm"],
                "size": float(size[finite].mean()),
                "plain_size": float(before[finite].mean()), "ratio": float(size[finite].mean() / before[finite].mean()),
                "p": float(welch.pvalue), "change": float(changed.mean() / changed_before.mean()),
            })  # fmt: skip
    return rows
