"""Figures of a tree: how large its rooms are, and how many concepts it has.

    python tests/checks/figures.py [ROOT] [--call]

Everything is read off the files of the tree, which may be an older one; nothing of it is imported. `--call` scores five
points and counts the functions of the package that run.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

BUDGET = {
    "the top": (700, 6), "model": (3000, 21), "decisions": (700, 6), "data": (2800, 16), "noise": (1300, 8),
    "orthant": (560, 4), "measure": (7800, 45), "scores": (3100, 24), "store": (1700, 12), "run": (1900, 12),
    "doctor": (2000, 13), "analysis": (3600, 24), "detector": (2000, 12), "report": (3900, 32), "cli": (1900, 15),
}  # fmt: skip
"""Lines and files that each room should have at most."""

ERRORS = re.compile(r"\w*Error|Finding|warn")
"""What is called with a code first."""

CALL = """
import sys, torch, brittle
ran, package = set(), brittle.__path__[0]
def note(frame, event, argument):
    if event == "call" and frame.f_code.co_filename.startswith(package):
        ran.add(frame.f_code)
x = torch.rand(5, 6)
classifier = brittle.Classifier(torch.nn.Linear(6, 3), bounds=(0, 1))
brittle.score(classifier, (x, torch.zeros(5, dtype=torch.long)), [brittle.scores.Shrinkage(0.1)])
sys.setprofile(note)
brittle.score(classifier, (x, torch.zeros(5, dtype=torch.long)), [brittle.scores.Shrinkage(0.1)])
sys.setprofile(None)
named = {one for one in ran if not one.co_name.startswith("<")}
print(len(named), "functions in", len({one.co_filename for one in named}), "files")
"""
"""One call of `brittle.score` on five points, after another that has imported what it needs."""


@dataclass(frozen=True)
class Source:
    """A file of Python, parsed.

    Attributes:
        path: where it is, below the root of the tree.
        text: what it holds.
        tree: what that means.
    """

    path: Path
    text: str
    tree: ast.Module

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All that the tree holds."""
        return list(ast.walk(self.tree))

    @cached_property
    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Every function and method, those within others included."""
        return [node for node in self.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


@cache
def sources(root: Path, folder: str) -> list[Source]:
    """The Python files below a folder of the tree, in the order of their paths; read once in a process."""
    found = []
    for path in sorted((root / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        found.append(Source(path.relative_to(root), text, ast.parse(text)))
    return found


# Imports.


def imports(files: list[Source]) -> dict[str, set[str]]:
    """Which module of the package names which others, within functions and for types alone included."""
    modules = {_module(file.path): file for file in files}
    edges: dict[str, set[str]] = {name: set() for name in modules}
    for name, file in modules.items():
        for node in file.nodes:
            edges[name] |= {one for one in _named(node, set(modules)) if one != name}
    return edges


def _module(path: Path) -> str:
    parts = path.with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _named(node: ast.AST, modules: set[str]) -> set[str]:
    named: set[str] = set()
    if isinstance(node, ast.Import):
        named = {alias.name for alias in node.names}
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        full = {f"{node.module}.{alias.name}" for alias in node.names}
        named = {name if name in modules else node.module for name in full}
    return named & modules


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Modules that can reach each other, circle by circle."""
    reached = {start: _reached(start, edges) for start in edges}
    found = {tuple(sorted(b for b in reached[a] if a in reached[b])) for a in edges if a in reached[a]}
    return [list(circle) for circle in sorted(found)]


def _reached(start: str, edges: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [*edges[start]]
    while waiting:
        here = waiting.pop()
        if here not in seen:
            seen.add(here)
            waiting += edges[here]
    return seen


def rooms(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """The same graph, with a room of the package for each of its modules."""
    drawn: dict[str, set[str]] = {}
    for start, ends in edges.items():
        room = _room(start)
        drawn.setdefault(room, set()).update(_room(end) for end in ends if _room(end) != room)
    return drawn


def _room(module: str) -> str:
    return ".".join(module.split(".")[:2])


# Tests.


def importing_tests(tests: list[Source]) -> list[str]:
    """Files of tests, checks and helpers that import a file of tests."""
    names = {file.path.stem for file in tests if file.path.name.startswith("test_")}
    found = []
    for file in tests:
        named = {alias.name for node in file.nodes if isinstance(node, ast.Import) for alias in node.names}
        named |= {node.module for node in file.nodes if isinstance(node, ast.ImportFrom) and node.module}
        if any(part in names for name in named for part in name.split(".")):
            found.append(str(file.path))
    return found


# Rooms and concepts.


def by_room(package: list[Source]) -> Iterator[tuple[str, object]]:
    """Lines and files of each room, beside its budget."""
    for room, (most_lines, most_files) in BUDGET.items():
        own = [file for file in package if _home(file.path) == room]
        lines = sum(len(file.text.splitlines()) for file in own)
        yield f"  {room}", f"{lines} lines in {len(own)} files; at most {most_lines} in {most_files}"


def _home(path: Path) -> str:
    return path.parts[2] if len(path.parts) > 3 else "the top"


def codes(package: list[Source]) -> set[str]:
    """Codes of errors and notes that are written out in the package."""
    found = {"usage", "parameter", "unknown_name"}
    for file in package:
        calls = [node for node in file.nodes if isinstance(node, ast.Call) and len(node.args) > 1]
        for node in calls:
            called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            first = node.args[0]
            if (
                ERRORS.fullmatch(called)
                and isinstance(first, ast.Constant)
                and re.fullmatch(r"[a-z_]+", str(first.value))
            ):
                found.add(str(first.value))
    return found


def dataclasses(package: list[Source]) -> int:
    """How many classes are decorated as dataclasses or derive from structs."""
    every = [node for file in package for node in file.nodes if isinstance(node, ast.ClassDef)]
    return sum(
        "dataclass" in ast.unparse(ast.List(one.decorator_list, ast.Load())) or "Struct" in map(ast.unparse, one.bases)
        for one in every
    )


def call(root: Path) -> str:
    """Functions and files of the package that one call of `brittle.score` runs through."""
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", CALL], cwd=root, env=environment, capture_output=True, text=True)
    return done.stdout.strip() or done.stderr[-200:]


def figures(root: Path) -> Iterator[tuple[str, object]]:
    """Every figure that the files of the tree give."""
    package, tests = sources(root, "src"), sources(root, "tests")
    lines = [len(file.text.splitlines()) for file in package]
    edges = imports(package)
    top = [path for path in (root / "src" / "brittle").iterdir() if path.name != "__pycache__"]
    yield "lines of src", sum(lines)
    yield "files of src", len(package)
    yield from by_room(package)
    yield "codes of errors and notes", len(codes(package))
    yield "dataclasses and structs", dataclasses(package)
    yield "lines of the longest file", max(lines)
    yield "entries at the top of src/brittle", len(top)
    yield "circles of modules", len(circles(edges))
    yield "circles of rooms", len(circles(rooms(edges)))
    yield "lines of tests", sum(len(file.text.splitlines()) for file in tests)
    yield "files of tests", sum(file.path.name.startswith("test_") for file in tests)
    yield "test files that others import", len(importing_tests(tests))


def main() -> None:
    """Print a figure a line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[2], help="the tree")
    parser.add_argument("--call", action="store_true", help="also count what a call of brittle.score runs")
    given = parser.parse_args()
    root = given.root.resolve()
    rows = [*figures(root), *([("one brittle.score of five points", call(root))] if given.call else [])]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value}")


if __name__ == "__main__":
    main()
