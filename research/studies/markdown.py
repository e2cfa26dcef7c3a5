"""Numbers and tables as pages write them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

NOTHING = "-"
"""Where there is no number."""

DATA = {
    "cifar10": "CIFAR-10 (JPEG copies)", "cifar10_lossless_854": "CIFAR-10 (exact images)", "mnist": "MNIST",
    "fashion_mnist": "Fashion-MNIST", "fashion_mnist_900": "Fashion-MNIST", "pneumoniamnist": "PneumoniaMNIST",
}  # fmt: skip
"""Data sets as pages write them: the images of CIFAR-10 that are read from the usual files here are JPEG copies."""


def data_name(dataset: str) -> str:
    """Return a data set as pages write it."""
    return DATA.get(dataset, dataset)


def decimals(value: float, places: int) -> str:
    """Return a number with so many places, or a dash."""
    return f"{round(value, places) + 0.0:,.{places}f}" if math.isfinite(value) else NOTHING  # no -0


def percent(value: float, places: int = 0) -> str:
    """Return a share in percent, or a dash."""
    return f"{100 * value:.{places}f}%" if math.isfinite(value) else NOTHING


def significant(value: float, digits: int = 2) -> str:
    """Return a number to so many significant digits without an exponent, or a dash."""
    if not math.isfinite(value) or value == 0:
        return NOTHING if not math.isfinite(value) else "0"
    return f"{value:,.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"


def between(value: float, low: float, high: float, places: int) -> str:
    """Return a number and its interval."""
    return bounded(value, low, high, lambda number: decimals(number, places))


def bounded(value: float, low: float, high: float, written: Callable[[float], str]) -> str:
    """Return the same in another way of writing numbers."""
    return written(value) + (f" ({written(low)} to {written(high)})" if math.isfinite(low) else "")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def in_words(names: Iterable[str]) -> str:
    """Different names in sorted order: `a, b and c`."""
    initial, last = (ordered := sorted(set(names)))[:-1], ordered[-1]
    return f"{', '.join(initial)} and {last}" if initial else last


def interval(row: Mapping[str, Any], name: str, places: int) -> str:
    """Return the number `name` of a row, and its interval in `name_low` and `name_high`."""
    return with_ends(row, name, lambda number: decimals(number, places))


def with_ends(row: Mapping[str, Any], name: str, written: Callable[[float], str]) -> str:
    """Return the same in another way of writing numbers."""
    return bounded(row[name], row[f"{name}_low"], row[f"{name}_high"], written)
