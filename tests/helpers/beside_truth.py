"""Every row of a table beside the truth: does the interval that `brittle` stands behind meet that of the truth?

`brittle` stands behind the interval of every row with the status `ok` that has one, but for rare flips that were
searched for, and behind that of its votes, whatever the status. Rows without an interval, or contradicted, vacuous,
tied or without a number, are told, and not held against it.
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
"""The two kinds of interval that it stands behind."""

EXPECTED_MISSES = 0.02
"""Share of sound intervals that may miss: 1% at their own confidence, 0.1% for the truth, and what theory neglects."""

SURELY = 1e-6
"""Chance of more misses than are let pass."""


@dataclass(frozen=True)
class Compared:
    """One interval of a run beside the truth.

    Attributes:
        score: what was computed, and whether points stop.
        draws: noisy copies for it at most, or None.
        row: which input.
        kind: `NUMBER` for the interval of a row that is stood behind, `VOTES` for that of its votes; otherwise why the
            row is not held against `brittle`, its status or its evidence.
        holds: whether it meets the interval of the truth.
        said: the row in words.
    """

    score: str
    draws: int | None
    row: int
    kind: str
    holds: bool
    said: str

    @property
    def stood_behind(self) -> bool:
        """Whether it is held against `brittle`."""
        return self.kind in (NUMBER, VOTES)

    @property
    def key(self) -> tuple[str, int | None, int, str]:
        """The same in every run of one job."""
        return (self.score, self.draws, self.row, self.kind)


def compare(table: brittle.Table, known: Callable[[int], Truth], rows: Iterable[int]) -> list[Compared]:
    """Every score of the chosen rows beside the truth, which is asked for by row."""
    points = {each["point"]: each for each in table.points.select(["point", "row", "predicted"]).to_pylist()}
    chosen = set(rows)
    pairs = ((scored, points[scored["point"]]) for scored in table.scores.to_pylist())
    return [each for scored, point in pairs if point["row"] in chosen
            for each in compare_row(scored, point, known(point["row"]))]  # fmt: skip


def compare_row(scored: dict[str, Any], point: dict[str, Any], true: Truth) -> list[Compared]:
    """A row of the scores, and its votes where it has some."""
    said = _in_words(scored, point, true)
    parameters = json.loads(scored["parameters"])
    about = (f"{scored['score']}{_stops(parameters)}", parameters.get("draws"), point["row"])
    kind = _kind(scored)
    right = point["predicted"] == true.predicted and not (true.tied and kind == NUMBER)
    found = [Compared(*about, kind, right and _meet(scored["low"], scored["high"], true), said)]
    if None not in (scored["counted_low"], scored["value"]) and "tie" not in (scored["status"], "tie" * true.tied):
        votes = _meet(scored["counted_low"], scored["counted_high"], true)
        found.append(Compared(*about, VOTES, right and votes, said))
    return found


def too_many(misses: int, comparisons: int) -> bool:
    """Whether sound intervals would miss so often at most once in a million times."""
    return bool(misses > stats.binom.ppf(1 - SURELY, comparisons, EXPECTED_MISSES))


def _stops(parameters: dict[str, Any]) -> str:
    """How points come to have fewer draws than others, in words; nothing where they do not."""
    return " until decided" if "limit" in parameters else ""


def _kind(scored: dict[str, Any]) -> str:
    """Whether a row is held against `brittle`, or why not."""
    if scored["value"] is None or scored["status"] != "ok":
        return scored["status"]
    searched = scored["evidence"] == "sampled" and scored["high"] < scored["counted_high"]
    return scored["evidence"] if scored["low"] is None or searched else NUMBER


def _meet(low: float | None, high: float | None, true: Truth) -> bool:
    """Whether an interval meets that of the truth."""
    least, most = true.interval()
    return low is not None and high is not None and low <= most and least <= high


def _in_words(scored: dict[str, Any], point: dict[str, Any], true: Truth) -> str:
    least, most = true.interval()
    tied = ", a tie" if true.tied else ""
    alone = f"alone {true.share:.3g} [{least:.3g}, {most:.3g}] of class {true.predicted}{tied}"
    if scored["value"] is None:
        return f"{scored['status']}; {alone}"
    votes = ""
    if scored["counted_low"] is not None:
        votes = f", votes [{scored['counted_low']:.3g}, {scored['counted_high']:.3g}]"
    ends = "" if scored["low"] is None else f" [{scored['low']:.3g}, {scored['high']:.3g}]"
    number = f"{scored['value']:.3g}{ends} of class {point['predicted']}"
    return f"{number}, {scored['status']}, {scored['evidence']}{votes}; {alone}"
