"""The house: imports point one way, the analysis and the report know no torch, a package's own file only exports."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest
from checks.figures import sources

import brittle

pytestmark = pytest.mark.xdist_group("sources")  # one process reads every file

SOURCE = Path(brittle.__file__).parent
MOST_ENTRIES = 21
"""Files and folders at the top of the package."""

WITHOUT_TORCH = ("brittle.analysis", "brittle.report")
"""Rooms that read tables and import no torch, not even for typing."""

STORE = {f"brittle.store.{name}" for name in ("columns", "inputs", "keys", "record", "settings")}
"""What these rooms may import of the storage."""

PAGE = {"brittle.store.table", "brittle.store.reading", "brittle.store.writing"}
"""What the page of the report and the notebook may import beyond that."""

AT_THE_DOOR = {"brittle.estimate", "brittle.store.table"}
"""What is shown by a room above it, which it asks for by the package itself, when it is shown."""

LATE = {f"scipy.{name}" for name in ("interpolate", "ndimage", "optimize", "spatial", "stats")}
"""What is imported when it is called, as `scipy.stats` of `import scipy` is: a fifth of the time of a short command."""

Graph = Mapping[str, frozenset[str]]


def name_of(path: Path) -> str:
    """The dotted name of a module, of a package that of its folder."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(SOURCE.rglob("*.py"))}


@cache
def trees() -> dict[str, ast.Module]:
    """The syntax of every module by its name."""
    root = SOURCE.parents[1]
    return {name_of(root / file.path): file.tree for file in sources(root, "src")}


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
    known = trees()
    whole = {}
    for module, tree in known.items():
        targets = {f"{place}.{name}" if f"{place}.{name}" in known else place for place, name in imported(tree)}
        whole[module] = frozenset((targets & known.keys()) - {module, "brittle"})
    return whole


def room_of(module: str) -> str:
    """The folder or file at the top of the package in which a module lies."""
    return ".".join(module.split(".")[:2])


def rooms() -> Graph:
    """The rooms that each room imports."""
    found: dict[str, set[str]] = {}
    for module, targets in graph().items():
        found.setdefault(room_of(module), set()).update(map(room_of, targets))
    return {room: frozenset(targets - {room}) for room, targets in found.items() if room != "brittle"}


def circles(of: Graph) -> list[list[str]]:
    """The strongly connected parts of more than one node, sorted: those that reach one another."""
    reached = {start: reach(of, start) for start in of}
    parts = {frozenset(other for other in reached[start] if start in reached[other]) for start in of}
    return sorted(sorted(part) for part in parts if len(part) > 1)


def reach(of: Graph, start: str) -> set[str]:
    """The nodes that are reached from `start`."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = of.get(waiting.pop(), frozenset()) - found
        found |= new
        waiting += new
    return found


def test_a_circle_is_found() -> None:
    assert circles({"a": frozenset("b"), "b": frozenset("c"), "c": frozenset("b"), "d": frozenset("a")}) == [["b", "c"]]


def test_modules_do_not_import_one_another_in_a_circle() -> None:
    assert circles(graph()) == []


def test_rooms_do_not_import_one_another_in_a_circle() -> None:
    assert circles(rooms()) == []


@pytest.mark.parametrize("room", WITHOUT_TORCH)
def test_readers_of_tables_import_neither_torch_nor_the_insides_of_the_storage(room: str) -> None:
    for module, tree in trees().items():
        if room_of(module) != room:
            continue
        allowed = STORE | (PAGE if module in ("brittle.report.render", "brittle.report.notebook") else set())
        assert [place for place, _ in imported(tree) if place.partition(".")[0] == "torch"] == [], module
        assert {one for one in graph()[module] if one.startswith("brittle.store")} <= allowed, module


@pytest.mark.parametrize("module", sorted(MODULES))
def test_what_takes_long_to_import_is_imported_when_it_is_called(module: str) -> None:
    for place, name in imported(trees()[module]):
        assert not {place, f"{place}.{name}"} & LATE, f"import scipy, and write scipy.{name}"


@pytest.mark.parametrize("room", WITHOUT_TORCH)
def test_nothing_that_they_import_leads_to_torch(room: str) -> None:
    """What runs when they are imported; a lazy import or one for typing, elsewhere, does not."""
    own = {module for module in trees() if room_of(module) == room}
    for module in own.union(*(reach(eager(), module) for module in own)):
        assert "torch" not in {place.partition(".")[0] for place, _ in at_once(trees()[module])}, module


def test_only_what_is_shown_goes_through_the_door_of_the_package() -> None:
    """`import brittle` reaches every room: it stands in functions of two modules alone, which ask one room for text."""
    for module, tree in trees().items():
        asks = [node for node in ast.walk(tree) if isinstance(node, ast.Import) and node.names[0].name == "brittle"]
        assert not asks or module in AT_THE_DOOR, module
        assert not set(map(id, asks)) & set(map(id, tree.body)), module
        names = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        if module in AT_THE_DOOR:
            assert {name for name in names if re.fullmatch(r"brittle\.\w+", name)} == {"brittle.report"}, module


@cache
def eager() -> Graph:
    """As `graph`, of the imports that are made when a module is imported."""
    known = trees()
    whole = {}
    for module, tree in known.items():
        targets = {f"{place}.{name}" if f"{place}.{name}" in known else place for place, name in at_once(tree)}
        packages = {".".join(target.split(".")[:depth]) for target in targets for depth in range(2, 5)}
        whole[module] = frozenset((targets | packages) & known.keys()) - {module, "brittle"}
    return whole


def at_once(tree: ast.Module) -> list[tuple[str, str]]:
    """The imports at the top of a module, those for typing left out."""
    top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    return imported(ast.Module(body=list(top), type_ignores=[]))


def test_the_top_of_the_package_is_seen_at_a_glance() -> None:
    entries = [path.name for path in SOURCE.iterdir() if path.name not in ("__pycache__", "py.typed")]
    assert len(entries) <= MOST_ENTRIES, sorted(entries)


@pytest.mark.parametrize("path", sorted(SOURCE.glob("*/**/__init__.py")), ids=lambda path: path.parent.name)
def test_the_file_of_a_package_only_exports(path: Path) -> None:
    """A docstring, imports and `__all__`; the package itself, which imports lazily, has a table besides."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        exported = isinstance(node, ast.Assign) and [ast.unparse(one) for one in node.targets] == ["__all__"]
        documented = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        assert exported or documented or isinstance(node, ast.Import | ast.ImportFrom), ast.unparse(node)[:80]
