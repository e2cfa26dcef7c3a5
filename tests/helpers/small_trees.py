"""Small ensembles of trees on few features, and the distance to another class by a search of every box."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np

LENGTHS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "l2": lambda offset: np.linalg.norm(offset, axis=1),
    "linf": lambda offset: np.abs(offset).max(axis=1),
    "l1": lambda offset: np.abs(offset).sum(axis=1),
    "l0": lambda offset: np.count_nonzero(offset, axis=1).astype(float),
}


def small_ensemble(kind: str, seed: int) -> tuple[Any, np.ndarray]:
    """Return a fitted classifier of 2 to 4 features and 2 or 3 classes, and points, `[4, n]`."""
    generator = np.random.default_rng(seed)
    features, classes = int(generator.integers(2, 5)), int(generator.integers(2, 4))
    x = generator.normal(size=(120, features)) * 10.0 ** generator.integers(-2, 3, features)
    y = (x / x.std(axis=0) + generator.normal(size=x.shape)).argmax(axis=1) % classes
    y[:classes] = np.arange(classes)
    trees, depth = int(generator.integers(2, 7)), int(generator.integers(1, 4))
    return make(kind, trees, depth, seed).fit(x, y), x[generator.permutation(120)[:4]] * 1.01


def make(kind: str, trees: int, depth: int, seed: int) -> Any:
    """Return an unfitted classifier."""
    if kind == "xgboost":
        from xgboost import XGBClassifier  # type: ignore[import-not-found]

        return XGBClassifier(n_estimators=trees, max_depth=depth, random_state=seed, n_jobs=1)
    if kind == "lightgbm":
        from lightgbm import LGBMClassifier  # type: ignore[import-not-found]

        return LGBMClassifier(
            n_estimators=trees, num_leaves=2**depth, min_child_samples=5, random_state=seed, n_jobs=1, verbose=-1
        )
    if kind == "catboost":
        from catboost import CatBoostClassifier  # type: ignore[import-not-found]

        return CatBoostClassifier(
            iterations=trees, depth=depth, random_seed=seed, thread_count=1, verbose=0, allow_writing_files=False
        )
    from sklearn import ensemble

    name = {"forest": "RandomForest", "extra": "ExtraTrees", "boosted": "GradientBoosting", "histograms": "Hist"}[kind]
    if name == "Hist":
        return ensemble.HistGradientBoostingClassifier(max_iter=trees, max_depth=depth, random_state=seed)
    return getattr(ensemble, f"{name}Classifier")(n_estimators=trees, max_depth=depth, random_state=seed)


def thresholds(model: Any) -> list[tuple[int, float]]:
    """Return feature and number of every split, as the library itself lists them."""
    kind = type(model).__name__
    if kind == "XGBClassifier":
        frame = model.get_booster().trees_to_dataframe()
        frame = frame[frame.Feature != "Leaf"]
        return [
            (int(name[1:]), float(np.float32(split))) for name, split in zip(frame.Feature, frame.Split, strict=True)
        ]
    if kind == "LGBMClassifier":
        frame = model.booster_.trees_to_dataframe()
        frame = frame[frame.split_feature.notna()]
        return [(int(n.split("_")[1]), float(t)) for n, t in zip(frame.split_feature, frame.threshold, strict=True)]
    if kind == "CatBoostClassifier":
        return [(f, float(b)) for f, borders in model.get_borders().items() for b in borders]
    if kind == "HistGradientBoostingClassifier":
        nodes = [predictor.nodes for group in model._predictors for predictor in group]
        return [
            (int(n["feature_idx"]), float(n["num_threshold"])) for splits in nodes for n in splits if not n["is_leaf"]
        ]
    trees = [estimator.tree_ for estimator in np.ravel(model.estimators_)]
    return [(int(f), float(t)) for tree in trees for f, t in zip(tree.feature, tree.threshold, strict=True) if f >= 0]


def last_to_the_left(model: Any, threshold: float) -> float:
    """Return the largest double that a split sends to the left, by bisection of the doubles around its number."""
    kind = type(model).__name__
    if kind == "HistGradientBoostingClassifier":
        return threshold
    rounded = {"LGBMClassifier": lambda x: 0.0 if abs(x) <= float(np.float32(1e-35)) else x}.get(
        kind, lambda x: float(np.float32(x))
    )
    low, high = threshold - 1e-3 * (1 + abs(threshold)), threshold + 1e-3 * (1 + abs(threshold))
    while (middle := low + (high - low) / 2) not in (low, high):
        goes_left = rounded(middle) < threshold if kind == "XGBClassifier" else rounded(middle) <= threshold
        low, high = (middle, high) if goes_left else (low, middle)
    return low


def nearest_of_all_boxes(
    model: Any, points: np.ndarray, low: float = -np.inf, high: float = np.inf, integers: tuple[int, ...] = ()
) -> dict[str, np.ndarray]:
    """Return the distances, `[B]`, from each point to the nearest box of another class, by `predict` in every box."""
    cuts = [set[float]() for _ in range(points.shape[1])]
    for feature, threshold in set(thresholds(model)):
        cuts[feature].add(last_to_the_left(model, threshold))
    below = low if low == -np.inf else np.nextafter(low, -np.inf)
    sides = []
    for feature, point_labels in enumerate(cuts):
        ends = sorted(
            {float(np.floor(cut)) if feature in integers else cut for cut in point_labels if low <= cut < high}
        )
        sides.append(list(zip([below, *ends], [*ends, high], strict=True)))
    boxes = np.array(list(product(*sides)))
    above = np.where(np.isinf(boxes[:, :, 0]), 0.0, boxes[:, :, 0] + 1.0)
    inside = np.where(np.isinf(boxes[:, :, 1]), above, boxes[:, :, 1])
    box_labels, point_labels = (np.asarray(model.predict(rows)).ravel() for rows in (inside, points))
    distances = {norm: np.empty(len(points)) for norm in LENGTHS}
    for row, point in enumerate(points):
        lows, highs = boxes[box_labels != point_labels[row]].transpose(2, 0, 1)
        offset = np.maximum(lows - point, 0.0) + np.maximum(point - highs, 0.0)
        for norm, length in LENGTHS.items():
            distances[norm][row] = length(offset).min() if len(offset) else np.inf
    return distances


def nearest_under_rules(
    model: Any, points: np.ndarray, groups: Sequence[Sequence[int]] = (), ties: Sequence[Sequence[int]] = ()
) -> dict[str, np.ndarray]:
    """Return the distances, `[B]`, to another class among inputs that keep rules.

    One column of each group is 1 and the others are 0, and the numbers of each chain of columns in `ties` never fall.

    `predict` gives the class of every box, and all combinations of the numbers of the point, their means and the ends
    of the box are tried: the nearest input of a chain is one of these in each norm.
    """
    cuts = [
        sorted({last_to_the_left(model, cut) for at, cut in thresholds(model) if at == column})
        for column in range(len(points[0]))
    ]
    cells = [[(np.nextafter(low, np.inf), high) for low, high in pairwise([-np.inf, *ends, np.inf])] for ends in cuts]
    blocks = [*map(tuple, groups), *map(tuple, ties)]
    blocks += [(column,) for column in range(len(cuts)) if not any(column in block for block in blocks)]
    distances = {norm: np.full(len(points), np.inf) for norm in LENGTHS}
    for row, point in enumerate(points):
        choices = []
        for block in blocks:
            if block in map(tuple, groups):
                choices.append(
                    [
                        {norm: (row, length((row - point[[*block]])[None])[0]) for norm, length in LENGTHS.items()}
                        for row in np.eye(len(block))
                    ]
                )
                continue
            numbers = point[[*block]]
            means = {float(numbers[i:j].mean()) for i in range(len(numbers)) for j in range(i + 1, len(numbers) + 1)}
            choices.append([])
            for cell in product(*(cells[column] for column in block)):
                tried = sorted(means | {float(end) for ends in cell for end in ends if abs(end) < 1e300})
                inside = [[value for value in tried if low <= value <= high] or [0.0] for low, high in cell]
                rows = np.array(list(product(*inside)))
                if len(rows := rows[(np.diff(rows, axis=1) >= 0).all(axis=1)]):
                    lengths_by_norm = {norm: length(rows - numbers) for norm, length in LENGTHS.items()}
                    choices[-1].append(
                        {norm: (rows[lengths.argmin()], lengths.min()) for norm, lengths in lengths_by_norm.items()}
                    )
        combinations = list(product(*choices))
        for norm, length in LENGTHS.items():
            inputs = np.empty((len(combinations), len(point)))
            order = [at for block in blocks for at in block]
            inputs[:, order] = [
                np.concatenate([choice[norm][0] for choice in combination]) for combination in combinations
            ]
            changed = np.ravel(model.predict(inputs)) != np.ravel(model.predict(point[None]))
            if changed.any():
                distances[norm][row] = length(inputs[changed] - point).min()
    return distances
