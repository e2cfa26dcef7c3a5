"""Plain text for a terminal: numbers, intervals, columns."""

from __future__ import annotations

import math
from collections.abc import Sequence

from brittle.errors import printable
from brittle.store.columns import Row
from brittle.store.settings import Setting


def number(value: float) -> str:
    """A number for a terminal, with three digits that count; `-` for none."""
    return "-" if math.isnan(value) else f"{value:.3g}"


def decision_text(decision: str | None) -> str:
    """What a prediction is, in a sentence, where it is not the predicted class; else empty.

    Args:
        decision: as the record of a run holds it, such as `top:5`.
    """
    if decision is None:
        return ""
    name, _, value = decision.partition(":")
    labels = f"whether label {value} holds" if value and value != "each" else "which labels hold"
    labels += ", all together and each by itself" if value == "each" else ""
    labels += "" if value and value != "each" else "; a class is such a set of labels"
    sentences = {
        "multilabel": f"A prediction is {labels}.",
        "top": f"A prediction is which {value} classes score highest, in any order.",
        "within": f"A prediction holds while every number stays within {value} of what it is.",
    }
    return sentences.get(name, f"A prediction holds while the function {printable(value)} says that it is the same.")


def chosen_text(points: int, chosen_from: int | None) -> str:
    """How the points of a run were chosen by their ids out of those of the data; empty where they were not.

    Example:
        >>> chosen_text(3, 1000)
        'chosen by their ids out of 1,000'
    """
    return "" if chosen_from is None else f"chosen by {'its id' if points == 1 else 'their ids'} out of {chosen_from:,}"


def by_number(count: int, one: str, many: str) -> str:
    """The word that goes with a number of things: `one` for 1, `many` for 0, for 2 and for more.

    Example:
        >>> [by_number(count, "point holds", "points hold") for count in (0, 1, 2)]
        ['points hold', 'point holds', 'points hold']
    """
    return one if count == 1 else many


def verb_of(count: int, total: int, one: str, many: str) -> str:
    """The verb after `share_of`: `one` where it speaks of 1, or of some of 1.

    Example:
        >>> [verb_of(*shares, "holds", "hold") for shares in ((0, 1), (1, 9), (0, 9), (2, 9))]
        ['holds', 'holds', 'hold', 'hold']
    """
    return one if 1 in (count, total) else many


def share_of(count: int, total: int, noun: str) -> str:
    """Some of a number of things, such as `646 of 2,000 predictions (32%)`; never rounded to none or to all."""
    plural = by_number(total, noun, f"{noun}s")
    share = 100.0 * count / total
    rounded = (
        f"{share:.0f}%" if 1.0 <= share <= 99.0 or count in (0, total) else "under 1%" if share < 1.0 else "over 99%"
    )
    return f"{count:,} of {total:,} {plural} ({rounded})"


def with_interval(row: Row, name: str) -> str:
    """The number `name` of a row with the interval that stands beside it."""
    value, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
    return "-" if math.isnan(value) else f"{number(value)} [{number(low)}, {number(high)}]"


def named_interval(name: str, value: float, low: float, high: float) -> dict[str, float]:
    """The fields of a row for a number and its interval, as `with_interval` reads them."""
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Cells in columns, two blanks before each row: the first flush left, the others flush right; each in one line."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        "  "
        + "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]


def setting_name(row: Row) -> str:
    """The noise of a row with `sigma` and `noise`."""
    return str(Setting(row["sigma"], row["noise"]))
