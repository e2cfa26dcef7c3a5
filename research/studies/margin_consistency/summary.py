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


def summarise(tables_by_step: Mapping[str, Tables], seed: int) -> Tables:
    """Return the tables, by their names; the functions that make their rows say what these hold."""
    rows: dict[str, list[Row]] = {
        name: [] for name in ("networks", "epsilons", "scores", "bins", "few", "checked", "fab", "pseudo")
    }
    for name in names_of(tables_by_step):
        about = tables_by_step[f"{name}/margins {NORMS[0]}"]["about"].to_pandas().iloc[0].to_dict()
        keys = {"network": name, "dataset": about["dataset"], "group": about["group"]}
        for norm in NORMS:
            tables = tables_by_step[f"{name}/margins {norm}"]
            points, norm_keys = tables["points"].to_pandas(), keys | {"norm": norm}
            row = norm_keys | {key: about[key] for key in ("architecture", "way", "effort")}
            rows["networks"].append(row | consistency(points, about[norm]))
            rows["epsilons"] += [norm_keys | entry for entry in by_epsilon(points)]
            rows["scores"] += [norm_keys | entry for entry in by_score(points)]
            if norm == NORMS[0]:
                rows["networks"][-1] |= equidistance(tables["head"].to_pandas()["distance"].to_numpy())
                rows["bins"] += [keys | entry for entry in binned(points)]
                everything = tables_by_step[f"{name}/attacked"]["all"].to_pandas()
                standard = tables_by_step.get(f"{name}/standard", {}).get("standard")
                held = (
                    np.zeros(0, dtype=bool) if standard is None else standard["robust"].to_numpy(zero_copy_only=False)
                )
                rows["few"] += [keys | entry for entry in from_few(points, everything, held, about[norm], seed)]
        checked = tables_by_step[f"{name}/checked"]["checked"].to_pandas()
        rows["checked"] += [keys | entry for entry in by_other_means(checked)]
        rows["fab"].append(keys | beside_fab(tables_by_step[f"{name}/fab"]["fab"].to_pandas()))
        if f"{name}/pseudo" in tables_by_step:
            points = tables_by_step[f"{name}/margins {NORMS[0]}"]["points"].to_pandas()
            learned = tables_by_step[f"{name}/pseudo"]["pseudo"].to_pandas()
            rows["pseudo"] += [keys | entry for entry in pseudo(points, learned)]
    return {name: as_table(pd.DataFrame(entries)) for name, entries in rows.items() if entries}


def beside_fab(margins: Frame) -> Row:
    """Count the points where the library's margin is shorter or longer than FAB's, with the median of their ratio.

    Within `EQUAL` they are equal.
    """
    ratio = (margins["fab"] / margins["margin"])[np.isfinite(margins["margin"]) & (margins["margin"] > 0)]
    return {
        "points": len(ratio), "nearer": int((ratio > 1 + EQUAL).sum()), "further": int((ratio < 1 - EQUAL).sum()),
        "ratio": float(ratio.median()),
    }  # fmt: skip


def right_points(points: Frame) -> Frame:
    """Return the points that are predicted right: all that follows is about these."""
    return points[points["right"]]


def tau_of(points: Frame, score: str = "logit_margin") -> float:
    """Kendall's tau-b between a score and the input margins of the right points; NaN where either does not vary."""
    correct = right_points(points)
    usable = correct[score].notna() & correct["margin"].notna()
    return kendall_tau(correct["margin"][usable].to_numpy(), correct[score][usable].to_numpy())


def detected(margin: Any, score: Any, epsilon: float) -> Row:
    """AUROC, AUPR and FPR at 95% TPR of points within `epsilon`; NaN with fewer than `FEWEST` of either kind."""
    margin, score = np.asarray(margin, dtype=np.float64), np.asarray(score, dtype=np.float64)
    usable = np.isfinite(score) & ~np.isnan(margin)
    fragile = int((margin[usable] <= epsilon).sum())
    row = {"epsilon": epsilon, "positives": fragile, "auroc": np.nan, "aupr": np.nan, "fpr95": np.nan}
    if min(fragile, int(usable.sum()) - fragile) >= FEWEST:
        result = detection(margin, score, epsilon, CONFIDENCE)
        row |= {"auroc": result.auroc, "aupr": result.aupr, "fpr95": result.fpr_at_95_tpr}
    return row


def consistency(points: Frame, epsilon: float) -> Row:
    """Return for one network and norm table 1, outcomes of the search, and movements of the features (figure 6).

    Points at which nothing was found have an infinite margin: they tie as the farthest, and are robust at any size.
    `middle` is the median of the finite margins, and `width` how far their quartiles lie apart, as a share of it.
    """
    correct = right_points(points)
    margin, logit = correct["margin"].to_numpy(), correct["logit_margin"].to_numpy()
    dependence = margin_consistency(margin, logit, CONFIDENCE)
    moved = correct[["margin", "feature_distance"]].replace(np.inf, np.nan).dropna()
    ratios = (moved["feature_distance"] / moved["margin"])[moved["margin"] > 0].quantile([0.25, 0.75])
    finite = margin[np.isfinite(margin)]
    middle = float(np.median(finite)) if len(finite) else np.nan
    return {
        "points": len(points), "right": len(correct),
        "failed": int(np.isinf(margin).sum()), "masked": int((correct["status"] == "masked").sum()),
        "passes": float(points["passes"].mean()),
        "tau": dependence.value, "tau_low": dependence.low, "tau_high": dependence.high,
        "tau_of_all": kendall_tau(points["margin"].to_numpy(), points["logit_margin"].to_numpy()),
        "accuracy": float(points["right"].mean()),
        "robust": float((points["right"] & (points["margin"] > epsilon)).mean()),
        "width": float(np.diff(np.quantile(finite, (0.25, 0.75)))[0] / middle) if middle > 0 else np.nan,
        "middle": middle, "auroc_middle": detected(margin, logit, middle)["auroc"],
        "moved": moved.corr("spearman").iloc[0, 1],
        "spread": ratios[0.75] / ratios[0.25] if ratios[0.25] > 0 else np.nan,
    } | detected(margin, logit, epsilon)  # fmt: skip


def by_epsilon(points: Frame) -> list[Row]:
    """Return detection by the logit margin at quantiles of the margins of the right points (figure 9)."""
    correct = right_points(points)
    margin = correct["margin"].to_numpy()
    if not np.isfinite(margin).any():
        return []
    sizes = np.quantile(margin[np.isfinite(margin)], LEVELS)
    return [
        {"level": level} | detected(margin, correct["logit_margin"], float(size))
        for level, size in zip(LEVELS, sizes, strict=True)
    ]


def by_score(points: Frame) -> list[Row]:
    """Tau, and AUROC at the median margin, of each score that may stand in for the input margin."""
    correct = right_points(points)
    margin = correct["margin"].to_numpy()
    finite = margin[np.isfinite(margin)]
    middle = float(np.median(finite)) if len(finite) else np.nan
    return [
        {
            "score": score,
            "tau": tau_of(points, score),
            "auroc": detected(margin, correct[score], middle)["auroc"],
        }
        for score in SCORES
        if correct[score].notna().any()
    ]


def binned(points: Frame) -> list[Row]:
    """Return the mean input margin of points with alike logit margins, and its standard error (figure 2)."""
    correct = right_points(points)
    correct = correct[np.isfinite(correct["margin"])].sort_values("logit_margin", kind="stable")
    rows = []
    for part in np.array_split(np.arange(len(correct)), max(1, min(BINS, len(correct) // 2))):
        group = correct.iloc[part]
        if len(group) > 1:
            margin, error = float(group["margin"].mean()), float(group["margin"].std() / np.sqrt(len(group)))
            rows.append({"logit_margin": float(group["logit_margin"].mean()), "margin": margin, "error": error})
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
    """Return per norm the points, the confirmed nearest inputs, and those without a nearer one."""
    rows = []
    for norm, group in checked.groupby("norm", sort=False):
        finite = group[np.isfinite(group["margin"])]
        ratio = (finite["margin"] / finite["exact"]).to_numpy()
        has_exact = np.isfinite(ratio).all() and len(ratio) > 0
        rows.append({
            "norm": norm, "points": len(finite), "there": int(finite["there"].sum()), "held": int(finite["held"].sum()),
            "exact_mean": float(ratio.mean()) if has_exact else np.nan,
            "exact_least": float(ratio.min()) if has_exact else np.nan,
            "exact_most": float(ratio.max()) if has_exact else np.nan,
        })  # fmt: skip
    return rows


def pseudo(points: Frame, learned: Frame) -> list[Row]:
    """Table 2: tau, and detection at the median margin, of the logit margin and of what was learned."""
    with_pseudo = points.assign(
        **{f"pseudo-margin, {name}": learned[name] for name in ("features", "features and head")}
    )
    correct = right_points(with_pseudo)
    middle = float(np.median(correct["margin"][np.isfinite(correct["margin"])]))
    return [
        {"score": score, "learned": int(learned["learned"].iloc[0]), "tau": tau_of(with_pseudo, score)}
        | detected(correct["margin"], correct[score], middle)
        for score in ("logit_margin", "feature_margin", "pseudo-margin, features", "pseudo-margin, features and head")
        if correct[score].notna().any()
    ]
