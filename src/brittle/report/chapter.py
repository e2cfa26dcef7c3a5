"""What a chapter of the page is: from the contents of a run to words, figures and a template."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import ClassVar, Generic, TypeVar

from brittle.errors import ParameterError
from brittle.report.contents import Contents
from brittle.report.figure import Figure
from brittle.report.parts import Number

Result = TypeVar("Result")

Text = str | Traversable
"""A text, or the file that holds it."""

_NAME = re.compile(r"[a-z][a-z0-9-]*")

OWN_PLACES = frozenset({"methods", "headline", "explore"})
"""Anchors of the page itself."""


@dataclass(frozen=True)
class Brief:
    """What *Methods* says first of a chapter: numbers to be set large, and how to read them."""

    numbers: tuple[Number, ...] = ()
    note: str = ""


class Chapter(ABC, Generic[Result]):
    """A chapter of the page.

    `summarize` turns a run into a frozen result, all words and frames; the template sets the result, and the figures
    draw its frames. Templates are Jinja, escape every text, and read `result` and `figures`, each figure drawn; they
    may import the macros `entries`, `figure`, `grid`, `numbers` and `word` from `macros.html.jinja`.

    Attributes:
        name: its anchor on the page: small letters, digits and hyphens.
        title: its heading.
        template: sets the result.
        terms: sets the paragraph of *Methods* that says what its words mean; empty for none.
        methods: sets what *Methods* says of the result beyond `template`, such as tests and tables; empty for none.
        style: its rules in CSS; empty for none.
        leads: whether it stands at the start of the page, before the contents of the others.
        in_methods: whether the whole chapter stands in *Methods*, the closed part at the end of the page.
        begins_part: whether a rule and a larger heading set it off from what comes before.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    template: ClassVar[Text]
    terms: ClassVar[Text] = ""
    methods: ClassVar[Text] = ""
    style: ClassVar[Text] = ""
    leads: ClassVar[bool] = False
    in_methods: ClassVar[bool] = False
    begins_part: ClassVar[bool] = True

    @abstractmethod
    def summarize(self, contents: Contents) -> Result | None:
        """What the chapter says of a run; None where the run holds nothing for it."""

    def figures(self, result: Result) -> Mapping[str, Figure]:
        """What it draws, by the names that its template reads; a figure without data is an empty text there."""
        return {}

    def brief(self, result: Result) -> Brief:
        """What *Methods* says first of it."""
        return Brief()


def files_beside(module: str) -> Traversable:
    """The folder of the module of this name."""
    return files(module.rpartition(".")[0])


def text_of(text: Text) -> str:
    """`text`, or the content of the file."""
    return text if isinstance(text, str) else text.read_text(encoding="utf-8")


def check_names(chapters: Sequence[Chapter]) -> None:
    """Raise where a chapter's name is no anchor, or is that of another or of a place of the page itself.

    Raises:
        ParameterError: a name holds other characters, or is taken.
    """
    names = [chapter.name for chapter in chapters]
    for place, name in enumerate(names):
        if not _NAME.fullmatch(name):
            expected = "expected a chapter's name of small letters, digits and hyphens"
            raise ParameterError(f"{expected}, found {name!r}")
        if name in OWN_PLACES:
            raise ParameterError(f"the page itself has a place called {name!r}; call the chapter otherwise")
        if name in names[:place]:
            raise ParameterError(f"expected chapters of different names, found two called {name!r}")
