"""Predicted robustness against counted: order, error, and what the lower bound of a surrogate covers.

    python research/benchmarks/surrogate.py [--points 1000] [--draws 200] [--splits 200] [--limit 0.9] [--runs FOLDER]
        [--census FILE] [MODEL.pt2 DATA SIGMA,SIGMA ...]

Every network scores the points once, with a fixed number of noisy copies. A surrogate learns from half of the points;
the others are split at random, in halves that calibrate and check. Printed for each network and sigma: Kendall's tau
with the counted probability of the surrogate, of gradient boosting on what it reads, of the logit margin, the softmax
and the Taylor estimate, and of 60 copies; the mean absolute error of those that are probabilities; for two alphas the
share of the points whose bound misses, the mean bound, and the misses in the class with most of them, with bounds for
all and by class; the share of points let through at the limit; and what a shift does: the misses at points whose inputs
were darkened by a third, and how often `shift` sees 50 of them at a level of 0.01; and the passes of decisions by
copies alone, and by bounds first. Two tables follow: the digits of scikit-learn with a random forest and, with the file
of --census, gradient boosting. Errors are against counts of `draws` copies, which err themselves.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from timing import print_table, set_threads

import brittle
from brittle.analysis.correlation import kendall_tau
from brittle.data import choose_points, open_points
from brittle.data.formats import as_points
from brittle.extensions.detector.conformal import Calibration, bound
from brittle.extensions.detector.passes import margin_of, observe
from brittle.extensions.detector.surrogate import SHARES, Surrogate
from brittle.model.loading.load import load_model
from brittle.noise import PerFeature
from brittle.scores import LogitMargin, MonteCarlo, Softmax, Taylor

ALPHAS, COPIES, BATCH, LEVEL = (0.1, 0.01), 60, 50, 0.01


class Subject(NamedTuple):
    """A model with its data and the scores that copies count, and what else is measured."""

    name: str
    classifier: brittle.Classifier
    points: Any
    counts: list[MonteCarlo]
    others: list[Any]


def networks(words: Sequence[str], arguments: argparse.Namespace) -> list[Subject]:
    """Return the networks that the command line names."""
    subjects = []
    for model, data, sigmas in zip(*(words[start::3] for start in range(3)), strict=True):
        numbers = [float(sigma) for sigma in sigmas.split(",")]
        points = open_points(data, split="test", limit=arguments.points)
        counts = [MonteCarlo(sigma, draws=arguments.draws, limit=None) for sigma in numbers]
        others = [LogitMargin(), Softmax(), *(Taylor(sigma) for sigma in numbers)]
        subjects.append(Subject(Path(model).parent.name, classifier_of(model), points, counts, others))
    return subjects


def classifier_of(model: str) -> brittle.Classifier:
    """Return the network of an archive."""
    return brittle.Classifier(load_model(model).module)


def tables(arguments: argparse.Namespace) -> list[Subject]:
    """Return two estimators on tables."""
    digits: Any = load_digits()
    x, y = digits.data / 16.0, digits.target
    forest = RandomForestClassifier(100, random_state=0).fit(x[:900], y[:900])
    counts = [MonteCarlo(sigma, draws=arguments.draws, limit=None) for sigma in (0.1, 0.2)]
    points = as_points(torch.from_numpy(x[900:]), (0, 1))
    others = [LogitMargin(), Softmax()]
    subjects = [Subject("digits, forest", brittle.Classifier(forest), points, counts, others)]
    if arguments.census is not None:
        frame = pd.read_csv(arguments.census).dropna()
        label = frame.columns[-1]
        features = frame.drop(columns=[label])
        texts = [name for name in features if not pd.api.types.is_numeric_dtype(features[name])]
        features[texts] = features[texts].astype("category")
        encoder = make_column_transformer((OrdinalEncoder(), texts), remainder="passthrough")
        model = make_pipeline(encoder, HistGradientBoostingClassifier(random_state=0))
        model.fit(features[:20_000], frame[label][:20_000])
        rows = features[20_000 : 20_000 + arguments.points].reset_index(drop=True)
        classifier = brittle.Classifier(model, bounds="none")
        points = as_points((rows, None), "none", levels=True)
        noises = [PerFeature.of(points, sigma) for sigma in (0.1, 0.3)]
        counts = [MonteCarlo(noise=noise, draws=arguments.draws, limit=None) for noise in noises]
        subjects.append(Subject("census, boosting", classifier, points, counts, others))
    return subjects


def measure(subject: Subject, arguments: argparse.Namespace) -> list[list[list[object]]]:
    """Return the rows of the four tables of a subject."""
    name, classifier, points, counts, others = subject
    out = None if arguments.runs is None else arguments.runs / name
    if out is not None and out.exists():
        table = brittle.read_table(out)
    else:
        table = brittle.score(classifier, points, [*counts, *others], out=out, skip_doctor=True)
    start = time.process_time()
    learned = Surrogate.fit_run(table, classifier, points, alpha=ALPHAS[0])
    seconds = time.process_time() - start
    seen = observe(classifier, points, set(learned.points), True)
    truth = np.stack([1.0 - table[target].value.loc[seen.ids].to_numpy() for target in learned.recipe.targets], axis=1)
    order = np.random.default_rng(learned.recipe.seed).permutation(len(truth))
    teach, rest = np.split(order, [round(SHARES[0] * len(order))])
    boosted, predictions = boosting(learned, seen, truth, teach), learned.predict(seen.features, seen.logits)
    low = lower_ends(truth, table[learned.recipe.targets[0]].draws or 1)
    splits = [split(learned, seen, truth, low, rest, seed, arguments) for seed in range(arguments.splits)]
    order_rows, bound_rows = [], []
    for k, target in enumerate(learned.recipe.targets):
        values = columns(table, seen, target, k)
        predicted = np.mean([part["error"][k] for part in splits])
        values = {"surrogate": predictions[:, k].numpy(), "boosting": boosted[:, k]} | values
        row: list[object] = [name, target, learned.recipe.form]
        row += [tau(value[rest], truth[rest, k]) if value is not None else "" for value in values.values()]
        row += [float(predicted)]
        for other in ("boosting", "taylor", "60 copies"):
            row.append("" if values[other] is None else error(values[other][rest], truth[rest, k]))
        order_rows.append([f"{number:.3f}" if isinstance(number, float) else number for number in row])
        for alpha in ALPHAS:
            numbers = [np.mean([part[alpha][field][k] for part in splits]) for field in range(8)]
            bound_rows.append([name, target, alpha, *(f"{number:.3f}" for number in numbers)])
    shifted = shift(learned, classifier, points, counts, arguments) if name not in ("census, boosting",) else []
    shift_rows = [[name, target, *row] for target, row in zip(learned.recipe.targets, shifted, strict=False)]
    print(f"{name}: {len(truth)} points, fitted in {seconds:.1f} s of CPU time", flush=True)
    return [order_rows, bound_rows, shift_rows, saved(subject, table, seen.ids, arguments)]


def saved(subject: Subject, table: brittle.Table, ids: Sequence[str], arguments: Any) -> list[list[object]]:
    """Return, for the smallest sigma, the passes of decisions by copies alone and by bounds first, at the last points;
    a surrogate of the others gives the bounds."""
    name, classifier, points, counts, _ = subject
    teachers, others = (choose_points(points, part) for part in (ids[: -arguments.shifted], ids[-arguments.shifted :]))
    learned = Surrogate.fit_run(table, classifier, teachers, alpha=ALPHAS[0])
    score = replace(counts[0], draws=1000, limit=arguments.limit)
    run = brittle.score(classifier, others, [score], skip_doctor=True)
    frame, column = learned.apply(classifier, others), run.columns[0]
    clear = (frame[bounds_of(frame)[0]] >= arguments.limit).to_numpy()
    passes, breaks = column.passes.to_numpy(), (1.0 - column.low.to_numpy()) < arguments.limit
    after = passes[~clear].sum() + clear.sum()
    row = [name, learned.recipe.targets[0], len(clear), f"{clear.mean():.3f}", int(passes.sum()), int(after)]
    return [[*row, f"{passes.sum() / after:.2f}", int((clear & breaks).sum())]]


def boosting(learned: Surrogate, seen: Any, truth: NDArray, teach: NDArray) -> NDArray[np.float64]:
    """Return the predictions of gradient boosting on the inputs of the surrogate, the class and the features."""
    read, classes = learned.regressor.read(seen.features, seen.logits)[0], seen.logits.argmax(dim=1, keepdim=True)
    inputs = torch.cat((read, classes, seen.features), dim=1).numpy()
    options: dict[str, Any] = {"max_iter": 100, "learning_rate": 0.05, "max_leaf_nodes": 8, "min_samples_leaf": 10}
    trees = [HistGradientBoostingRegressor(**options).fit(inputs[teach], column[teach]) for column in truth.T]
    return np.stack([tree.predict(inputs).clip(0.0, 1.0) for tree in trees], axis=1)


def lower_ends(truth: NDArray[np.float64], draws: int) -> torch.Tensor:
    """Return the lower ends of the counted probabilities as the surrogate takes them."""
    from brittle.extensions.detector.surrogate import TAIL
    from brittle.intervals import clopper_pearson

    return torch.from_numpy(clopper_pearson((truth * draws).round() // 2, draws // 2, 1.0 - 2.0 * TAIL)[0])


def split(
    learned: Surrogate, seen: Any, truth: NDArray, low: torch.Tensor, rest: NDArray, seed: int, arguments: Any
) -> dict[Any, Any]:
    """Return what bounds of one random split of the points do at its other half, by alpha, and the error."""
    calibrate, check = np.array_split(np.random.default_rng(seed).permutation(rest), 2)
    classes, labels = seen.logits.argmax(dim=1), seen.logits.shape[1]
    predictions = learned.predict(seen.features, seen.logits)
    assert learned.calibration is not None
    tail = learned.calibration.tail
    calibration = Calibration(predictions[calibrate], low[calibrate], classes[calibrate], tail)
    result: dict[Any, Any] = {"error": np.abs(predictions.numpy()[check] - truth[check]).mean(axis=0)}
    for alpha in ALPHAS:
        bounds = [
            bounds_at(calibration, alpha, by_class, predictions[check], classes[check]) for by_class in (False, True)
        ]
        fields: list[NDArray] = []
        for lower in bounds:
            missed = truth[check] < lower
            counts = np.bincount(classes[check].numpy(), minlength=labels)
            by = np.stack([np.bincount(classes[check].numpy(), part, len(counts)) for part in missed.T], axis=1)
            worst = (by / np.maximum(counts, 1)[:, None])[counts >= 10].max(axis=0)
            fields += [missed.mean(axis=0), lower.mean(axis=0), worst]
        clear = bounds[0] >= arguments.limit
        fields += [clear.mean(axis=0), (clear & (truth[check] < arguments.limit)).mean(axis=0)]
        result[alpha] = fields
    return result


def bounds_at(
    calibration: Calibration, alpha: float, by_class: bool, predictions: torch.Tensor, classes: torch.Tensor
) -> NDArray[np.float64]:
    """Return the bounds of points, 0 where too few points calibrate."""
    try:
        quantiles = calibration.quantiles(alpha, by_class=by_class)
    except brittle.errors.DataError:
        return np.zeros(predictions.shape)
    return bound(predictions, quantiles[classes.clamp_max(len(quantiles) - 1)]).numpy()


def columns(table: Any, seen: Any, target: str, k: int) -> dict[str, Any]:
    """Return the other scores of the points, larger where safer."""
    softmax = 1.0 - table["softmax"].value.loc[seen.ids].to_numpy()
    values: dict[str, Any] = {"logit margin": margin_of(seen.logits), "softmax": softmax, "taylor": None}
    taylors = [column for column in table.columns if column.score == "taylor"]
    if taylors:
        values["taylor"] = 1.0 - taylors[k].value.loc[seen.ids].to_numpy()
    truth = 1.0 - table[target].value.loc[seen.ids].to_numpy()
    values["60 copies"] = np.random.default_rng(0).binomial(COPIES, truth) / COPIES
    return values


def shift(learned: Surrogate, classifier: Any, points: Any, counts: Any, arguments: Any) -> list[list[object]]:
    """Return, for each sigma, what bounds do at darkened inputs, and how often the shift is seen."""
    batch = next(iter(points.batches(arguments.shifted)))
    dark = batch.inputs * 2.0 / 3.0
    run = brittle.score(classifier, dark, counts, skip_doctor=True)
    frame = learned.apply(classifier, dark, ALPHAS[0])
    first = next(name for name in frame if name.startswith("p_robust"))
    rng, seen = np.random.default_rng(0), 0
    for _ in range(BATCH):
        seen += learned.shift(frame[first].to_numpy()[rng.permutation(len(frame))[:BATCH]]) < LEVEL
    rows = []
    for k in range(len(learned.recipe.targets)):
        truth, lower = (
            1.0 - run.columns[k].value.to_numpy(),
            frame[bounds_of(frame)[k]].to_numpy(),
        )
        rows.append([f"{truth.mean():.3f}", f"{(truth < lower).mean():.3f}", f"{seen} of {BATCH}"])
    return rows


def bounds_of(frame: pd.DataFrame) -> list[str]:
    """Return the columns of the bounds, by increasing sigma."""
    return [name for name in frame if name.startswith("bound")]


def tau(prediction: Any, truth: NDArray[np.float64]) -> float:
    """Return Kendall's tau-b."""
    return kendall_tau(truth, np.asarray(prediction))


def error(prediction: Any, truth: NDArray[np.float64]) -> float:
    """Return the mean absolute error."""
    return float(np.abs(np.asarray(prediction) - truth).mean())


def main(words: Sequence[str] | None = None) -> None:
    """Measure all models."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("networks", nargs="*", metavar="MODEL.pt2 DATA SIGMA,SIGMA")
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--shifted", type=int, default=200)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--limit", type=float, default=0.9)
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--census", type=Path)
    arguments = parser.parse_args(words)
    set_threads()
    torch.set_num_threads(1)
    subjects = [*tables(arguments), *networks(arguments.networks, arguments)]
    for subject in subjects:
        orders, bounds, shifts, decisions = measure(subject, arguments)
        taus = ["surrogate", "boosting", "logit margin", "softmax", "taylor", f"{COPIES} copies"]
        print("Kendall's tau, then mean absolute errors of surrogate, boosting, taylor and copies")
        print_table(["model", "sigma", "form", *taus, "error", "boosting", "taylor", f"{COPIES} copies"], orders)
        print("bounds: misses, mean, misses in the worst class, of all and by class; let through, and wrongly so")
        print_table(["model", "sigma", "alpha", "misses", "bound", "worst", "misses by class", "bound by class",
                     "worst by class", "through", "wrongly"], bounds)  # fmt: skip
        print(f"darkened inputs: mean probability, misses at alpha {ALPHAS[0]}, shift seen in {BATCH} points")
        print_table(["model", "sigma", "probability", "misses", "seen"], shifts)
        print(f"decisions at {arguments.limit}: by copies alone, and by the bound at alpha {ALPHAS[0]} first")
        print_table(
            ["model", "sigma", "points", "through", "passes", "passes with bounds", "ratio", "wrong"], decisions
        )


if __name__ == "__main__":
    main()
