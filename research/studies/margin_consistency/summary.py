"""The results of the study, from the tables that its steps left; the library's own analyses do the arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from brittle.analysis import detection, margin_consistency
from brittle.analysis.correlation import kendall_tau
from studies.margin_consistency.facts import NORMS
from studies.margin_consistency.few import from_few
from studies.margin_consistency.margins import SCORES
from studies.networks import names_of
from studies.study import Tables
from studies.tables import Frame, as_table

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Quantiles of the margins that are perturbation sizes, besides that of the network."""

FEWEST = 5
"""Points of either kind below which no detection is measured."""

BINS = 8
"""Groups of equally many points by logit margin, in the picture, at most."""

CONFIDENCE = 0.95

EQUAL = 1e-4
"""Share by which distances of single precision may differ and be equal."""

Row = dict[str, Any]


def summarise(kept: Mapping[str, Tables], seed: int) -> Tables:
    """The tables, by their names; the functions that make their rows say what these hold."""
    rows: dict[str, list[Row]] = {
        name: [] for name in ("networks", "epsilons", "scores", "bins", "few", "checked", "fab", "pseudo")
    }
    for name in names_of(kept):
        about = kept[f"{name}/margins {NORMS[0]}"]["about"].to_pandas().iloc[0].to_dict()
        own = {"network": name, "dataset": about["dataset"], "group": about["group"]}
        for norm in NORMS:
            tables = kept[f"{name}/margins {norm}"]
            points, one = tables["points"].to_pandas(), own | {"norm": norm}
            row = one | {key: about[key] for key in ("architecture", "way", "effort")}
            rows["networks"].append(row | consistency(points, about[norm]))
            rows["epsilons"] += [one | found for found in by_epsilon(points)]
            rows["scores"] += [one | found for found in by_score(points)]
            if norm == NORMS[0]:
                rows["networks"][-1] |= equidistance(tables["head"].to_pandas()["distance"].to_numpy())
                rows["bins"] += [own | found for found in binned(points)]
                everything = kept[f"{name}/attacked"]["all"].to_pandas()
                standard = kept.get(f"{name}/standard", {}).get("standard")
                held = (
                    np.zeros(0, dtype=bool) if standard is None else standard["robust"].to_numpy(zero_copy_only=False)
                )
                rows["few"] += [own | found for found in from_few(points, everything, held, about[norm], seed)]
        checked = kept[f"{name}/checked"]["checked"].to_pandas()
        rows["checked"] += [own | found for found in by_other_means(checked)]
        rows["fab"].append(own | beside_fab(kept[f"{name}/fab"]["fab"].to_pandas()))
        if f"{name}/pseudo" in kept:
            points = kept[f"{name}/margins {NORMS[0]}"]["points"].to_pandas()
            learned = kept[f"{name}/pseudo"]["pseudo"].to_pandas()
            rows["pseudo"] += [own | found for found in pseudo(points, learned)]
    return {name: as_table(pd.DataFrame(found)) for name, found in rows.items() if found}


def beside_fab(margins: Frame) -> Row:
    """At how many points the library's margin is shorter than FAB's, at how many longer, and the median of their ratio.

    Within `EQUAL` they are equal.
    """
    ratio = (margins["fab"] / margins["margin"])[np.isfinite(margins["margin"]) & (margins["margin"] > 0)]
    return {
        "points": len(ratio), "nearer": int((ratio > 1 + EQUAL).sum()), "further": int((ratio < 1 - EQUAL).sum()),
        "ratio": float(ratio.median()),
    }  # fmt: skip


def right_points(points: Frame) -> Frame:
    """The points that are predicted right: all that follows is about these."""
    return points[points["right"]]


def tau_of(points: Frame, score: str = "logit_margin") -> float:
    """Kendall's tau-b between a score and the input margins of the right points; NaN where either does not vary."""
    right = right_points(points)
    there = right[score].notna() & right["margin"].notna()
    return kendall_tau(right["margin"][there].to_numpy(), right[score][there].to_numpy())


def detected(margin: Any, score: Any, epsilon: float) -> Row:
    """AUROC, AUPR and FPR at 95% TPR of points within `epsilon`; NaN with fewer than `FEWEST` of either kind."""
    margin, score = np.asarray(margin, dtype=np.float64), np.asarray(score, dtype=np.float64)
    there = np.isfinite(score) & ~np.isnan(margin)
    fragile = int((margin[there] <= epsilon).sum())
    row = {"epsilon": epsilon, "positives": fragile, "auroc": np.nan, "aupr": np.nan, "fpr95": np.nan}
    if min(fragile, int(there.sum()) - fragile) >= FEWEST:
        found = detection(margin, score, epsilon, CONFIDENCE)
        row |= {"auroc": found.auroc, "aupr": found.aupr, "fpr95": found.fpr_at_95_tpr}
    return row


def consistency(points: Frame, epsilon: float) -> Row:
    """Of one network and norm: table 1, how the search went, and how far the features move (figure 6).

    Points at which nothing was found have an infinite margin: they tie as the farthest, and are robust at any size.
    `middle` is the median of the finite margins, and `width` how far their quartiles lie apart, as a share of it.
    """
    right = right_points(points)
    margin, logit = right["margin"].to_numpy(), right["logit_margin"].to_numpy()
    found = margin_consistency(margin, logit, CONFIDENCE)
    moved = right[["margin", "feature_distance"]].replace(np.inf, np.nan).dropna()
    ratios = (moved["feature_distance"] / moved["margin"])[moved["margin"] > 0].quantile([0.25, 0.75])
    finite = margin[np.isfinite(margin)]
    middle = float(np.median(finite)) if len(finite) else np.nan
    return {
        "points": len(points), "right": len(right),
        "failed": int(np.isinf(margin).sum()), "masked": int((right["status"] == "masked").sum()),
        "passes": float(points["passes"].mean()),
        "tau": found.value, "tau_low": found.low, "tau_high": found.high,
        "tau_of_all": kendall_tau(points["margin"].to_numpy(), points["logit_margin"].to_numpy()),
        "accuracy": float(points["right"].mean()),
        "robust": float((points["right"] & (points["margin"] > epsilon)).mean()),
        "width": float(np.diff(np.quantile(finite, (0.25, 0.75)))[0] / middle) if middle > 0 else np.nan,
        "middle": middle, "auroc_middle": detected(margin, logit, middle)["auroc"],
        "moved": moved.corr("spearman").iloc[0, 1],
        "spread": ratios[0.75] / ratios[0.25] if ratios[0.25] > 0 else np.nan,
    } | detected(margin, logit, epsilon)  # fmt: skip


def by_epsilon(points: Frame) -> list[Row]:
    """Detection by the logit margin at quantiles of the margins of the right points (figure 9)."""
    right = right_points(points)
    margin = right["margin"].to_numpy()
    if not np.isfinite(margin).any():
        return []
    sizes = np.quantile(margin[np.isfinite(margin)], LEVELS)
    return [
        {"level": level} | detected(margin, right["logit_margin"], float(size))
        for level, size in zip(LEVELS, sizes, strict=True)
    ]


def by_score(points: Frame) -> list[Row]:
    """Tau, and AUROC at the median margin, of each score that may stand in for the input margin."""
    right = right_points(points)
    margin = right["margin"].to_numpy()
    finite = margin[np.isfinite(margin)]
    middle = float(np.median(finite)) if len(finite) else np.nan
    return [
        {
            "score": score,
            "tau": tau_of(points, score),
            "auroc": detected(margin, right[score], middle)["auroc"],
        }
        for score in SCORES
        if right[score].notna().any()
    ]


def binned(points: Frame) -> list[Row]:
    """The mean input margin of points with alike logit margins, and its standard error (figure 2)."""
    right = right_points(points)
    right = right[np.isfinite(right["margin"])].sort_values("logit_margin", kind="stable")
    rows = []
    for part in np.array_split(np.arange(len(right)), max(1, min(BINS, len(right) // 2))):
        own = right.iloc[part]
        if len(own) > 1:
            margin, error = float(own["margin"].mean()), float(own["margin"].std() / np.sqrt(len(own)))
            rows.append({"logit_margin": float(own["logit_margin"].mean()), "margin": margin, "error": error})
    return rows


def equidistance(distances: Any) -> Row:
    """How alike the distances between the rows of the head are: deviation and range over the mean (figure 13)."""
    if len(distances) < 2:  # two classes have one distance
        return {"pairs": len(distances), "variation": np.nan, "nearest": np.nan, "farthest": np.nan}
    shares = distances / distances.mean()
    return {
        "pairs": len(distances),
        "variation": float(shares.std()),
        "nearest": float(shares.min()),
        "farthest": float(shares.max()),
    }


def by_other_means(checked: Frame) -> list[Row]:
    """Of each norm: points, how many inputs found are what they are said to be, and near which nothing else was."""
    rows = []
    for norm, own in checked.groupby("norm", sort=False):
        finite = own[np.isfinite(own["margin"])]
        ratio = (finite["margin"] / finite["exact"]).to_numpy()
        known = np.isfinite(ratio).all() and len(ratio) > 0
        rows.append({
            "norm": norm, "points": len(finite), "there": int(finite["there"].sum()), "held": int(finite["held"].sum()),
            "exact_mean": float(ratio.mean()) if known else np.nan,
            "exact_least": float(ratio.min()) if known else np.nan,
            "exact_most": float(ratio.max()) if known else np.nan,
        })  # fmt: skip
    return rows


def pseudo(points: Frame, learned: Frame) -> list[Row]:
    """Table 2: tau, and detection at the median margin, of the logit margin and of what was learned."""
    both = points.assign(**{f"pseudo-margin, {name}": learned[name] for name in ("features", "features and head")})
    right = right_points(both)
    middle = float(np.median(right["margin"][np.isfinite(right["margin"])]))
    return [
        {"score": score, "learned": int(learned["learned"].iloc[0]), "tau": tau_of(both, score)}
        | detected(right["margin"], right[score], middle)
        for score in ("logit_margin", "feature_margin", "pseudo-margin, features", "pseudo-margin, features and head")
        if right[score].notna().any()
    ]
