"""What chapters are made of: entries, numbers and tables of text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A term and what is to be said of it."""

    term: str
    text: str


@dataclass(frozen=True)
class Number:
    """A number to be set large: what it is of, the number, and what qualifies it."""

    title: str
    value: str
    note: str


@dataclass(frozen=True)
class Grid:
    """A table of text.

    Attributes:
        header: the column heads.
        numeric: for each column, whether its cells are numbers.
        rows: the cells; what follows a line break is set small below.
        colours: for each row, the colour that marks it, such as `#0072b2`; empty for a table without colours.
    """

    header: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    colours: tuple[str, ...] = ()
