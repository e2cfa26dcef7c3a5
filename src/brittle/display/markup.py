"""Small pieces of HTML for a notebook: they run nothing, and take colours and fonts from what is around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup, escape

from brittle.report.wording import show

LONGEST = 120
"""Characters of a sentence that is not ours."""


def text(value: Any, limit: int | None = None) -> Markup:
    """`value` as text and nothing else, cut where it is longer than `limit`: every piece from a user goes this way."""
    return escape(show(value, limit))


def unreadable(what: str, error: Exception) -> str:
    """What is said of a thing whose parts do not fit together, in place of what it holds: nobody else would."""
    return f"{what} that cannot be read: {show(error, LONGEST)} ({type(error).__name__})"


def block(parts: Iterable[Markup]) -> Markup:
    """Parts below each other."""
    return Markup("<div>{}</div>").format(Markup("\n").join(parts))


def paragraph(content: Markup) -> Markup:
    """A paragraph."""
    return Markup('<p style="margin:0.4em 0;max-width:60em">{}</p>').format(content)


def grid(header: Sequence[str], rows: Iterable[Sequence[Markup]], words: frozenset[int] = frozenset({0})) -> Markup:
    """A table.

    Args:
        header: the names of its columns.
        rows: its cells.
        words: places of the columns that hold words, which are flush left; the others are flush right.
    """
    sides = ["left" if place in words else "right" for place in range(len(header))]
    head = _row("th", map(text, header), sides)
    body = Markup("\n").join(_row("td", row, sides) for row in rows)
    return Markup('<table style="margin:0.6em 0"><thead>{}</thead><tbody>\n{}\n</tbody></table>').format(head, body)


def _row(tag: str, cells: Iterable[Markup], sides: Sequence[str]) -> Markup:
    cell = Markup('<{tag} style="text-align:{side}">{content}</{tag}>')
    found = (cell.format(tag=tag, side=side, content=one) for one, side in zip(cells, sides, strict=True))
    return Markup("<tr>{}</tr>").format(Markup("").join(found))
