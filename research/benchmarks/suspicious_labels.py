"""Rankings that find wrong labels, where one label in twenty of four real data sets is flipped at random.

    python research/benchmarks/suspicious_labels.py SHARED/data [--only digits cancer] [--seeds 3]

`crossval`: each fifth of the points is scored by a model that was trained on the flipped labels of the others.
`separate`: a model that was trained on true labels of one half scores the other half, whose labels are flipped.

A ranking puts all points in an order, the most suspicious label first. Printed for each: the precision among the first
`k`, `k` the number of flipped labels, and the average precision, each as the mean over the seeds with their standard
deviation. Also printed: of the points that are predicted wrong and hold under noise, how many are flipped, and how many
of as many points with the least probable label are. The rule of `brittle show RUN --wrong` was chosen on the first two
data sets; the others confirm it. The column of cleanlab needs the package.
"""

from __future__ import annotations

import argparse
import gzip
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import brittle
from brittle.analysis import class_votes

FLIPPED, FOLDS, COPIES = 0.05, 5, 50
"""Share of labels that are flipped, folds of the cross-validation, noisy copies behind a mean probability."""

ROWS = 2000
"""Rows of the census."""


class Perceptron:
    """A network of one hidden layer, trained by Adam, with the interface of an estimator."""

    def fit(self, x: NDArray, y: NDArray) -> Perceptron:
        torch.manual_seed(0)
        self.network = nn.Sequential(nn.Linear(x.shape[1], 64), nn.ReLU(), nn.Linear(64, int(y.max()) + 1))
        optimizer = torch.optim.Adam(self.network.parameters(), 3e-3, weight_decay=1e-4)
        inputs, labels = torch.from_numpy(x), torch.from_numpy(y)
        for _ in range(40):
            for rows in torch.randperm(len(x)).split(64):
                optimizer.zero_grad()
                nn.functional.cross_entropy(self.network(inputs[rows]), labels[rows]).backward()
                optimizer.step()
        self.network.eval().requires_grad_(False)
        return self

    def predict_proba(self, x: NDArray) -> NDArray:
        return self.network(torch.from_numpy(x)).double().softmax(dim=1).numpy()


@dataclass(frozen=True)
class Case:
    """Inputs, an array or a frame, their labels, the model to fit, and the noise of the scores."""

    x: Any
    y: NDArray
    make: Callable[[], Any]
    noise: str | None
    sigma: float


def digits(_: Path) -> Case:
    x, y = load_digits(return_X_y=True)
    return Case(np.asarray(x / 16, np.float32), np.asarray(y, np.int64), Perceptron, None, 0.1)


def census(folder: Path) -> Case:
    frame = pd.read_csv(folder / "census" / "census.csv").sample(ROWS, random_state=0, ignore_index=True)
    y = np.asarray(frame.pop("income-over-50k"), np.int64)
    texts = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    frame = frame.astype(dict.fromkeys(texts, "category"))
    return Case(frame, y, lambda: HistGradientBoostingClassifier(max_iter=50, random_state=0), "per-feature", 0.3)


def cancer(_: Path) -> Case:
    x, y = load_breast_cancer(return_X_y=True)
    y = np.asarray(y, np.int64)
    return Case(x, y, lambda: make_pipeline(StandardScaler(), LogisticRegression()), "per-feature", 0.3)


def fashion(folder: Path) -> Case:
    images, labels = (
        np.frombuffer(gzip.decompress((folder / "fashion_mnist_900" / name).read_bytes()), np.uint8, offset=header)
        for name, header in (("sprite900-images-idx3-ubyte.gz", 16), ("sprite900-labels-idx1-ubyte.gz", 8))
    )
    return Case(images.reshape(-1, 784).astype(np.float32) / 255, labels.astype(np.int64), Perceptron, None, 0.1)


CASES = {"digits": digits, "census": census, "cancer": cancer, "fashion": fashion}
"""Cases by name; the rule was chosen on the first two."""


def flip(y: NDArray, rng: np.random.Generator) -> tuple[NDArray, NDArray]:
    """Return labels with some of them changed, and which these are."""
    classes, count = int(y.max()) + 1, round(FLIPPED * len(y))
    flipped = np.isin(np.arange(len(y)), rng.choice(len(y), count, replace=False))
    labels = y.copy()
    labels[flipped] = (y[flipped] + rng.integers(1, classes, count)) % classes
    return labels, flipped


def rows_of(x: Any, rows: NDArray) -> Any:
    return x.iloc[rows].reset_index(drop=True) if isinstance(x, pd.DataFrame) else x[rows]


def noisy(case: Case, x: Any, rng: np.random.Generator) -> Any:
    """Return a copy of `x` with the noise of the case; categories stay as they are."""
    if isinstance(x, pd.DataFrame):
        numbers = x.select_dtypes("number")
        return x.assign(**(numbers + case.sigma * numbers.std().to_numpy() * rng.standard_normal(numbers.shape)))
    scale = case.sigma * (1.0 if case.noise is None else x.std(axis=0))
    return (x + scale * rng.standard_normal(x.shape)).astype(x.dtype)


def columns(case: Case, model: Any, x: Any, labels: NDArray) -> pd.DataFrame:
    """Score the points by the model and by brittle, a row per point."""
    network = isinstance(model, Perceptron)
    scored = brittle.Classifier(model.network, bounds=None) if network else model
    scores = ["shrinkage", "softmax", *(["input_margin"] if network else [])]
    table = brittle.score(scored, x, labels, scores, noise=case.noise, sigma=case.sigma, skip_doctor=True)
    frame = table.frame(whole=True)[["point", "label", "correct", "label_probability"]].astype({"correct": bool})
    frame["state"], frame["p_robust"] = (
        table["shrinkage"].states(0.9).to_numpy(),
        table["shrinkage"].p_robust.to_numpy(),
    )
    frame["margin"] = table["input_margin"].value.to_numpy() if network else np.nan
    share = class_votes(table, of="label").set_index("point")["share"]
    frame["share"] = share.reindex(frame["point"]).to_numpy()
    rng, places = np.random.default_rng(0), np.arange(len(labels))
    copies = (model.predict_proba(noisy(case, x, rng))[places, labels] for _ in range(COPIES))
    frame["mean"] = sum(copies) / COPIES
    probabilities = model.predict_proba(x)
    return frame.join(pd.DataFrame(probabilities).add_prefix("class "))


def evaluations(case: Case, seed: int) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the columns of all points of both settings, and which labels are `flipped`."""
    rng = np.random.default_rng(seed)
    labels, flipped = flip(case.y, rng)
    parts = []
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(labels, labels):
        model = case.make().fit(rows_of(case.x, train), labels[train])
        part = columns(case, model, rows_of(case.x, test), labels[test])
        parts.append(part.assign(flipped=flipped[test]))
    yield "crossval", pd.concat(parts, ignore_index=True)
    train, test = np.array_split(rng.permutation(len(case.y)), 2)
    labels, flipped = flip(case.y[test], rng)
    model = case.make().fit(rows_of(case.x, train), case.y[train])
    yield "separate", columns(case, model, rows_of(case.x, test), labels).assign(flipped=flipped)


def rankings(frame: pd.DataFrame) -> dict[str, NDArray]:
    """Return how suspicious each label is by each ranking, the larger the more."""
    probabilities = frame.filter(like="class ").to_numpy()
    labels, places = frame["label"].to_numpy(np.int64), np.arange(len(frame))
    confidence = probabilities[places, labels]
    other_classes = probabilities.copy()
    other_classes[places, labels] = -1.0
    wrong, holds = ~frame["correct"].to_numpy(), (frame["state"] == "holds").to_numpy()
    robust, margin, share, mean = (frame[name].to_numpy(float) for name in ("p_robust", "margin", "share", "mean"))
    sign = np.where(wrong, 1.0, -1.0)
    suspicions = {
        "confidence in the label": -confidence,
        "normalized margin": other_classes.max(axis=1) - confidence,
        "cleanlab": cleanlab_issues(labels, probabilities),
        "show --wrong": wrong - frame["label_probability"].to_numpy(),
        "wrong and holds, least robust first": 2.0 * (wrong & holds) + wrong - robust,
        "wrong, most robust first": sign * robust,
        "wrong, farthest first": sign * np.nan_to_num(margin, posinf=1e9),
        "copies without the label": -share,
        "mean probability of the label": -mean,
        "copies and confidence": -share - confidence,
    }
    return {name: suspicion for name, suspicion in suspicions.items() if np.ptp(suspicion) > 0}


def cleanlab_issues(labels: NDArray, probabilities: NDArray) -> NDArray:
    """Return the issues of cleanlab by its defaults, in its order by confidence; then the others in this order."""
    try:
        from cleanlab.filter import find_label_issues
    except ImportError:
        return np.zeros(len(labels))
    issues = find_label_issues(labels, probabilities, return_indices_ranked_by="self_confidence", n_jobs=1)
    suspicion = -probabilities[np.arange(len(labels)), labels]
    suspicion[issues] += 2.0
    return suspicion


def precision(flipped: NDArray, suspicion: NDArray, count: int) -> float:
    """Return the share of the first `count` points that are flipped; ties come in a random order."""
    shuffled = np.random.default_rng(0).permutation(len(flipped))
    order = shuffled[np.argsort(-suspicion[shuffled], kind="stable")]
    return float(flipped[order[:count]].mean()) if count else float("nan")


def count_held(frame: pd.DataFrame, flipped: NDArray) -> tuple[int, int, float]:
    """Count points that are wrong and hold, the flipped ones among them, and among as many by confidence."""
    held = (~frame["correct"] & (frame["state"] == "holds")).to_numpy()
    count = int(held.sum())
    same = precision(flipped, -frame["label_probability"].to_numpy(), count) * count
    return count, int((flipped & held).sum()), same


def measure(case: Case, seeds: int) -> dict[str, tuple[NDArray, dict[str, NDArray]]]:
    """Return for each setting the means of `count_held`, and both precisions of each ranking by seed, `[seeds, 2]`."""
    held, rows = dict[str, list[tuple[int, int, float]]](), dict[str, dict[str, list[tuple[float, float]]]]()
    for seed in range(seeds):
        for setting, frame in evaluations(case, seed):
            flipped = frame["flipped"].to_numpy(bool)
            held.setdefault(setting, []).append(count_held(frame, flipped))
            for name, suspicion in rankings(frame).items():
                average = float(average_precision_score(flipped, suspicion))
                precisions = precision(flipped, suspicion, int(flipped.sum())), average
                rows.setdefault(setting, {}).setdefault(name, []).append(precisions)
    return {
        setting: (np.mean(held[setting], axis=0), {name: np.array(pairs) for name, pairs in rows[setting].items()})
        for setting in held
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", nargs="+", default=[*CASES], choices=[*CASES])
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", category=brittle.errors.BrittleWarning)
    for name in options.only:
        for setting, ((held, true, same), precisions_by_ranking) in measure(
            CASES[name](options.data), options.seeds
        ).items():
            print(f"{name}, {setting}: {held:.1f} wrong and holding, {true:.1f} flipped; by confidence {same:.1f}")
            for ranking, values in precisions_by_ranking.items():
                (at_k, average), (spread, spreads) = values.mean(axis=0), values.std(axis=0, ddof=int(len(values) > 1))
                print(f"  {ranking:38}at k {at_k:.3f} +- {spread:.3f}   average {average:.3f} +- {spreads:.3f}")


if __name__ == "__main__":
    main()
