"""Files that decide a number: a module, and all that it imports of the studies and of the library."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import brittle
from studies.study import HERE

ROOTS = {"brittle": Path(brittle.__file__).parent, "studies": HERE}
"""Packages whose code is followed, and their folders."""

PUBLIC = tuple(f"brittle.{package}" for package in ("analysis", "data", "decisions", "noise", "scores"))
"""Packages that have names of extensions, too."""

TELLING = ("brittle.cli", "brittle.extensions.report")
"""Rooms that show what was measured: no number comes from them."""


def files_behind(module: str) -> list[Path]:
    """Return the file of a module, and those of all that it imports, and so on, in sorted order.

    Imports are read, not run: those for types alone are passed over, those within functions are not. Names of
    `brittle` that are imported when they are first used count where they are used.
    """
    files, open_ = set[Path](), [file_of(module)]
    while open_:
        path = open_.pop()
        if path is not None and path not in files:
            files.add(path)
            open_ += [file_of(name) for name in imported_by(path)]
    return sorted(files)


@cache
def file_of(name: str) -> Path | None:
    """Return the file of a module of ours; None for other names."""
    root, *parts = name.split(".")
    if root not in ROOTS or name.startswith(TELLING):
        return None
    path = ROOTS[root].joinpath(*parts)
    return next((file for file in (path / "__init__.py", path.with_suffix(".py")) if file.is_file()), None)


@cache
def imported_by(path: Path) -> frozenset[str]:
    """Return the imports of a file: modules, their packages, and names that may be modules."""
    tree, names = ast.parse(path.read_text(encoding="utf-8")), set[str]()
    for node in run(tree):
        match node:
            case ast.Import(names=aliases):
                names |= {alias.name for alias in aliases}
            case ast.ImportFrom(module=str(module), names=aliases):
                names |= {module, *(f"{module}.{alias.name}" for alias in aliases)}
                if module in PUBLIC:  # names that extensions add are no imports of the package
                    names |= {home_of(getattr(import_module(module), alias.name)) for alias in aliases}
            case ast.Attribute(value=ast.Name(id="brittle"), attr=attribute):
                names.add(home_of(getattr(brittle, attribute, None)))
            case _:
                pass
    return frozenset(".".join(name.split(".")[:end]) for name in names for end in range(1, name.count(".") + 2))


def run(node: ast.AST) -> Iterator[ast.AST]:
    """All parts of a program but what is there for types alone."""
    yield node
    for part in ast.iter_child_nodes(node):
        if not (isinstance(part, ast.If) and isinstance(part.test, ast.Name) and part.test.id == "TYPE_CHECKING"):
            yield from run(part)


def home_of(value: Any) -> str:
    """Return the module of a public name, or that which it is."""
    return value.__name__ if isinstance(value, ModuleType) else str(getattr(value, "__module__", ""))
