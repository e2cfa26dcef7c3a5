"""What was decided of the points, and what the data say, as numbers with names for the page's script."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from brittle.report.contents import Contents
from brittle.report.wording import show

FIRST = 1 << 40
"""The first number that stands for words; classes have smaller ones."""


class Answers:
    """The classes of some runs by their numbers; where a decision is no class, the words for it, each with a number.

    Attributes:
        names: what the page shows for each number.
    """

    def __init__(self, runs: Sequence[Contents]) -> None:
        words = {word for run in runs for word in _words(run)}
        self._numbers = {word: FIRST + place for place, word in enumerate(sorted(words))}
        seen = {number for run in runs for column in _COLUMNS for number in self.of(run, column).tolist()}
        seen |= {float(number) for run in runs for number in self.nearest(run)}
        classes = {str(int(number)): runs[0].class_text(number) for number in sorted(seen) if 0 <= number < FIRST}
        self.names = classes | {str(number): show(word, 40) for word, number in self._numbers.items()}

    def of(self, run: Contents, column: str) -> NDArray[np.float64]:
        """The number of each point's `label` or `predicted`; -1 for none."""
        return np.array(self._of(run.points, column, _COLUMNS[column]), dtype=np.float64)

    def nearest(self, run: Contents) -> list[int]:
        """The number of what is decided at each input with another decision."""
        return self._of(run.counterexamples, "predicted", "decided")

    def _of(self, table: pa.Table, column: str, words: str) -> list[int]:
        pairs = zip(table[column].to_pylist(), table[words].to_pylist(), strict=True)
        return [self._numbers.get(word or "", -1) if number is None else int(number) for number, word in pairs]


_COLUMNS = {"label": "target", "predicted": "decided"}
"""What stands for a class, and for words where there is none."""


def _words(run: Contents) -> list[str]:
    """The words of answers that are no classes."""
    found = [(run.points, *names) for names in _COLUMNS.items()] + [(run.counterexamples, "predicted", "decided")]
    return [
        word
        for table, column, words in found
        for number, word in zip(table[column].to_pylist(), table[words].to_pylist(), strict=True)
        if number is None and word
    ]
