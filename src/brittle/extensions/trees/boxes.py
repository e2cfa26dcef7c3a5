"""The nearest other decision of an ensemble of trees, by branch and bound over the boxes that its splits cut."""

from __future__ import annotations

import heapq
from dataclasses import replace
from itertools import count
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from brittle.estimate import ORDER
from brittle.extensions.trees.read_trees import raw_scores, trees_of
from brittle.extensions.trees.trees import Trees
from brittle.measure.forward import Clean
from brittle.model.arrays import Estimator
from brittle.model.bounds import NONE
from brittle.model.classifier import Classifier
from brittle.model.rules import Rules

BOXES = {"fast": 500, "standard": 2_000, "middle": 2_000, "thorough": 20_000, "full": 20_000}
"""Boxes at most that are looked at for a point, by effort of a search or proof of a certificate."""

DEMANDING, CONFLICT = 48, 4.0
"""Trees at most whose best leaves choose a split; and what one that divides these counts beside one that takes them
from the point (chosen on forests and boosted trees of census data)."""

ODD_ROWS = 256
"""Inputs at which trees as they were read are compared with their library."""

_TREES: WeakKeyDictionary[Estimator, Trees | None] = WeakKeyDictionary()
"""The trees of each classifier, which are read and compared once."""


def search_boxes(
    norm: str, bounded: bool, effort: str, classifier: Classifier, clean: Clean
) -> dict[str, Tensor] | None:
    """The nearest inputs with another class, as `NearestPoint` has them, in double precision.

    Points with missing values are left out. None where the model is no ensemble of trees, its inputs are normalised,
    the decision is another one than the predicted class, or the trees do not give the classes that the model predicts.
    `effort` is one of `BOXES`.
    """
    model, shape = classifier.model, clean.inputs.flatten(1).shape
    plain = classifier.decision.of_classes and classifier.mean is None and classifier.std is None
    if not plain or not isinstance(model, Estimator) or (trees := find_trees(model)) is None:
        return None
    if (trees.n_features_in_, len(trees.base)) != (shape[1], clean.logits.shape[1]):
        return None
    rows, own = clean.inputs.flatten(1).double().cpu().numpy(), clean.predicted.cpu().numpy()
    rules = model.rules(shape[1])
    given = rules.kept(rows)
    rows = place_categories(model, trees, given)
    if np.isnan(rows[:, list(trees.levels)]).any():  # its columns are others than they were taken for
        return None
    usable = (clean.finite & ~clean.tied & ~clean.incomplete).cpu().numpy().nonzero()[0]
    if len(usable) and not agrees(model, trees, given[usable]):
        return None
    if rules.integral.any():
        trees = replace(trees, cut=np.where(rules.integral[trees.feature], np.floor(trees.cut), trees.cut))
    scores = trees.scores(rows[usable])
    if (scores > scores[np.arange(len(usable)), own[usable], None] + trees.slack).any():
        return None
    varies = clean.inputs.new_ones(()) if clean.varies is None else clean.varies
    varies = varies.expand_as(clean.inputs).flatten(1).bool().cpu().numpy() & ~rules.fixed
    bounds = classifier.bounds.flat(clean.inputs.shape[1:]) if bounded else NONE
    if varies[:, list(trees.levels)].any():
        return None
    least, most = np.maximum(rules.lower, bounds.lower.numpy()), np.minimum(rules.upper, bounds.upper.numpy())
    most = np.where(rules.integral, np.floor(most), most)
    distance, proved = torch.where(clean.finite & clean.tied, 0.0, torch.inf).double(), torch.zeros(shape[0]).double()
    found, classes = torch.from_numpy(given.copy()), torch.full_like(clean.predicted, -1)
    passes = torch.full_like(clean.predicted, clean.passes)
    for row in usable.tolist():
        point = rows[row]

        def predicted(at: np.ndarray) -> int:
            passes[row] += 1  # noqa: B023
            classifier.count(1)
            at = np.where(varies[row], at, given[row])  # noqa: B023
            return int(predict(model, at[None])[0])

        low = np.nextafter(np.where(varies[row], np.minimum(least, point), point), -np.inf)
        high = np.where(varies[row], np.maximum(most, point), point)
        low, high = narrow(rules, low, high)
        if not ((low < point) & (point <= high)).all():  # fixed columns that break a rule
            return None
        search = BoxSearch(trees, point, own[row], norm, low, high, rules, predicted)
        search.run(BOXES[effort])
        proved[row], distance[row] = search.proved, search.distance
        if search.found is not None:
            found[row] = torch.from_numpy(np.where(varies[row], search.found, given[row]))
            classes[row] = predicted(search.found)
            if classes[row] == own[row]:
                return None
    points = found.view(clean.inputs.shape)
    return {"distance": distance, "points": points, "predicted": classes, "passes": passes, "proved": proved}


class Box(NamedTuple):
    """What lies above `low` and up to `high`; its nearest input; the leaves that it meets, of trees with several, and
    what the others add to `z_j - z_t`, `[C]`. Boxes are ordered by distance, then by the most that is won in them."""

    distance: float
    less: float
    number: int
    low: np.ndarray
    high: np.ndarray
    nearest: np.ndarray
    leaves: np.ndarray
    margins: np.ndarray


class BoxSearch:
    """The search around one point, in the order of distance, so that it can stop at any box.

    A box is dropped where no class can win in it: every tree gives the most of any leaf that the box meets. Else its
    nearest input is looked at, and where no other class wins there the box is split. What the sums leave open within
    rounding, the model decides: `predicted`. Until something is found, it follows the half in which most can be won.
    At any time the nearest input `found` is at `distance`, and none with another class is nearer than `proved`.
    """

    def __init__(
        self, trees: Trees, point: np.ndarray, own: int, norm: str, low: Any, high: Any, rules: Rules, predicted: Any
    ) -> None:
        self.distance, self.proved = np.inf, 0.0
        self.found: np.ndarray | None = None
        self._point, self._own, self._rules, self._predicted = point, own, rules, predicted
        self._order = ORDER.get(norm, 0)  # NumPy's of the number that change
        self._slack, self._ends, self._count = trees.slack, trees.ends, count()
        self._tree = np.searchsorted(trees.roots, trees.leaves, side="right")
        values, margins = trees.value[trees.leaves], trees.base - trees.base[own]
        self._values, margins[own] = values - values[:, own : own + 1], -np.inf
        inside = np.flatnonzero(((self._ends[0] < high) & (self._ends[1] > low)).all(axis=1))
        self._waiting = self._kept(Box(0.0, 0.0, 0, low, high, point, inside, margins))

    def run(self, boxes: int) -> None:
        """Look at so many boxes, or until the distance is sure."""
        deeper = None
        while boxes > 0 and (deeper or (self._waiting and self._waiting[0].distance < self.distance)):
            boxes -= 1
            halves = self._look(deeper or heapq.heappop(self._waiting))
            deeper = min(halves, key=lambda one: one.less, default=None) if self.found is None else None
            for one in halves:
                if one is not deeper:
                    heapq.heappush(self._waiting, one)
        if deeper is not None:
            heapq.heappush(self._waiting, deeper)
        self.proved = min(self._waiting[0].distance if self._waiting else np.inf, self.distance)

    def _length(self, at: np.ndarray) -> float:
        """The distance of an input, `[n]`."""
        return float(np.linalg.norm(at - self._point, self._order))

    def _kept(self, box: Box) -> list[Box]:
        """The box as it waits; nothing where no other class can win in it, or only farther away than what was found."""
        distance = self._length(box.nearest)
        if distance >= self.distance:
            return []
        leaves, margins = box.leaves, box.margins
        starts, sizes = self._starts(leaves)
        if (alone := sizes == 1).any():
            margins = margins + self._values[leaves[starts[alone]]].sum(axis=0)
            leaves = leaves[np.repeat(~alone, sizes)]
            starts, _ = self._starts(leaves)
        most = np.maximum.reduceat(self._values[leaves], starts).sum(axis=0) if len(leaves) else 0.0
        bound = float((margins + most).max())
        return [] if bound < -self._slack else [Box(distance, -bound, next(self._count), *box[3:6], leaves, margins)]

    def _starts(self, leaves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the leaves of each tree begin, and how many they are."""
        starts = np.flatnonzero(np.diff(self._tree[leaves], prepend=-1))
        return starts, np.diff(starts, append=len(leaves))

    def _keep(self, at: np.ndarray, margin: float) -> bool:
        """Whether another class wins at an input of this margin, which is kept then where it is the nearest."""
        wins = margin > self._slack or (margin >= -self._slack and self._predicted(at) != self._own)
        if wins and (distance := self._length(at)) < self.distance:
            self.distance, self.found = distance, at
        return wins

    def _look(self, box: Box) -> list[Box]:
        """The halves of a box; none where another class wins at its nearest input, or no split cuts it."""
        leaves, values = box.leaves, self._values[box.leaves]
        lows, highs = (ends[leaves] for ends in self._ends)
        here = ((lows < box.nearest) & (box.nearest <= highs)).all(axis=1)
        if self._keep(box.nearest, (box.margins + values[here].sum(axis=0)).max()) or not len(leaves):
            return []
        starts, sizes = self._starts(leaves)
        most = np.maximum.reduceat(values, starts)
        rival = int((box.margins + most.sum(axis=0)).argmax())
        of = np.repeat(np.arange(len(starts)), sizes)
        best = np.flatnonzero(values[:, rival] == most[of, rival])
        best = best[np.diff(of[best], prepend=-1) > 0]
        gain, lows, highs = most[:, rival] - values[here, rival], lows[best], highs[best]
        low, high = narrow(self._rules, np.maximum(box.low, lows.max(axis=0)), np.minimum(box.high, highs.min(axis=0)))
        if (low < high).all():  # where the best leaves of all trees meet
            at = find_nearest(self._rules, self._point, low, high)
            if self._length(at) < self.distance:
                self._keep(at, box.margins[rival] + most[:, rival].sum())
        return self._halves(box, *self._split(box, lows, highs, gain))

    def _split(self, box: Box, lows: np.ndarray, highs: np.ndarray, gain: np.ndarray) -> tuple[int, float]:
        """The feature and the cut that take most of what the best leaves, `[T, n]`, gain over those at the nearest
        input: from the side on which it lies, or from both where best leaves lie on either."""
        most = np.argsort(-gain)[:DEMANDING]
        lows, highs, gain = lows[most], highs[most], gain[most]
        cuts = np.concatenate((lows, highs))
        sides = (highs <= cuts[:, None], lows >= cuts[:, None])
        below, above = (np.einsum("k,ckn->cn", gain, side) for side in sides)
        taken = np.where(box.nearest <= cuts, above, below) + CONFLICT * np.minimum(below, above)
        taken[(cuts <= box.low) | (cuts >= box.high)] = -1.0
        if taken.max() <= 0.0:  # nothing is gained, so any split of a tree will do
            cuts = np.concatenate([ends[box.leaves] for ends in self._ends])
            taken = (cuts > box.low) & (cuts < box.high)
        row, feature = np.unravel_index(taken.argmax(), taken.shape)
        return int(feature), float(cuts[row, feature])

    def _halves(self, box: Box, feature: int, cut: float) -> list[Box]:
        """Both sides of a cut, where another class may win."""
        found = []
        for side in (0, 1):
            ends = [box.low.copy(), box.high.copy()]
            ends[1 - side][feature] = cut
            low, high = narrow(self._rules, *ends)
            if not (low < high).all():
                continue
            moved = np.flatnonzero((low != box.low) | (high != box.high))
            lows, highs = (own[box.leaves[:, None], moved] for own in self._ends)
            leaves = box.leaves[((lows < high[moved]) & (highs > low[moved])).all(axis=1)]
            nearest = find_nearest(self._rules, self._point, low, high)
            found += self._kept(box._replace(low=low, high=high, nearest=nearest, leaves=leaves))
        return found


def narrow(rules: Rules, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest box around what keeps groups and ties in one, above `low` and up to `high`, `[n]`; where
    there is nothing `low` is not below `high` somewhere."""
    low, high = rules.ordered(low, high)
    for group in rules.groups:
        may_be_0 = low[group] < 0.0
        one = (high[group] >= 1.0) & (may_be_0.sum() - may_be_0 == len(group) - 1)
        high[group] = np.where(one, high[group], np.minimum(high[group], 0.0) if one.any() else low[group])
        low[group] = np.where(one & (one.sum() == 1), np.maximum(low[group], 0.0), low[group])
    return low, high


def find_nearest(rules: Rules, point: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return what is nearest to a point that keeps the rules in a box that was narrowed, in every norm, `[n]`.

    Each number alone goes to its nearest, which keeps ties: bounds of what is to be larger are no smaller. In a
    group that cannot stay as it is, all that can be 1 are as near.
    """
    above = np.where(rules.integral, np.floor(low) + 1.0, np.nextafter(low, np.inf))
    at = np.where(point > high, high, np.where(point <= low, above, point))
    for group in rules.groups:
        at[group[high[group].argmax()]] += at[group].sum() == 0.0
    return at


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
    coded_places = {place: () for place, name in names.items() if name in model.categories}
    for place, levels in (coded_places | dict(trees.levels)).items():
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
