"""Pages of the report, parsed, and the rules for all of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from typing import Any

from brittle.extensions.report.chapter import Chapter
from brittle.extensions.report.render import open_contents, render, script
from brittle.store.table import Table

EVERY_SCORE = (
    "softmax", "taylor", "taylor_mvs", "mmse", "mmse_mvs", "moments", "shrinkage", "monte_carlo",
    "logit_margin", "first_order_margin", "feature_margin", "input_margin", "max_probability", "probability_margin",
    "entropy",
)  # fmt: skip
EVERY_CHANGE = ("laplacian", "probability_change", "first_order_change", "change_bound")

VOID = {"meta", "link", "img", "br", "hr", "input", "rect", "path", "line", "circle"}
PAGE = {
    "html", "head", "meta", "link", "title", "style", "body", "main", "header", "section", "aside", "h1", "h2", "h3",
    "h4", "p", "dfn", "i", "code", "ul", "li", "dl", "div", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td",
    "figure", "figcaption", "details", "summary", "span", "img", "b", "ol", "h5", "nav", "a", "button", "caption",
    "script", "label", "select", "input", "canvas",
}  # fmt: skip
DRAWING = {"svg", "g", "path", "text", "tspan", "rect", "line", "circle", "defs", "clippath"}


class Page(HTMLParser):
    """A parsed page: elements, attributes, text, and whether every element was closed in turn."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self.open: list[str] = []
        self.unbalanced: list[str] = []
        self.comments: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data: str) -> None:
        (self.scripts if self.open[-1:] == ["script"] else self.words).append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    @property
    def tags(self) -> set[str]:
        return {tag for tag, _ in self.elements}

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def text_of(
    table: Table,
    epsilon: float | str | None = None,
    against: Mapping[str, Table] | None = None,
    chapters: Sequence[Chapter] | None = None,
) -> str:
    """Return the page of `table` as text."""
    return render(open_contents(table, epsilon, against), chapters)


def page_of(
    table: Table,
    epsilon: float | None = None,
    against: Mapping[str, Table] | None = None,
    chapters: Sequence[Chapter] | None = None,
) -> Page:
    """Return the parsed page of `table`."""
    return Page(text_of(table, epsilon, against, chapters))


def values_of(
    chapter: Chapter, table: Table, epsilon: float | None = None, against: Mapping[str, Table] | None = None
) -> dict[str, Any]:
    """Return the values of a chapter on `table`, which must have some."""
    values = chapter.summarize(open_contents(table, epsilon, against))
    assert values is not None
    return dict(values)


def addresses(text: str) -> list[str]:
    """Return the parts of a page outside its script that could name an address or run."""
    text = re.sub(r"(?s)<script.*?</script>", "", text).replace('xmlns="http://www.w3.org/2000/svg"', "")
    text = re.sub(r"base64,[\w+/=]+", "", text)
    return re.findall(r"(?i)(?:https?:|ftp:|//[a-z]|@import|@font-face|javascript:|<script)", text)


def assert_inert(page: Page) -> None:
    """Check that a page has only its own elements and script, no handler, no address, and closes every element."""
    assert page.tags <= PAGE | DRAWING
    assert page.unbalanced == []
    assert page.open == []
    assert page.comments == []
    assert [attributes for tag, attributes in page.elements if tag == "script"] in (
        [],
        [{"type": "application/json", "id": "data"}, {}],
    )
    assert page.scripts in ([], [*page.scripts[:1], script()])
    for tag, attributes in page.elements:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name not in {"srcdoc", "action", "formaction", "xlink:href", "background", "ping", "srcset"}
            if name in {"href", "src"}:
                inside = re.fullmatch(r"#[a-z][a-z0-9-]*", value or "") and tag == "a"
                assert inside or value == "data:," or (value or "").startswith("data:image/png;base64,")
            assert name != "style"
            if "url(" in (value or "").lower() and name not in {"aria-label", "title", "alt"}:
                assert re.fullmatch(r"url\(#[a-z][\w-]*-\d+\)", value or "")


def storable(text: str) -> str:
    """Return `text` as a Parquet file can hold it."""
    return text.encode("utf-8", "replace").decode("utf-8")
