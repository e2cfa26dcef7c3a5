"""What a notebook shows of a table or an estimate, parsed, and what every such piece of HTML must keep to."""

from __future__ import annotations

import re

from helpers.pages import Page

TAGS = {"div", "p", "b", "code", "table", "thead", "tbody", "tr", "th", "td"}
STYLE = re.compile(r"text-align:(left|right)|margin:0\.[46]em 0(;max-width:60em)?")
"""Nothing that has a colour, an address, or reaches beyond its own element."""


def parsed(html: str) -> Page:
    """The piece, which is inert: known elements, each closed in turn, no attribute but a harmless style."""
    page = Page(html)
    assert page.tags <= TAGS
    assert page.unbalanced == []
    assert page.open == []
    assert page.comments == []
    for tag, attributes in page.elements:
        assert set(attributes) <= {"style"}, tag
        assert STYLE.fullmatch(attributes.get("style") or "margin:0.4em 0"), attributes
    assert all(one.isprintable() or one == "\n" for one in html)
    assert "\n" not in html.replace(">\n<", "><")
    return page


def short_text(said: str, most: int = 5) -> bool:
    """Whether what a terminal prints is a few lines of characters that can be read."""
    lines = said.split("\n")
    return len(lines) <= most and all(line.isprintable() and len(line) < 240 for line in lines)
