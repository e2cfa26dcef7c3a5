"""Rules of the columns of a table, which noise and a search keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from brittle.errors import ParameterError, listed

WORDS = "fixed, whole, LOW..HIGH, one-hot:GROUP, at-most:COLUMN"


class Rules(NamedTuple):
    """Rules of columns, alone and together."""

    fixed: np.ndarray  # True where a column is fixed, or holds whole numbers, `[n]`
    integral: np.ndarray
    lower: np.ndarray  # its smallest and its largest number, `[n]`
    upper: np.ndarray
    groups: Sequence[np.ndarray] = ()  # places of columns of which one is 1 and the others are 0
    ties: np.ndarray = np.empty((0, 2), int)  # places `a, b` where `a` is at most `b`, all that follow too, `[T, 2]`

    @classmethod
    def of(cls, rules: Mapping[str, str], names: Sequence[str]) -> Rules:
        """Read the rules from words by columns, as `{"age": "whole 17..90", "low": "at-most:high"}`."""
        no, low = np.zeros(len(names), bool), np.full(len(names), -np.inf)
        new = cls(no.copy(), no.copy(), low, -low)
        groups: dict[str, list[int]] = {}
        ties: list[tuple[int, int]] = []
        for name, words in rules.items():
            place = _place(name, names)
            if not words.strip():
                raise ParameterError(f"the rule of {name!r:.40} is empty; it has the words {WORDS}")
            kinds, *limits = words.split("at-most:")
            ties += [(place, _place(limit.strip(" ,"), names)) for limit in limits]
            for word in (several := kinds.replace(",", " ").split()):
                low, dots, high = word.partition("..")
                kind, _, group = word.partition(":")
                try:
                    if kind == "one-hot" and group:
                        if limits or len(several) > 1:
                            raise ParameterError(f"a column of a one-hot group has no other rule; found {words!r:.40}")
                        groups.setdefault(group, []).append(place)
                        new.integral[place], new.lower[place], new.upper[place] = True, 0.0, 1.0
                    elif dots:
                        new.lower[place], new.upper[place] = float(low or "-inf"), float(high or "inf")
                    else:
                        {"fixed": new.fixed, "whole": new.integral}[word][place] = True
                except (KeyError, ValueError) as error:
                    raise ParameterError(f"rules have the words {WORDS}; found {word!r:.40}") from error
        if lone_group := next((group for group, places in groups.items() if len(places) < 2), None):
            raise ParameterError(f"the one-hot group {lone_group!r:.40} has one column; it needs two or more")
        pairs = set(ties)
        while more := {(a, d) for a, b in pairs for c, d in pairs if b == c} - pairs:
            pairs |= more
        new = new._replace(
            groups=[np.array(places) for places in groups.values()], ties=np.array(sorted(pairs), int).reshape(-1, 2)
        )
        hot = {place for places in groups.values() for place in places}
        for a, b in new.ties.tolist():
            if a == b or hot & {a, b} or (new.fixed[a] and new.fixed[b]) or new.integral[a] != new.integral[b]:
                raise ParameterError(
                    f"{names[a]!r:.40} at most {names[b]!r:.40}: make both columns whole or "
                    "neither, fix one at most, and keep them out of one-hot groups"
                )
        inside = np.where(new.integral, (np.ceil(new.lower), np.floor(new.upper)), (new.lower, new.upper))
        for place in np.flatnonzero(~(inside[0] <= inside[1])).tolist():
            raise ParameterError(f"the rule of {names[place]!r:.40} allows no number: {rules[names[place]]!r:.40}")
        lower, upper = new.ordered(*inside)
        for a, b in new.ties[(lower > upper)[new.ties].any(axis=1)]:
            raise ParameterError(
                f"{names[a]!r:.40} cannot be at most {names[b]!r:.40}: their rules allow no such numbers"
            )
        return new._replace(lower=lower, upper=upper)

    @property
    def together(self) -> list[list[int]]:
        """Places of columns that groups and ties hold together."""
        groups: list[set[int]] = []
        for places in map(set, [*self.groups, *self.ties]):
            places = places.union(*(group for group in groups if group & places))
            groups = [*(group for group in groups if not group & places), places]
        return [sorted(map(int, group)) for group in groups]

    def kept(self, rows: np.ndarray) -> np.ndarray:
        """Rows `[B, n]` as a model reads them.

        Each number is rounded where it is whole. One that is tied is then the mean of the largest that is to be at most
        it and of the smallest that is to be at least it, itself among them: the nearest that keep their order, by the
        largest change. All are brought inside their bounds; of a one-hot group the largest, the first of such, is 1.
        A missing value stays missing, and says nothing of those that it is tied to or stands in a group with.
        """
        values = np.where(self.integral & ~self.fixed, np.rint(rows), rows)
        if len(self.ties):
            largest, smallest = self.ordered(values, values)
            values = np.where(self.integral, np.rint((largest + smallest) / 2), (largest + smallest) / 2)
        low, high = (np.where(self.fixed, rows, side) for side in (self.lower, self.upper))
        values = values.clip(*self.ordered(low, high))
        for group in self.groups:
            hot = np.arange(len(group)) == rows[:, group].argmax(axis=1)[:, None]
            incomplete = np.isnan(rows[:, group]).any(axis=1, keepdims=True)
            values[:, group] = np.where(incomplete, values[:, group], hot)
        return np.where(np.isnan(rows), np.nan, values)

    def ordered(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bounds `[..., n]` that those of tied columns leave."""
        low, high = low.copy(), high.copy()
        for a, b in self.ties:
            low[..., b], high[..., a] = np.fmax(low[..., b], low[..., a]), np.fmin(high[..., a], high[..., b])
        return low, high


def _place(name: str, names: Sequence[str]) -> int:
    if name not in names:
        raise ParameterError(f"no column is called {name!r:.40}; there are {listed(list(names))}")
    return list(names).index(name)
