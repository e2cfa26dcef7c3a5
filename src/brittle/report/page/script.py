"""The script of the page: its modules, joined."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources

MAIN = "main.js"
"""The module that begins."""

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./([a-z]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:const|function|async function) )", re.MULTILINE)
_NAMES = re.compile(r"^export (?:const|function|async function) (\w+)", re.MULTILINE)


def script() -> str:
    """The script of the page."""
    folder = resources.files("brittle.report.page").joinpath("js")
    return joined({one.name: one.read_text(encoding="utf-8") for one in folder.iterdir() if one.name.endswith(".js")})


def joined(modules: Mapping[str, str]) -> str:
    """Modules as one strict script: each is a function with names of its own, run after those that it imports.

    A module imports by `import { a, b } from "./other.js";` and exports what it declares by `export const` or
    `export function`.

    Args:
        modules: the text of each, by the name of its file; `MAIN` among them.

    Raises:
        ValueError: modules import one another in a circle.
    """
    done: dict[str, str] = {}

    def add(name: str, importers: tuple[str, ...]) -> None:
        if name in importers:
            raise ValueError(f"modules import one another in a circle: {' -> '.join((*importers, name))}")
        if name in done:
            return
        for _, other in _IMPORT.findall(modules[name]):
            add(other, (*importers, name))
        done[name] = _wrapped(name, modules[name])

    add(MAIN, ())
    return '"use strict";\n(() => {\nconst modules = {};\n' + "\n".join(done.values()) + "\n})();"


def _wrapped(name: str, text: str) -> str:
    """A module as a function that returns what it exports."""
    exported = ", ".join(_NAMES.findall(text))
    body = _EXPORT.sub("", _IMPORT.sub(r'const \1 = modules["\2"];\n', text)).replace("// @ts-check\n", "").strip()
    return f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();'
