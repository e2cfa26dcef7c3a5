"""The house: imports point one way, the analysis and the report know no torch, a package's own file only exports."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from checks.figures import sources
from helpers.processes import LIMIT

import brittle

pytestmark = pytest.mark.xdist_group("sources")  # one process reads every file

SOURCE = Path(brittle.__file__).parent
MOST_ENTRIES = 21
"""Files and folders at the top of the package."""

WITHOUT_TORCH = ("brittle.analysis", "brittle.report")
"""Rooms that read tables and import no torch, not even for typing."""

STORE = {f"brittle.store.{name}" for name in ("columns", "record", "schemas", "settings", "table", "votes")}
"""What these rooms may import of the storage."""

PAGE = {"brittle.store.reading", "brittle.store.writing"}
"""What the page of the report and the notebook may import beyond that."""

AT_THE_DOOR = {"brittle.store.table"}
"""What is shown by a room above it, which it asks for by the package itself, when it is shown."""

LATE = {f"scipy.{name}" for name in ("interpolate", "ndimage", "optimize", "spatial", "stats")}
"""What is imported when it is called, as `scipy.stats` of `import scipy` is: a fifth of the time of a short command."""

Graph = Mapping[str, set[str]]


@cache
def trees() -> dict[str, ast.Module]:
    """The syntax of every module by its name, of a package by that of its folder."""
    named = {".".join(file.path.with_suffix("").parts[1:]): file.tree for file in sources(SOURCE.parents[1], "src")}
    return {name.removesuffix(".__init__"): tree for name, tree in named.items()}


@cache
def imported(tree: ast.Module) -> list[tuple[str, str]]:
    """Every import of a module, lazy and for typing alike: what is imported from, and the name taken from it."""
    return [*_imported(tree)]


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((one.name, "") for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports within the package are written in full"
            yield from ((node.module or "", one.name) for one in node.names)


@cache
def graph() -> Graph:
    """The modules of the package that each module imports; `from package import module` imports the module."""
    known, whole = trees(), {}
    for module, tree in known.items():
        targets = {f"{place}.{name}" if f"{place}.{name}" in known else place for place, name in imported(tree)}
        whole[module] = (targets & known.keys()) - {module, "brittle"}
    return whole


def room_of(module: str) -> str:
    """The folder or file at the top of the package in which a module lies."""
    return ".".join(module.split(".")[:2])


def test_nothing_imports_one_another_in_a_circle() -> None:
    """Modules, and rooms: a circle raises an error that names it."""
    TopologicalSorter(graph()).prepare()
    rooms: dict[str, set[str]] = {}
    for module, targets in graph().items():
        rooms.setdefault(room_of(module), set()).update({*map(room_of, targets)} - {room_of(module)})
    del rooms["brittle"]
    TopologicalSorter(rooms).prepare()


@pytest.mark.parametrize("room", WITHOUT_TORCH)
def test_readers_of_tables_import_neither_torch_nor_the_insides_of_the_storage(room: str) -> None:
    for module, tree in trees().items():
        if room_of(module) == room:
            page = PAGE if module in ("brittle.report.render", "brittle.report.notebook") else set()
            assert "torch" not in {place.partition(".")[0] for place, _ in imported(tree)}, module
            assert {one for one in graph()[module] if one.startswith("brittle.store")} <= STORE | page, module


def test_nothing_that_they_import_leads_to_torch() -> None:
    own = ", ".join(module for module in trees() if room_of(module) in WITHOUT_TORCH)
    command = [sys.executable, "-c", f"import sys, {own}; sys.exit('torch' in sys.modules)"]
    assert subprocess.run(command, timeout=LIMIT).returncode == 0


def test_what_takes_long_to_import_is_imported_when_it_is_called() -> None:
    for module, tree in trees().items():
        places = {one for place, name in imported(tree) for one in (place, f"{place}.{name}")}
        assert not places & LATE, f"{module}: import scipy, and write scipy.{places & LATE}"


def test_only_what_is_shown_goes_through_the_door_of_the_package() -> None:
    """`import brittle` reaches every room: it stands in functions of one module, for what people see of a table."""
    for module, tree in trees().items():
        asks = [node for node in ast.walk(tree) if isinstance(node, ast.Import) and node.names[0].name == "brittle"]
        assert not asks or module in AT_THE_DOOR, module
        assert not set(map(id, asks)) & set(map(id, tree.body)), module
        asked = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        if module in AT_THE_DOOR:
            assert {name for name in asked if name.startswith("brittle.") and name.count(".") == 1} == {
                "brittle.analysis",
                "brittle.report",
            }


def test_the_top_of_the_package_is_seen_at_a_glance() -> None:
    entries = [path.name for path in SOURCE.iterdir() if path.name not in ("__pycache__", "py.typed")]
    assert len(entries) <= MOST_ENTRIES, sorted(entries)


def test_the_file_of_a_package_only_exports() -> None:
    """A docstring, imports and `__all__`; the package itself, which imports lazily, has a table besides."""
    for path in SOURCE.glob("*/**/__init__.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            exported = isinstance(node, ast.Assign) and [ast.unparse(one) for one in node.targets] == ["__all__"]
            documented = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            imports = isinstance(node, ast.Import | ast.ImportFrom)
            assert exported or documented or imports, f"{path}: {ast.unparse(node)[:80]}"
