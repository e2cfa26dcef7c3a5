"""A table as one HTML page that opens without a network."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from brittle.analysis.overview_text import decision_text
from brittle.errors import ParameterError
from brittle.norms import parse_epsilon
from brittle.report import figure
from brittle.report.chapter import Brief, Chapter, check_names, text_of
from brittle.report.chapters.all import CHAPTERS
from brittle.report.contents import Contents
from brittle.report.page.data import page_data
from brittle.report.page.packed import inert_json
from brittle.report.page.policy import policy
from brittle.report.page.script import script
from brittle.report.parts import Entry
from brittle.report.wording import plural, show
from brittle.store.files.writing import check_target, write
from brittle.store.table import Table

MARK = '<meta name="generator" content="brittle '
"""What every page holds near its start, before the version that wrote it."""

HANDLED = frozenset({"train_mode", "log_softmax"})
"""Codes of notes on what brittle put right by itself: nothing is left to do, and no number suffers."""

TEMPLATES = 128
"""Templates of chapters that stay compiled; ours are three a chapter."""


@dataclass(frozen=True)
class _Section:
    """A chapter, set: what *Methods* says of it, and the rest."""

    name: str
    title: str
    leads: bool
    in_methods: bool
    begins_part: bool
    brief: Brief
    terms: Markup
    body: Markup
    methods: Markup


def write_report(
    table: Table,
    path: str | os.PathLike[str] | None = None,
    epsilon: float | str | None = None,
    against: Mapping[str, Table] | None = None,
    chapters: Sequence[Chapter[Any]] = CHAPTERS,
) -> Path:
    """Write the report of `table` to the file `path`: one page, with its figures and images inside.

    The page names no address; its policy allows its own script and style, by their digests, and nothing else. The same
    table gives the same bytes.

    Args:
        table: a run.
        path: the file to write; its folder must exist.
        epsilon: perturbation size of the worst-case chapter, in pixel units, such as `"8/255"`; by default one that
            suits the margins.
        against: other runs over the same points, by the names that the page gives them.
        chapters: what the page says, in this order; your own are `(*brittle.report.CHAPTERS, MyChapter())`.

    Returns:
        The path written.

    Raises:
        StorageError: `path` cannot be written, or is a link, a pipe, a device or a folder.
        ParameterError: `epsilon` is neither a positive number nor a fraction of two, two chapters share a name, `table`
            is no table, or no file is named.
        DataError: the points of another run cannot be paired with those of `table`.
    """
    if not isinstance(table, Table):
        where = f"read_table({table!r:.60})" if isinstance(table, str | Path) else "score(...)"
        raise ParameterError(
            f"a report is made of the table of a run, and of a file to write; found {table!r:.60} in place of the "
            f"table: write brittle.write_report(brittle.{where}, 'report.html')",
        )
    if path is None:
        raise ParameterError("name the file to write: brittle.write_report(table, 'report.html')")
    path = Path(path)
    check_target(path)
    return write_page(open_contents(table, epsilon, against), path, chapters)


def open_contents(
    table: Table, epsilon: float | str | None = None, against: Mapping[str, Table] | None = None
) -> Contents:
    """What the page of `table` is made from; arguments as in `write_report`.

    Raises:
        ParameterError: `epsilon` is neither a positive number nor a fraction of two.
    """
    return Contents(
        points=table.points,
        counterexamples=table.counterexamples,
        columns=table.columns,
        record=table.record,
        epsilon=None if epsilon is None else parse_epsilon(epsilon),
        epsilon_text=show(epsilon.strip(), 24) if isinstance(epsilon, str) else "",
        others={name: open_contents(other) for name, other in (against or {}).items()},
    )


def write_page(contents: Contents, path: Path, chapters: Sequence[Chapter[Any]] = CHAPTERS) -> Path:
    """Write the page of `contents` to the file `path`, and return the path.

    Raises:
        StorageError: `path` cannot be written, or is a link, a pipe, a device or a folder.
        DataError: the points of another run cannot be paired with those of this one.
    """
    check_target(path)
    write(path, render(contents, chapters).encode("utf-8"))
    return path


def render(contents: Contents, chapters: Sequence[Chapter[Any]] = CHAPTERS) -> str:
    """The page of `contents` as text.

    Raises:
        ParameterError: two chapters share a name, or one is no anchor.
    """
    check_names(chapters)
    found = [_set(chapter, contents) for chapter in chapters]
    sections = [section for section in found if section is not None]
    data = page_data(contents)
    style, code = _style(chapters), "" if data is None else script()
    return (
        _environment()
        .get_template("page/page.html.jinja")
        .render(
            policy=policy(f"\n{style}\n", code),
            generator=Markup(f'{MARK}{version("brittle")}">'),
            style=style,
            title=_title(contents),
            subtitle=_subtitle(contents),
            notices=_notices(contents),
            headline=[number for section in sections for number in section.brief.numbers],
            sections=sections,
            data=None if data is None else Markup(inert_json(data)),
            script=Markup(code),
        )
    )


@cache
def _environment() -> Environment:
    """What compiles the templates, each once in a process."""
    return Environment(
        loader=PackageLoader("brittle.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@lru_cache(TEMPLATES)
def _compiled(text: str) -> Template:
    """A chapter's template."""
    return _environment().from_string(text)


def _set(chapter: Chapter[Any], contents: Contents) -> _Section | None:
    """The chapter as the page holds it; None where it has nothing to say."""
    result = chapter.summarize(contents)
    if result is None:
        return None
    drawn = {name: Markup(figure.draw(one, f"{chapter.name}-{name}")) for name, one in chapter.figures(result).items()}
    texts = (
        Markup(_compiled(text_of(text)).render(result=result, figures=drawn))
        for text in (chapter.terms, chapter.template, chapter.methods)
    )
    places = chapter.leads, chapter.in_methods, chapter.begins_part
    return _Section(chapter.name, chapter.title, *places, chapter.brief(result), *texts)


def _style(chapters: Sequence[Chapter[Any]]) -> Markup:
    """The rules of the page, then those of its chapters."""
    folder = resources.files("brittle.report.page")
    own = (folder / "style.css", folder / "explore.css")
    return Markup("\n".join(rules for rules in map(text_of, (*own, *(one.style for one in chapters))) if rules))


def _notices(contents: Contents) -> list[tuple[str, str, list[Entry]]]:
    """What a reader should know of the run: what is left to judge, then what was put right; heading, class, entries."""
    entries = [(one.code in HANDLED, Entry(show(one.code), show(one.sentence))) for one in contents.record.warnings]
    parts = (("Warnings", "banner", False), ("Notes", "aside notes", True))
    found = [(heading, kind, [one for done, one in entries if done == wanted]) for heading, kind, wanted in parts]
    return [part for part in found if part[2]]


def _title(contents: Contents) -> str:
    spec = contents.record.model.spec or "the model"
    return f"How easily do the predictions of {show(spec.rpartition('/')[2] or spec, 48)} break?"


def _subtitle(contents: Contents) -> str:
    record = contents.record
    created, finished = (show(one or "", 60)[:16].replace("T", " ") for one in (record.created, record.finished))
    when = f"from {created} to {finished}" if finished not in ("", created) else created
    state = "" if record.finished else " The run had not finished: the page shows what it had."
    decided = decision_text(record.model.decision)
    scored = f"Scored {when} with brittle {show(record.brittle)}: {_points(contents)}."
    return f"{scored}{state}{decided and f' {show(decided)}'}"


def _points(contents: Contents) -> str:
    """How many points the page is about, and of which data."""
    data, count = contents.record.data, plural(contents.points.num_rows, "point")
    if not data.path:
        return count
    split = f" ({show(data.split)})" if data.split else ""
    return f"{count} of {show(Path(data.path).name or data.path, 48)}{split}"
