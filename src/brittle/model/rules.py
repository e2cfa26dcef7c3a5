"""What the columns of a table may hold, whatever noise or a search makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from brittle.errors import ParameterError, listed


class Rules(NamedTuple):
    """Of each column, `[n]`: whether it is fixed, or holds whole numbers; its smallest and its largest number."""

    fixed: np.ndarray
    whole: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @classmethod
    def of(cls, rules: Mapping[str, str], names: Sequence[str]) -> Rules:
        """Those of words such as `{"age": "whole 17..90", "gain": "0..", "sex": "fixed"}`, by the names of columns.

        Raises:
            ParameterError: a column or a word that there is not.
        """
        found = cls(*(np.full(len(names), side) for side in (False, False, -np.inf, np.inf)))
        for name, words in rules.items():
            if name not in names:
                raise ParameterError(f"no column is called {name!r:.40}; there are {listed(list(names), 4)}")
            if not words.strip():
                raise ParameterError(f"the rule of {name!r:.40} is empty; it has the words fixed, whole, LOW..HIGH")
            place = list(names).index(name)
            for word in words.replace(",", " ").split():
                low, dots, high = word.partition("..")
                try:
                    if dots:
                        found.lower[place], found.upper[place] = float(low or "-inf"), float(high or "inf")
                    else:
                        {"fixed": found.fixed, "whole": found.whole}[word][place] = True
                except (KeyError, ValueError) as error:
                    raise ParameterError(f"rules have the words fixed, whole, LOW..HIGH; found {word!r:.40}") from error
        whole = np.where(found.whole, (np.ceil(found.lower), np.floor(found.upper)), (found.lower, found.upper))
        for place in np.flatnonzero(~(whole[0] <= whole[1])):
            raise ParameterError(
                f"the rule of {names[int(place)]!r:.40} allows no number: {rules[names[int(place)]]!r:.40}"
            )
        return found._replace(lower=whole[0], upper=whole[1])

    def kept(self, rows: np.ndarray) -> np.ndarray:
        """Rows `[B, n]`, rounded to whole numbers and brought inside the bounds where a rule says so."""
        return np.where(self.fixed, rows, np.where(self.whole, np.rint(rows), rows).clip(self.lower, self.upper))
