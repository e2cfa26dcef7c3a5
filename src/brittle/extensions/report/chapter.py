"""A chapter of the page, and the parts that its template sets: large numbers and tables of text."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from brittle.extensions.report.contents import Contents


@dataclass(frozen=True)
class Number:
    """A number to be set large: what it is of, the number, and what qualifies it."""

    title: str
    value: str
    note: str


@dataclass(frozen=True)
class Grid:
    """A table of text. What follows a line break in a cell is set small below. `words` are the places of the columns
    that hold no numbers; each row may be marked by one of `colours`, such as `#0072b2`."""

    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    words: frozenset[int] = frozenset({0})
    colours: Sequence[str] = ()


@dataclass(frozen=True)
class Chapter:
    """A chapter of the page.

    Its template, `NAME.html.jinja`, lies beside the module of `summarize`: the macro `body` sets the chapter, and the
    macro `methods`, where there is one, what *Methods* says beyond it. Both read by name what `summarize` gives; a
    figure in it is drawn. `name` is its anchor on the page. `summarize` gives what the template reads, None where the
    run holds nothing for it. `place` is `first`, before the points; `body`; `part`, below a rule; or `methods`, closed.
    """

    name: str
    title: str
    summarize: Callable[[Contents], Mapping[str, Any] | None]
    place: Literal["first", "body", "part", "methods"] = "body"
