"""The trees of a classifier that is scored, held to what its own library computes."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from brittle.extensions.trees.read_trees import raw_scores, trees_of
from brittle.extensions.trees.trees import Trees
from brittle.model.arrays import Estimator

ODD_ROWS = 256
"""Inputs at which trees as they were read are compared with their library."""

_TREES: WeakKeyDictionary[Estimator, Trees | None] = WeakKeyDictionary()
"""The trees of each classifier, which are read and compared once."""


def find_trees(model: Estimator) -> Trees | None:
    """Return the trees that a classifier adds up, where it is an ensemble of them that was read right; else None.

    The library's own scores and classes are compared with these at inputs on the cuts of the trees and beside them.
    """
    if model not in _TREES:
        _TREES[model] = _read(model)
    return _TREES[model]


def _read(model: Estimator) -> Trees | None:
    trees = trees_of(model.estimator)
    if trees is None or len(trees.base) != len(model.classes):
        return None
    rows, names = trees.odd_rows(ODD_ROWS), dict(enumerate(model.feature_names or ()))
    for place, levels in trees.levels.items():
        coded = model.categories.get(names.get(place))
        if coded is not None or all(isinstance(level, int | float) for level in levels):
            rows[:, place] = np.resize(levels if coded is None else range(len(coded.levels)), len(rows))
    return trees if agrees(model, trees, rows) else None


def agrees(model: Estimator, trees: Trees, rows: np.ndarray) -> bool:
    """Tell whether the library gives those of rows `[B, n]` whose categories it knows, some at least, the sums and
    classes of these trees."""
    rows = model.rules(rows.shape[1]).kept(rows)
    places = place_categories(model, trees, rows)
    have_levels = ~np.isnan(places).any(axis=1)
    if not have_levels.any():
        return False
    rows = rows[have_levels]
    raw = raw_scores(model.estimator, model.as_rows(rows))
    return trees.agree(places[have_levels], raw, predict(model, rows))


def place_categories(model: Estimator, trees: Trees, rows: np.ndarray) -> np.ndarray:
    """Return rows `[B, n]` with the places that categories have in trees."""
    rows, names = rows.copy(), dict(enumerate(model.feature_names or ()))
    for place in trees.levels:
        coded = model.categories.get(names.get(place))
        values = rows[:, place].tolist() if coded is None else [coded.levels[int(code)] for code in rows[:, place]]
        rows[:, place] = trees.places(place, values)
    return rows


def predict(model: Estimator, rows: np.ndarray) -> np.ndarray:
    """Return the positions in `classes` of what the library predicts for rows `[B, n]`; `[B]`."""
    classes = np.ravel(model.estimator.predict(model.as_rows(rows)))
    return (classes[:, None] == model.classes).argmax(axis=1)
