"""The nearest other decision of an ensemble of trees, by branch and bound over the boxes that its splits cut."""

import heapq
from dataclasses import replace
from itertools import count
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch

from brittle.estimate import ORDER
from brittle.extensions.trees.read_trees import extract_trees, raw_scores
from brittle.extensions.trees.trees import Trees
from brittle.measure.forward import Clean
from brittle.model.arrays import Estimator
from brittle.model.bounds import NONE
from brittle.model.classifier import Classifier
from brittle.model.rules import Rules

BOXES = {"fast": 500, "standard": 2_000, "middle": 2_000, "thorough": 20_000, "full": 20_000}
"""Most boxes that the search examines for a point, by effort of a search or proof of a certificate."""

DEMANDING, CONFLICT = 48, 4.0
"""Most trees whose best leaves choose a split; and the weight of a split that divides best leaves against one that
separates them from the point (chosen on forests and boosted trees of census data)."""

BOUNDARY_ROWS = 256  # number of inputs at which trees are compared with their library after reading

_TREES: WeakKeyDictionary[Estimator, Trees | None] = WeakKeyDictionary()
"""The trees of each classifier, which are read and compared once."""


def search_boxes(norm: str, bounded: bool, effort: str, classifier: Classifier, clean: Clean) -> dict | None:
    """Return the nearest inputs with another class, as in `NearestPoint`, in double precision.

    Points with missing values are left out. None where the model is no ensemble of trees, its inputs are normalised,
    the decision is not the predicted class, or the trees have other classes than the model. `effort` is one of `BOXES`.
    """
    model, shape = classifier.model, clean.inputs.flatten(1).shape
    is_plain = classifier.decision.of_classes and classifier.mean is None and classifier.std is None
    if not is_plain or not isinstance(model, Estimator) or (trees := find_trees(model)) is None:
        return None
    if (trees.n_features_in_, len(trees.base)) != (shape[1], clean.logits.shape[1]):
        return None
    rows, clean_classes = clean.inputs.flatten(1).double().cpu().numpy(), clean.predicted.cpu().numpy()
    rules = model.rules(shape[1])
    coded_rows = rules.kept(rows)
    rows = place_categories(model, trees, coded_rows)
    if np.isnan(rows[:, list(trees.levels)]).any():  # its columns hold other values than their categories
        return None
    usable = (clean.finite & ~clean.tied & ~clean.incomplete).cpu().numpy().nonzero()[0]
    if len(usable) and not agrees(model, trees, coded_rows[usable]):
        return None
    if rules.integral.any():
        trees = replace(trees, cut=np.where(rules.integral[trees.feature], np.floor(trees.cut), trees.cut))
    scores = trees.scores(rows[usable])
    if (scores > scores[np.arange(len(usable)), clean_classes[usable], None] + trees.slack).any():
        return None
    varies = clean.inputs.new_ones(()) if clean.varies is None else clean.varies
    varies = varies.expand_as(clean.inputs).flatten(1).bool().cpu().numpy() & ~rules.fixed
    bounds = classifier.bounds.flat(clean.inputs.shape[1:]) if bounded else NONE
    if varies[:, list(trees.levels)].any():
        return None
    lower, upper = np.maximum(rules.lower, bounds.lower.numpy()), np.minimum(rules.upper, bounds.upper.numpy())
    upper = np.where(rules.integral, np.floor(upper), upper)
    distance, proved = torch.where(clean.finite & clean.tied, 0.0, torch.inf).double(), torch.zeros(shape[0]).double()
    nearest_rows, classes = torch.from_numpy(coded_rows.copy()), torch.full_like(clean.predicted, -1)
    passes = torch.full_like(clean.predicted, clean.passes)
    for row in usable.tolist():
        point = rows[row]

        def predict_class(at: np.ndarray) -> int:
            passes[row] += 1  # noqa: B023
            classifier.count(1)
            at = np.where(varies[row], at, coded_rows[row])  # noqa: B023
            return int(predict(model, at[None])[0])

        low = np.nextafter(np.where(varies[row], np.minimum(lower, point), point), -np.inf)
        high = np.where(varies[row], np.maximum(upper, point), point)
        low, high = narrow(rules, low, high)
        if not ((low < point) & (point <= high)).all():  # fixed columns that break a rule
            return None
        search = BoxSearch(trees, point, clean_classes[row], norm, low, high, rules, predict_class)
        search.run(BOXES[effort])
        proved[row], distance[row] = search.proved, search.distance
        if search.nearest is not None:
            nearest_rows[row] = torch.from_numpy(np.where(varies[row], search.nearest, coded_rows[row]))
            classes[row] = predict_class(search.nearest)
            if classes[row] == clean_classes[row]:
                return None
    points = nearest_rows.view(clean.inputs.shape)
    return {"distance": distance, "points": points, "predicted": classes, "passes": passes, "proved": proved}


class Box(NamedTuple):
    """The inputs above `low` and up to `high`; the nearest of them; the leaves that they meet, of trees with several,
    and the other trees' sum for `z_j - z_t`, `[C]`. Boxes are in the order of distance, then of the largest margin."""

    distance: float
    priority: float
    number: int
    low: np.ndarray
    high: np.ndarray
    nearest: np.ndarray
    leaves: np.ndarray
    margins: np.ndarray


class BoxSearch:
    """The search around one point, in the order of distance, so that it can stop at any box.

    A box is dropped where no class can win in it, even if every tree gives the largest value of any leaf that the box
    meets. Else its nearest input is examined, and the box is split where no other class wins there; `predicted` asks
    the model where rounding leaves the sums undecided. Up to the first input the search follows the half with the
    largest bound. The nearest input with another class so far, `nearest`, is at `distance`; none is below `proved`.
    """

    def __init__(
        self, trees: Trees, point: np.ndarray, label: int, norm: str, low: Any, high: Any, rules: Rules, predicted: Any
    ) -> None:
        self.distance, self.proved = np.inf, 0.0
        self.nearest: np.ndarray | None = None
        self._point, self._label, self._rules, self._predicted = point, label, rules, predicted
        self._order = ORDER.get(norm, 0)  # 0: the number of changed coordinates
        self._slack, self._ends, self._count = trees.slack, trees.ends, count()
        self._tree = np.searchsorted(trees.roots, trees.leaves, side="right")
        values, margins = trees.value[trees.leaves], trees.base - trees.base[label]
        self._values, margins[label] = values - values[:, label : label + 1], -np.inf
        inside = np.flatnonzero(((self._ends[0] < high) & (self._ends[1] > low)).all(axis=1))
        self._waiting = self._queue_entry(Box(0.0, 0.0, 0, low, high, point, inside, margins))

    def run(self, boxes: int) -> None:
        """Examine so many boxes, or until the distance is exact."""
        next_box = None
        while boxes > 0 and (next_box or (self._waiting and self._waiting[0].distance < self.distance)):
            boxes -= 1
            halves = self._examine(next_box or heapq.heappop(self._waiting))
            next_box = min(halves, key=lambda half: half.priority, default=None) if self.nearest is None else None
            for half in halves:
                if half is not next_box:
                    heapq.heappush(self._waiting, half)
        if next_box is not None:
            heapq.heappush(self._waiting, next_box)
        self.proved = min(self._waiting[0].distance if self._waiting else np.inf, self.distance)

    def _length(self, at: np.ndarray) -> float:
        return float(np.linalg.norm(at - self._point, self._order))

    def _queue_entry(self, box: Box) -> list[Box]:
        """Return the box with its bound; an empty list where no other class can win in it nearer than `distance`."""
        distance = self._length(box.nearest)
        if distance >= self.distance:
            return []
        leaves, margins = box.leaves, box.margins
        starts, sizes = self._starts(leaves)
        if (is_single := sizes == 1).any():
            margins = margins + self._values[leaves[starts[is_single]]].sum(axis=0)
            leaves = leaves[np.repeat(~is_single, sizes)]
            starts, _ = self._starts(leaves)
        largest = np.maximum.reduceat(self._values[leaves], starts).sum(axis=0) if len(leaves) else 0.0
        bound = float((margins + largest).max())
        return [] if bound < -self._slack else [Box(distance, -bound, next(self._count), *box[3:6], leaves, margins)]

    def _starts(self, leaves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        starts = np.flatnonzero(np.diff(self._tree[leaves], prepend=-1))
        return starts, np.diff(starts, append=len(leaves))

    def _update(self, at: np.ndarray, margin: float) -> bool:
        """Return whether another class wins at an input of this margin; record the input where it is the nearest."""
        is_rival = margin > self._slack or (margin >= -self._slack and self._predicted(at) != self._label)
        if is_rival and (distance := self._length(at)) < self.distance:
            self.distance, self.nearest = distance, at
        return is_rival

    def _examine(self, box: Box) -> list[Box]:
        """Return the halves of a box; none where another class wins at its nearest input, or no split cuts it."""
        leaves, values = box.leaves, self._values[box.leaves]
        lows, highs = (ends[leaves] for ends in self._ends)
        holds_nearest = ((lows < box.nearest) & (box.nearest <= highs)).all(axis=1)
        if self._update(box.nearest, (box.margins + values[holds_nearest].sum(axis=0)).max()) or not len(leaves):
            return []
        starts, sizes = self._starts(leaves)
        largest = np.maximum.reduceat(values, starts)
        rival = int((box.margins + largest.sum(axis=0)).argmax())
        tree_of_leaf = np.repeat(np.arange(len(starts)), sizes)
        best = np.flatnonzero(values[:, rival] == largest[tree_of_leaf, rival])
        best = best[np.diff(tree_of_leaf[best], prepend=-1) > 0]
        gain, lows, highs = largest[:, rival] - values[holds_nearest, rival], lows[best], highs[best]
        low, high = narrow(self._rules, np.maximum(box.low, lows.max(axis=0)), np.minimum(box.high, highs.min(axis=0)))
        if (low < high).all():  # where the best leaves of all trees meet
            at = find_nearest(self._rules, self._point, low, high)
            if self._length(at) < self.distance:
                self._update(at, box.margins[rival] + largest[:, rival].sum())
        return self._halves(box, *self._split(box, lows, highs, gain))

    def _split(self, box: Box, lows: np.ndarray, highs: np.ndarray, gain: np.ndarray) -> tuple[int, float]:
        """Return the feature and the cut that remove most of the gain of the best leaves, `[T, n]`, over those at the
        nearest input: from its side, or from both where best leaves lie on either."""
        demanding = np.argsort(-gain)[:DEMANDING]
        lows, highs, gain = lows[demanding], highs[demanding], gain[demanding]
        cuts = np.concatenate((lows, highs))
        sides = (highs <= cuts[:, None], lows >= cuts[:, None])
        below, above = (np.einsum("k,ckn->cn", gain, side) for side in sides)
        benefit = np.where(box.nearest <= cuts, above, below) + CONFLICT * np.minimum(below, above)
        benefit[(cuts <= box.low) | (cuts >= box.high)] = -1.0
        if benefit.max() <= 0.0:  # no split removes a gain, so any split of a tree will do
            cuts = np.concatenate([ends[box.leaves] for ends in self._ends])
            benefit = (cuts > box.low) & (cuts < box.high)
        row, feature = np.unravel_index(benefit.argmax(), benefit.shape)
        return int(feature), float(cuts[row, feature])

    def _halves(self, box: Box, feature: int, cut: float) -> list[Box]:
        """Return the sides of a cut on which another class may win."""
        halves = []
        for side in (0, 1):
            ends = [box.low.copy(), box.high.copy()]
            ends[1 - side][feature] = cut
            low, high = narrow(self._rules, *ends)
            if not (low < high).all():
                continue
            changed_features = np.flatnonzero((low != box.low) | (high != box.high))
            lows, highs = (leaf_ends[box.leaves[:, None], changed_features] for leaf_ends in self._ends)
            leaves = box.leaves[((lows < high[changed_features]) & (highs > low[changed_features])).all(axis=1)]
            nearest = find_nearest(self._rules, self._point, low, high)
            halves += self._queue_entry(box._replace(low=low, high=high, nearest=nearest, leaves=leaves))
        return halves


def narrow(rules: Rules, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest box around the inputs above `low` and up to `high`, `[n]`, that keep groups and ties; without
    such inputs `low` is not below `high` somewhere."""
    low, high = rules.ordered(low, high)
    for group in rules.groups:
        may_be_0 = low[group] < 0.0
        may_be_1 = (high[group] >= 1.0) & (may_be_0.sum() - may_be_0 == len(group) - 1)
        high[group] = np.where(may_be_1, high[group], np.minimum(high[group], 0.0) if may_be_1.any() else low[group])
        low[group] = np.where(may_be_1 & (may_be_1.sum() == 1), np.maximum(low[group], 0.0), low[group])
    return low, high


def find_nearest(rules: Rules, point: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the input of a narrowed box that keeps the rules nearest to a point, in every norm, `[n]`.

    Each number by itself goes to its nearest value, which keeps ties, because the bounds of the larger number are no
    smaller. In a group that cannot stay as it is, all columns that can be 1 are equally near.
    """
    above = np.where(rules.integral, np.floor(low) + 1.0, np.nextafter(low, np.inf))
    at = np.where(point > high, high, np.where(point <= low, above, point))
    for group in rules.groups:
        at[group[high[group].argmax()]] += at[group].sum() == 0.0
    return at


def find_trees(model: Estimator) -> Trees | None:
    """Return the trees of a classifier, where it is an ensemble of trees that was read correctly; else None.

    The library's scores and classes are compared with theirs at inputs on the cuts of the trees and beside them.
    """
    if model not in _TREES:
        _TREES[model] = _read(model)
    return _TREES[model]


def _read(model: Estimator) -> Trees | None:
    trees = extract_trees(model.estimator)
    if trees is None or len(trees.base) != len(model.classes):
        return None
    rows, names = trees.boundary_rows(BOUNDARY_ROWS), dict(enumerate(model.feature_names or ()))
    coded_places = {place: () for place, name in names.items() if name in model.categories}
    for place, levels in (coded_places | dict(trees.levels)).items():
        coded = model.categories.get(names.get(place))
        if coded is not None or all(isinstance(level, int | float) for level in levels):
            rows[:, place] = np.resize(levels if coded is None else range(len(coded.levels)), len(rows))
    return trees if agrees(model, trees, rows) else None


def agrees(model: Estimator, trees: Trees, rows: np.ndarray) -> bool:
    """Return whether the library agrees with these trees at the rows of `[B, n]` of known categories, at least one."""
    rows = model.rules(rows.shape[1]).kept(rows)
    places = place_categories(model, trees, rows)
    has_levels = ~np.isnan(places).any(axis=1)
    if not has_levels.any():
        return False
    rows = rows[has_levels]
    raw = raw_scores(model.estimator, model.as_rows(rows))
    return trees.agree(places[has_levels], raw, predict(model, rows))


def place_categories(model: Estimator, trees: Trees, rows: np.ndarray) -> np.ndarray:
    """Return rows `[B, n]` with the places that categories have in trees."""
    rows, names = rows.copy(), dict(enumerate(model.feature_names or ()))
    for place in trees.levels:
        coded = model.categories.get(names.get(place))
        values = rows[:, place].tolist() if coded is None else [coded.levels[int(code)] for code in rows[:, place]]
        rows[:, place] = trees.places(place, values)
    return rows


def predict(model: Estimator, rows: np.ndarray) -> np.ndarray:
    """Return the positions in `classes` of the library's predictions for rows `[B, n]`; `[B]`."""
    classes = np.ravel(model.estimator.predict(model.as_rows(rows)))
    return (classes[:, None] == model.classes).argmax(axis=1)
