"""Ensembles of decision trees as arrays: their sums, and the boxes that their splits cut."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

SINGLE, DOUBLE = 2.0**-24, 2.0**-53  # relative rounding of an addition
FAR = 1e30  # a number beyond all cuts, within single precision
MAX_NODES = 1 << 20  # most nodes that splits by categories may expand to


@dataclass(frozen=True)
class Trees:
    """Class scores `base + sum_t v_t(x)`: each tree gives the numbers of the leaf that holds `x`.

    The nodes of all trees stand in one row. One sends `x` to the node `left_ids` where `x[feature]` is at most `cut`, a
    double, else to `right_ids`, `[N]` each; a leaf sends it to itself, and adds its `value`, `[N, C]`. `roots`, `[T]`,
    are the first nodes of the trees; `unit` is the rounding of an addition in the model; `levels` are the categories
    that columns were fitted on, which the cuts of the trees refer to by place.
    """

    feature: np.ndarray
    cut: np.ndarray
    left_ids: np.ndarray
    right_ids: np.ndarray
    value: np.ndarray
    roots: np.ndarray
    base: np.ndarray
    n_features_in_: int
    unit: float
    levels: Mapping[int, Sequence[Any]] = field(default_factory=dict)

    @classmethod
    def join(
        cls, parts: Any, base: Any, features: int, cut: Any = np.asarray, unit: float = DOUBLE, levels: Any = None
    ) -> Trees:
        """Join trees, each `(leaf, feature, threshold, left, right, value)`, with nodes numbered within the tree, the
        root first; `cut` returns the largest doubles that go to the left of thresholds."""
        rows, roots = [], [0]
        for leaf, feature, threshold, left_ids, right_ids, value in parts:
            _check_tree(leaf, left_ids, right_ids)
            place = np.arange(len(leaf)) + roots[-1]
            sides = (np.where(leaf, place, side + roots[-1]) for side in (left_ids, right_ids))
            number = np.where(leaf, 0.0, threshold)
            rows.append((np.where(leaf, 0, feature), number, *sides, np.where(leaf[:, None], value, 0.0)))
            roots.append(roots[-1] + len(leaf))
        feature, number, left_ids, right_ids, value = (np.concatenate(column) for column in zip(*rows, strict=True))
        is_sound = np.isfinite(value).all() and not np.isnan(number).any()
        if not is_sound or feature.min() < 0 or feature.max() >= features:
            raise ValueError("a node splits by no feature, or adds no number")
        root_nodes, base = np.array(roots[:-1]), np.array(base, np.float64)
        levels = {place: [*dict.fromkeys(categories)] for place, categories in (levels or {}).items()}
        return cls(feature, cut(number), left_ids, right_ids, value, root_nodes, base, features, unit, levels)

    def places(self, place: int, values: Sequence[Any]) -> np.ndarray:
        """Return the places of values of a column of categories, `[B]`; NaN for unknown ones."""
        place_by_level = {level: float(at) for at, level in enumerate(self.levels[place])}
        return np.array([place_by_level.get(value, np.nan) for value in values])

    def scores(self, rows: Any) -> np.ndarray:
        """Return class scores `[B, C]` of rows `[B, n]`."""
        rows, sums = np.asarray(rows, np.float64), [np.empty((0, len(self.base)))]
        for x in np.array_split(rows, max(1, len(rows) * len(self.roots) >> 21)):
            at, row = np.tile(self.roots, (len(x), 1)), np.arange(len(x))[:, None]
            for _ in self._levels:
                at = np.where(x[row, self.feature[at]] <= self.cut[at], self.left_ids[at], self.right_ids[at])
            sums.append(self.base + self.value[at].sum(axis=1))
        return np.concatenate(sums)

    def boundary_rows(self, count: int) -> np.ndarray:
        """Return rows `[B, n]` on the cuts of the trees, one number above, between two of them, and far away."""
        generator, rows = np.random.default_rng(0), np.zeros((count, self.n_features_in_))
        inner = self.left_ids != np.arange(len(self.left_ids))
        for feature in np.unique(self.feature[inner]):
            cuts = np.unique(self.cut[inner & (self.feature == feature)]).clip(-FAR, FAR)
            middles = cuts[:-1] / 2 + cuts[1:] / 2
            rows[:, feature] = generator.choice([*cuts, *np.nextafter(cuts, np.inf), *middles, -FAR, FAR], count)
        return rows

    def agree(self, rows: np.ndarray, raw: np.ndarray, predicted: np.ndarray) -> bool:
        """Return whether scores of rows `[B, n]` are those of the library, and the largest that of its class, `[B]`."""
        scores = self.scores(rows)
        sums = scores if raw.ndim == 2 else scores[:, 1] - scores[:, 0]
        if sums.shape != raw.shape or not (np.abs(sums - raw) <= self.slack).all():
            return False
        return bool((scores.max(axis=1) - scores[np.arange(len(scores)), predicted] <= self.slack).all())

    @cached_property
    def slack(self) -> float:
        """Largest error of a difference of class scores in the model, which adds one number after another, and may
        compare functions of the sums."""
        largest_sum = np.maximum.reduceat(np.abs(self.value).max(axis=1), self.roots).sum() + np.abs(self.base).max()
        return 2 * self.unit * ((len(self.roots) + 2) * float(largest_sum) + 8)

    @cached_property
    def leaves(self) -> np.ndarray:
        """The reachable leaves, tree by tree, `[L]`."""
        inner = np.concatenate([self.roots[:0], *self._levels])
        return np.setdiff1d(np.concatenate((self.roots, self.left_ids[inner], self.right_ids[inner])), inner)

    @cached_property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the box of every leaf: above the first and up to the second, `[L, n]` each."""
        low, high = (np.full((len(self.left_ids), self.n_features_in_), side) for side in (-np.inf, np.inf))
        for nodes in self._levels:
            for ids, ends, clip in ((self.left_ids, high, np.minimum), (self.right_ids, low, np.maximum)):
                low[ids[nodes]], high[ids[nodes]] = low[nodes], high[nodes]
                cells = ids[nodes], self.feature[nodes]
                ends[cells] = clip(ends[cells], self.cut[nodes])
        return low[self.leaves], high[self.leaves]

    @cached_property
    def _levels(self) -> list[np.ndarray]:
        """The inner nodes, by their distance from the root."""
        levels, nodes = [], self.roots
        while len(nodes := nodes[self.left_ids[nodes] != nodes]):
            levels.append(nodes)
            nodes = np.concatenate((self.left_ids[nodes], self.right_ids[nodes]))
        return levels


def expand_sets(trees: Sequence[tuple[Any, Mapping[int, Sequence[float]]]]) -> list[tuple[Any, ...]]:
    """Replace nodes that split by sets of numbers with nodes that split at cuts, for `Trees.join`.

    Each tree comes with the ends of its sets by node: numbers are in a set from the first end on, from the second on
    not, and so on, and numbers in the set go to the right. It becomes a node for each end that is still undecided.
    """
    parts, nodes_left = [], MAX_NODES
    for part, sets in trees:
        leaf, feature, number, left_ids, right_ids, value = part
        _check_tree(leaf, left_ids, right_ids)
        if not sets:
            parts.append(part)
            continue
        nodes, cuts, sides = [], [], [[0, 0]]
        waiting: list[tuple[int, dict[int, tuple[float, float]], list[int], int]] = [(0, {}, sides[0], 0)]
        while waiting and nodes_left > 0:
            node, limits, siblings, side = waiting.pop()
            low, high, start, stop = -np.inf, np.inf, 0, 0
            while node in sets:
                low, high = limits.get(feature[node], (-np.inf, np.inf))
                start, stop = bisect_right(sets[node], low), bisect_left(sets[node], high)
                if start < stop:
                    break
                node = int((left_ids, right_ids)[start % 2][node])
            siblings[side], children, nodes_left = len(nodes), [0, 0], nodes_left - 1
            nodes.append(node)
            cuts.append(sets[node][(start + stop) // 2] if node in sets else number[node])
            sides.append(children)
            if node in sets:
                halves = ((low, cuts[-1]), (cuts[-1], high))
                waiting += [(node, {**limits, feature[node]: half}, children, at) for at, half in enumerate(halves)]
            elif not leaf[node]:
                waiting += [(int(ids[node]), limits, children, at) for at, ids in enumerate((left_ids, right_ids))]
        if waiting:
            raise ValueError("its categories cut too many boxes")
        parts.append((leaf[nodes], feature[nodes], np.array(cuts), *np.array(sides[1:]).T, value[nodes]))
    return parts


def _check_tree(leaf: np.ndarray, left_ids: np.ndarray, right_ids: np.ndarray) -> None:
    """Raise where a node has two parents or the root has one, so that no path from the root ends in a circle."""
    children = np.concatenate((left_ids[~leaf], right_ids[~leaf]))
    if not ((children > 0) & (children < len(leaf))).all() or len(np.unique(children)) < len(children):
        raise ValueError("the nodes are no tree")


def single_cut(thresholds: np.ndarray, strict: bool = False) -> np.ndarray:
    """Return the largest double that, rounded to single precision, is at most a threshold, or `strict`ly smaller."""
    lowest = np.float32(-np.inf)
    last = thresholds.astype(np.float32)
    last = np.where(last >= thresholds if strict else last > thresholds, np.nextafter(last, lowest), last)
    middle = (last.astype(np.float64) + np.nextafter(last, -lowest)) / 2
    return np.where(middle.astype(np.float32) == last, middle, np.nextafter(middle, -np.inf))


def place_in_class(values: Any, at: int, groups: int) -> np.ndarray:
    """Return numbers of one group of trees, `[N]`, in its class's column, `[N, C]`; a single group is of the second."""
    return np.asarray(values, np.float64)[:, None] * (np.arange(max(2, groups)) == (1 if groups == 1 else at))
