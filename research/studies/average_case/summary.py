"""The results of the study, from the tables that its steps left."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy import stats

from studies.average_case.constants import needed
from studies.average_case.estimating import COUNTED, MMSE_, SOFTMAX, TAYLOR
from studies.average_case.measures import GLOBAL
from studies.average_case.timing import PAPER_COPIES
from studies.counting import equal_copies, error_of_counting
from studies.networks import names_of
from studies.ranks import spearman
from studies.study import Tables
from studies.tables import RUNTIMES, Frame, as_table, frames_of

FACTS = ["network", "dataset", "architecture", "way", "strength"]

COPIES = (10, 30, 100, 300, 1000, 3000, PAPER_COPIES)
"""Noisy copies that the error of counting is given for."""

PAPER_REFERENCE = 50_000
"""Copies that the workshop paper sets fewer beside."""

BASE = 100
"""Copies whose error is compared with an estimator's, to find how many have the same."""

QUANTILES = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}

PAIRS = 130
"""Pairs of integral and sigmoid that are kept for the picture; those where both are 1 are left out."""

ONE = 0.999

FEWEST_CLASSES = 3
"""Below which nothing is said of their order."""


def summarise(tables_by_step: Mapping[str, Tables], seed: int) -> Tables:
    """Return the tables of the results: most hold a row for each network and sigma."""
    parts: dict[str, list[pd.DataFrame]] = {}
    for name in names_of(tables_by_step):
        for table, frame in of_network(name, tables_by_step).items():
            parts.setdefault(table, []).append(frame)
    results = {name: pd.concat(frames, ignore_index=True) for name, frames in parts.items()}
    results["images"] = shown_images(results["images"], results["networks"])
    pairs = results["pairs"].query("sigmoid < @ONE or integral < @ONE")
    results["pairs"] = pairs.sample(min(PAIRS, len(pairs)), random_state=seed).sort_index()
    results["problems"] = problem_errors(tables_by_step[GLOBAL]["problems"].to_pandas())
    tables: dict[str, pa.Table] = {name: as_table(frame) for name, frame in results.items()}
    return tables | {"counterexample": tables_by_step[GLOBAL]["counterexample"], **tables_by_step[RUNTIMES]}


def of_network(name: str, tables_by_step: Mapping[str, Tables]) -> dict[str, pd.DataFrame]:
    """Return the results of one network."""
    facts = tables_by_step[f"{name}/truth"]["network"].to_pandas()
    truth = tables_by_step[f"{name}/truth"]["truth"].to_pandas()
    estimates = tables_by_step[f"{name}/estimates"]["estimates"].to_pandas()
    sample = frames_of(tables_by_step[f"{name}/many"])
    sigma = float(sample["bias"]["sigma"].iloc[0])
    sigmoid = tables_by_step[f"{name}/estimates"]["sigmoid"].to_pandas()
    curvature = tables_by_step[f"{name}/curvature"]["curvature"].to_pandas()
    at = truth[truth["sigma"] == sigma].head(len(curvature)).reset_index(drop=True)
    printed = tables_by_step[f"{name}/printed"]["printed"].to_pandas()
    printed_truth = truth[(truth["sigma"] == sigma) & truth["point"].isin(printed["point"])]
    curved = curvature.assign(flips=at["flips"], draws=at["draws"])
    for estimator in (TAYLOR, MMSE_):
        facts_of_network = estimates[(estimates["sigma"] == sigma) & (estimates["estimator"] == estimator)]
        best = facts_of_network[facts_of_network["draws"] == facts_of_network["draws"].max()]["p_robust"].to_numpy()
        curved[estimator] = best[: len(curvature)]
    frames = {
        "errors": errors(truth, estimates),
        "printed": errors(printed_truth, printed),
        "robustness": robustness(truth),
        "counting": counting(truth[truth["sigma"] == sigma]),
        "sigmoid": sigmoid_errors(sigmoid),
        "softmax": pd.DataFrame([correlations(sample["points"]) | {"sigma": sigma}]),
        "classes": sample["classes"],
        "bias": sample["bias"].assign(mmse_rank=class_rank(sample["classes"])),
        "separability": sample["separability"],
        "images": sample["images"],
        "curvature": needed(curved).assign(sigma=sigma),
        "pairs": sigmoid[["sigma", "integral", "sigmoid", "scaled"]],
    }
    facts_of_network = facts[FACTS].iloc[0].to_dict()
    sized = {
        "points": truth["point"].nunique(), "reference": int(truth["draws"].iloc[0]), "many": len(sample["points"]),
        "printed_points": len(printed_truth),
    }  # fmt: skip
    return {table: frame.assign(**facts_of_network) for table, frame in frames.items()} | {
        "networks": facts.assign(sigma=sigma, **sized)
    }


def errors(truth: Frame, estimates: Frame) -> pd.DataFrame:
    """Each estimator beside the count at each sigma.

    `error` is the mean absolute difference from the count, `bias` the mean difference, `copies` the number of noisy
    copies by which counting is as far off, `floor` the error that the count itself makes of a perfect estimator, and
    `missing` the share of points without a number.
    """
    rows = []
    for (sigma, estimator, draws), group in estimates.groupby(["sigma", "estimator", "draws"], sort=False):
        counted = truth[truth["sigma"] == sigma]
        reference = int(counted["draws"].iloc[0])
        flip = counted["flips"].to_numpy() / reference
        off = group["p_robust"].to_numpy() - (1 - flip)
        error, base = float(np.nanmean(np.abs(off))), error_of_counting(flip, BASE, reference)
        rows.append({
            "sigma": sigma, "estimator": estimator, "draws": draws, "passes": float(group["passes"].mean()),
            "error": error, "bias": float(np.nanmean(off)), "missing": float(np.isnan(off).mean()),
            "copies": equal_copies(error / base, BASE, reference) if base > 0 else np.nan,
            "floor": error_of_counting(flip, reference, reference) / np.sqrt(2), "kept": float(1 - flip.mean()),
        })  # fmt: skip
    return pd.DataFrame(rows)


def robustness(truth: Frame) -> pd.DataFrame:
    """Mean and quantiles over points of the counted `p_robust` at each sigma."""
    holding = truth.assign(kept=1 - truth["flips"] / truth["draws"]).groupby("sigma")["kept"]
    return pd.DataFrame(
        {"mean": holding.mean(), **{name: holding.quantile(at) for name, at in QUANTILES.items()}}
    ).reset_index()


def counting(truth: Frame) -> pd.DataFrame:
    """Return the mean absolute difference of a count from one of `PAPER_REFERENCE` copies, by the number of copies."""
    flip = (truth["flips"] / truth["draws"]).to_numpy()
    mean_errors = [error_of_counting(flip, copies, PAPER_REFERENCE) for copies in COPIES]
    return pd.DataFrame({"copies": COPIES, "error": mean_errors})


def sigmoid_errors(frame: Frame) -> pd.DataFrame:
    """Mean absolute difference from the integral of both sigmoids at each sigma, and Pearson's correlation."""
    rows = []
    for sigma, group in frame.groupby("sigma", sort=False):
        row = {"sigma": sigma, "points": len(group)}
        for name in ("sigmoid", "scaled"):
            row |= {name: float((group[name] - group["integral"]).abs().mean())}
            row |= {f"{name}_pearson": pearson(group["integral"], group[name])}
        rows.append(row)
    return pd.DataFrame(rows)


def problem_errors(frame: Frame) -> pd.DataFrame:
    """Return the same on the random problems of each kind and dimension, and the mean difference with its sign."""
    rows = []
    for (kind, dimension), group in frame.groupby(["kind", "dimension"], sort=False):
        row: dict[str, object] = {"kind": kind, "dimension": dimension, "count": len(group)}
        for name in ("sigmoid", "scaled"):
            off = group[name] - group["integral"]
            row |= {name: float(off.abs().mean()), f"{name}_bias": float(off.mean())}
            row |= {f"{name}_pearson": pearson(group["integral"], group[name])}
        rows.append(row)
    return pd.DataFrame(rows)


def correlations(points: Frame) -> dict[str, float]:
    """Softmax beside `p_robust`, counted and by MMSE."""
    coefficients = {}
    for name in (COUNTED, MMSE_):
        pairs = points[[SOFTMAX, name]].dropna()
        coefficients[f"pearson_{name}"] = pearson(pairs[SOFTMAX], pairs[name])
        coefficients[f"spearman_{name}"] = spearman(pairs[SOFTMAX], pairs[name])
    return coefficients


def class_rank(classes: Frame) -> float:
    """Spearman's correlation over classes of the means by MMSE and by counting; NaN for two, whose order is a guess."""
    return spearman(classes["mean"], classes[MMSE_]) if len(classes) >= FEWEST_CLASSES else np.nan


def pearson(x: Frame, y: Frame) -> float:
    """Pearson's correlation, NaN where one does not vary."""
    return float(np.asarray(stats.pearsonr(x, y))[0]) if min(x.nunique(), y.nunique()) > 1 else np.nan


def shown_images(images: Frame, networks: Frame) -> Frame:
    """Those of the most accurate network of each data set that is not linear, where there is another."""
    ordered = networks.assign(linear=networks["architecture"] == "linear").sort_values(
        ["linear", "accuracy"], ascending=[True, False], kind="stable"
    )
    return images[images["network"].isin(set(ordered.drop_duplicates("dataset")["network"]))]
