"""What became of some points of a run: numbers that add up over its shards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa

from brittle.estimate import Status

FIRST_ROWS = 1000
"""Rows at the start of the data whose failures are counted apart."""

SHOWN = 3
"""Failures that are kept in words."""


@dataclass(frozen=True)
class Account:
    """What became of some points.

    Attributes:
        points: how many there are.
        failed: points that lack a number in some score.
        failed_early: how many of them are among the first `FIRST_ROWS` of the data.
        labelled: points with a label and a prediction.
        correct: how many of these are predicted right.
        passes: passes through the network for them.
        check_passes: passes of the checks that are made during the run, on top of these.
        turned: points whose image says in its EXIF data that it is turned or mirrored.
        failures: some of the failed points, in words; of one shard the first.
    """

    points: int = 0
    failed: int = 0
    failed_early: int = 0
    labelled: int = 0
    correct: int = 0
    passes: int = 0
    check_passes: int = 0
    turned: int = 0
    failures: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, points: pa.Table, scores: pa.Table, passes: int, turned: int = 0, check_passes: int = 0, first: int = 0
    ) -> Account:
        """The account of the rows of some points, which took `passes`, and of which so many images are `turned`.

        `check_passes` were made to check them, and `first` points of the run stand before them.
        """
        correct = points["correct"].to_pylist()
        missing = scores.filter(scores["value"].is_null()).to_pylist()
        without = {row["point"]: row for row in reversed(missing)}
        early = points["point"].to_pylist()[: max(0, FIRST_ROWS - first)]
        return cls(
            points=len(points),
            failed=len(without),
            failed_early=sum(point in without for point in early),
            labelled=len(correct) - correct.count(None),
            correct=correct.count(True),
            passes=passes,
            check_passes=check_passes,
            turned=turned,
            failures=tuple(_in_words(row) for row in list(reversed(without.values()))[:SHOWN]),
        )

    def __add__(self, other: Account) -> Account:
        """The account of both, this one's points first."""
        numbers = (field.name for field in fields(self) if field.name != "failures")
        sums = {name: getattr(self, name) + getattr(other, name) for name in numbers}
        return Account(**sums, failures=(self.failures + other.failures)[:SHOWN])


def _in_words(row: Mapping[str, Any]) -> str:
    reason = row["detail"] or Status[row["status"].upper()].sentence
    return f"point {row['point']}, {row['score']}: {row['status']}: {reason}"
