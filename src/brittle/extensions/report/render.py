"""A table as one HTML page that opens without a network."""

import base64
import hashlib
import re
from collections.abc import Collection, Mapping
from functools import cache
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from brittle.analysis.overview_text import decision_text
from brittle.errors import ParameterError
from brittle.extensions.report import figure
from brittle.extensions.report.chapter import Chapter
from brittle.extensions.report.contents import Contents
from brittle.extensions.report.script_data import inert_json, page_data
from brittle.extensions.report.wording import plural, show
from brittle.registry import Registry
from brittle.store.table import Table
from brittle.text import parse_epsilon
from brittle.user_code import failing

CHAPTERS: Mapping[str, Chapter] = Registry("chapter", {}, Chapter)  # in the order of the page
MARK = '<meta name="generator" content="brittle '  # near the start of every page, before the version that wrote it

HANDLED = frozenset({"train_mode", "log_softmax"})
"""Codes of notes on what brittle put right by itself: nothing is left to do, and no number suffers."""

STYLES = ("style.css", "explore.css", "chapters.css")  # the rules of the page, in their order
MAIN = "main.js"  # the module of the script that begins

_PAGE = resources.files("brittle.extensions.report") / "page"
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./([a-z]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:const|function|async function) )", re.MULTILINE)
_NAMES = re.compile(r"^export (?:const|function|async function) (\w+)", re.MULTILINE)


def open_contents(
    table: Table, epsilon: float | str | None = None, against: Mapping[str, Table] | None = None
) -> Contents:
    """Return the contents of the page of `table`; arguments as in `Table.report`.

    Raises:
        ParameterError: `epsilon` is neither a positive number nor a fraction of two.
    """
    return Contents(
        points=table.points,
        scores=table.scores,
        record=table.record,
        counterexamples=table.counterexamples,
        epsilon=None if epsilon is None else parse_epsilon(epsilon),
        epsilon_text=show(epsilon.strip(), 24) if isinstance(epsilon, str) else "",
        rivals={name: open_contents(rival) for name, rival in (against or {}).items()},
    )


def render(contents: Contents, chapters: Collection[Chapter] | None = None) -> str:
    chosen = CHAPTERS.values() if chapters is None else chapters
    sections = list(filter(None, (_section(chapter, contents) for chapter in chosen)))
    data, style = page_data(contents), _style()
    code = "" if data is None else script()
    page = environment().get_template("page/page.html.jinja")
    return page.render(
        policy=policy(f"\n{style}\n", code),
        generator=Markup(f'{MARK}{version("brittle")}">'),
        style=Markup(style),
        title=_title(contents),
        subtitle=_subtitle(contents),
        notices=_notices(contents),
        sections=sections,
        data=None if data is None else Markup(inert_json(data)),
        script=Markup(code),
    )


@cache
def environment() -> Environment:
    """Return the environment of the templates, each compiled once in a process."""
    loader = PackageLoader("brittle.extensions.report", ".")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


@cache
def _template(chapter: Chapter) -> Template:
    package = chapter.summarize.__module__.rpartition(".")[0]
    file = resources.files(package) / f"{chapter.name}.html.jinja"
    if not file.is_file():
        raise ParameterError(f"the chapter {chapter.name} has no template {chapter.name}.html.jinja in {package}")
    return environment().from_string(file.read_text(encoding="utf-8"))


def _section(chapter: Chapter, contents: Contents) -> dict[str, Any] | None:
    with failing(chapter.summarize, f"the chapter {chapter.name}"):
        values = chapter.summarize(contents)
        if values is None:
            return None
        macros = _template(chapter).make_module(_draw_all(dict(values), chapter.name))
        methods = getattr(macros, "methods", None)
        return {
            "name": chapter.name,
            "title": chapter.title,
            "place": chapter.place,
            "body": macros.body(),  # pyright: ignore[reportAttributeAccessIssue] a macro of the template
            "methods": "" if methods is None else methods().strip(),
        }


def _draw_all(value: Any, identity: str) -> Any:
    """`value` with every figure in it drawn, under an identity that tells it from the others of the page."""
    if isinstance(value, figure.Figure):
        drawing = Markup(figure.draw(value, identity))
        return {"drawing": drawing, "alt_text": value.alt_text} if drawing else None
    if isinstance(value, dict):
        return {name: _draw_all(part, f"{identity}-{name}") for name, part in value.items()}
    if isinstance(value, list):
        return [_draw_all(part, f"{identity}-{place}") for place, part in enumerate(value)]
    return value


@cache
def _style() -> str:
    return "\n".join((_PAGE / name).read_text(encoding="utf-8") for name in STYLES)


def _notices(contents: Contents) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Return the warnings of the run, open ones before handled ones: heading, CSS class, entries of each list."""
    entries = [(note.code in HANDLED, (show(note.code), show(note.sentence))) for note in contents.record.warnings]
    parts = (("Warnings", "banner", False), ("Notes", "aside notes", True))
    lists = [(heading, kind, [entry for done, entry in entries if done == handled]) for heading, kind, handled in parts]
    return [part for part in lists if part[2]]


def _title(contents: Contents) -> str:
    spec = contents.record.model.spec or "the model"
    return f"How easily do the predictions of {show(spec.rpartition('/')[2] or spec, 48)} break?"


def _subtitle(contents: Contents) -> str:
    record = contents.record
    created, finished = (show(time or "", 60)[:16].replace("T", " ") for time in (record.created, record.finished))
    when = f"from {created} to {finished}" if finished not in ("", created) else created
    state = "" if record.finished else " The run had not finished: the page shows what it had."
    decided = decision_text(record.model)
    points = plural(contents.points.num_rows, "point")
    if record.data.path:
        points += f" of {show(Path(record.data.path).name or record.data.path, 48)}"
        points += f" ({show(record.data.split)})" if record.data.split else ""
    return f"Scored {when} with brittle {show(record.brittle)}: {points}.{state}{decided and f' {show(decided)}'}"


def policy(style: str, script: str) -> str:
    """Return the content security policy of a page: this style, this script if any, images that it holds, and
    nothing else. The style and the script are those between the tags, to the byte; an empty script is none."""
    rules = ["default-src 'none'", "img-src data:", f"style-src '{_digest(style)}'"]
    rules += [f"script-src '{_digest(script)}'"] if script else []
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


@cache
def script() -> str:
    modules = {file.name: file for file in (_PAGE / "js").iterdir() if file.name.endswith(".js")}
    return joined({name: file.read_text(encoding="utf-8") for name, file in modules.items()})


def joined(modules: Mapping[str, str]) -> str:
    """Modules as one strict script: each is a function with names of its own, run after those that it imports.

    A module imports by `import { a, b } from "./other.js";` and exports by `export const` or `export function`.
    """
    done: dict[str, str] = {}

    def add(name: str, importers: tuple[str, ...]) -> None:
        if name in importers:
            raise ValueError(f"modules import one another in a circle: {' -> '.join((*importers, name))}")
        if name in done:
            return
        for _, imported in _IMPORT.findall(modules[name]):
            add(imported, (*importers, name))
        exported = ", ".join(_NAMES.findall(modules[name]))
        body = _EXPORT.sub("", _IMPORT.sub(r'const \1 = modules["\2"];\n', modules[name]))
        body = body.replace("// @ts-check\n", "").strip()
        done[name] = f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();'

    add(MAIN, ())
    return '"use strict";\n(() => {\nconst modules = {};\n' + "\n".join(done.values()) + "\n})();"
