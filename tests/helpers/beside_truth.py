"""Comparison of every row of a table with the truth: does the interval that counts meet that of the truth?

The interval of every row with the status `ok` counts, but for rare flips that were searched for; so does the interval
of its votes, whatever the status. Rows without an interval, or contradicted, vacuous, tied or without a number, are
reported and do not count.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from helpers.truth import Truth
from scipy import stats

import brittle

NUMBER, VOTES = "number", "votes"
"""The two kinds of interval that count."""

EXPECTED_MISSES = 0.02
"""Share of sound intervals that may miss: 1% at their own confidence, 0.1% for the truth, and what theory neglects."""

SURELY = 1e-6
"""Chance that sound intervals have more misses than are allowed."""


@dataclass(frozen=True)
class Compared:
    """An interval of a run and the truth.

    Attributes:
        score: name of the score, and whether points stop.
        draws: largest number of noisy copies, or None.
        row: number of the input.
        kind: `NUMBER` for the interval of a row, `VOTES` for that of its votes; otherwise the status or evidence for
            which the row does not count.
        holds: whether the interval meets that of the truth.
        description: the row in words.
    """

    score: str
    draws: int | None
    row: int
    kind: str
    holds: bool
    description: str

    @property
    def counts(self) -> bool:
        """Return whether the interval counts."""
        return self.kind in (NUMBER, VOTES)

    @property
    def key(self) -> tuple[str, int | None, int, str]:
        """Return what is the same in every run of one job."""
        return (self.score, self.draws, self.row, self.kind)


def compare(table: brittle.Table, truth_of_row: Callable[[int], Truth], rows: Iterable[int]) -> list[Compared]:
    """Compare every score of the chosen rows with the truth, a function of the row."""
    points = {point["point"]: point for point in table.points.select(["point", "row", "predicted"]).to_pylist()}
    chosen = set(rows)
    pairs = ((scored, points[scored["point"]]) for scored in table.scores.to_pylist())
    return [comparison for scored, point in pairs if point["row"] in chosen
            for comparison in compare_row(scored, point, truth_of_row(point["row"]))]  # fmt: skip


def compare_row(scored: dict[str, Any], point: dict[str, Any], true: Truth) -> list[Compared]:
    """Compare a row of the scores, and its votes where it has some."""
    words = _in_words(scored, point, true)
    parameters = json.loads(scored["parameters"])
    about = (f"{scored['score']}{_stops(parameters)}", parameters.get("draws"), point["row"])
    kind = _kind(scored)
    agrees = point["predicted"] == true.predicted and not (true.tied and kind == NUMBER)
    comparisons = [Compared(*about, kind, agrees and _meet(scored["low"], scored["high"], true), words)]
    if None not in (scored["counted_low"], scored["value"]) and "tie" not in (scored["status"], "tie" * true.tied):
        votes = _meet(scored["counted_low"], scored["counted_high"], true)
        comparisons.append(Compared(*about, VOTES, agrees and votes, words))
    return comparisons


def too_many(misses: int, comparisons: int) -> bool:
    """Return whether sound intervals would miss so often at most once in a million times."""
    return bool(misses > stats.binom.ppf(1 - SURELY, comparisons, EXPECTED_MISSES))


def _stops(parameters: dict[str, Any]) -> str:
    """Return in words how points come to have fewer draws than others; nothing where they do not."""
    return " until decided" if "limit" in parameters else ""


def _kind(scored: dict[str, Any]) -> str:
    """Return the kind of a row that counts, or the reason why it does not."""
    if scored["value"] is None or scored["status"] != "ok":
        return scored["status"]
    searched = scored["evidence"] == "sampled" and scored["high"] < scored["counted_high"]
    return scored["evidence"] if scored["low"] is None or searched else NUMBER


def _meet(low: float | None, high: float | None, true: Truth) -> bool:
    """Return whether an interval meets that of the truth."""
    lowest, highest = true.interval()
    return low is not None and high is not None and low <= highest and lowest <= high


def _in_words(scored: dict[str, Any], point: dict[str, Any], true: Truth) -> str:
    lowest, highest = true.interval()
    tied = ", a tie" if true.tied else ""
    alone = f"alone {true.share:.3g} [{lowest:.3g}, {highest:.3g}] of class {true.predicted}{tied}"
    if scored["value"] is None:
        return f"{scored['status']}; {alone}"
    votes = ""
    if scored["counted_low"] is not None:
        votes = f", votes [{scored['counted_low']:.3g}, {scored['counted_high']:.3g}]"
    ends = "" if scored["low"] is None else f" [{scored['low']:.3g}, {scored['high']:.3g}]"
    number = f"{scored['value']:.3g}{ends} of class {point['predicted']}"
    return f"{number}, {scored['status']}, {scored['evidence']}{votes}; {alone}"
