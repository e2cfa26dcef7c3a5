"""Figures of a tree: how large its rooms are, how many concepts it has, and how long its functions are.

    python tests/checks/figures.py [ROOT]

Everything is read off the files of the tree, which may be an older one; nothing of it is imported.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

LONG = 30
"""A function with more lines of code than this is long."""

BUDGET = {
    "the top": (700, 6), "model": (3000, 21), "decisions": (700, 6), "data": (2800, 16), "noise": (1300, 8),
    "orthant": (560, 4), "measure": (7800, 45), "scores": (3100, 24), "store": (1700, 12), "run": (1900, 12),
    "doctor": (2000, 13), "analysis": (3600, 24), "detector": (2000, 12), "report": (3900, 32), "cli": (1900, 15),
}  # fmt: skip
"""Lines and files that each room should have at most."""

ERRORS = re.compile(r"\w*Error|Finding|warn")
"""What is called with a code first."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """A file of Python.

    Attributes:
        path: where it is, below the root of the tree.
        text: what it holds.
    """

    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """What the text means."""
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All that the tree holds."""
        return list(ast.walk(self.tree))

    @cached_property
    def functions(self) -> list[Function]:
        """Every function and method, those within others included."""
        return [node for node in self.nodes if isinstance(node, Function)]

    @cached_property
    def imported(self) -> set[str]:
        """The modules that it imports from, by the lines that say so."""
        return set(re.findall(r"^ *(?:from|import) ([\w.]+)", self.text, flags=re.MULTILINE))


@cache
def sources(root: Path, folder: str) -> list[Source]:
    """The Python files below a folder of the tree, in the order of their paths; read once in a process."""
    paths = sorted((root / folder).rglob("*.py"))
    return [Source(path.relative_to(root), path.read_text(encoding="utf-8")) for path in paths]


# How long.


def length(function: Function, lines: list[str]) -> int:
    """Lines of code of a function with its signature, without docstring, comments and empty lines."""
    skipped: set[int] = set()
    if ast.get_docstring(function) is not None:
        skipped = set(range(function.body[0].lineno, (function.body[0].end_lineno or 0) + 1))
    span = range(function.lineno, (function.end_lineno or function.lineno) + 1)
    return sum(number not in skipped and _is_code(lines[number - 1]) for number in span)


def _is_code(line: str) -> bool:
    return bool(line.strip()) and not line.strip().startswith("#")


def long_functions(files: list[Source]) -> list[str]:
    """Name and length of every function over the limit, the longest first."""
    found = []
    for file in files:
        lines = file.text.splitlines()
        found += [(length(one, lines), one.name, file.path.name) for one in file.functions]
    return [f"{name} in {file}: {count}" for count, name, file in sorted(found, reverse=True) if count > LONG]


# Tests.


def importing_tests(tests: list[Source]) -> list[str]:
    """Files of tests, checks and helpers that import a file of tests."""
    names = {file.path.stem for file in tests if file.path.name.startswith("test_")}
    return [str(file.path) for file in tests if names & {part for one in file.imported for part in one.split(".")}]


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


def beyond_public(tests: list[Source]) -> list[str]:
    """Files of tests that import more of the package than `brittle` and its rooms by name."""
    deep = re.compile(r"brittle\.\w+\.")
    return [str(one.path) for one in tests if one.path.name.startswith("test_") and any(map(deep.match, one.imported))]


def figures(root: Path) -> Iterator[tuple[str, object]]:
    """Every figure that the files of the tree give."""
    package, tests = sources(root, "src"), sources(root, "tests")
    lines = [len(file.text.splitlines()) for file in package]
    long = long_functions(package)
    yield "lines of src", sum(lines)
    yield "files of src", len(package)
    yield from by_room(package)
    yield "codes of errors and notes", len(codes(package))
    yield "dataclasses and structs", dataclasses(package)
    yield "lines of the longest file", max(lines)
    yield (
        "entries at the top of src/brittle",
        len([path for path in (root / "src" / "brittle").iterdir() if path.name != "__pycache__"]),
    )
    yield f"functions over {LONG} lines", len(long)
    yield "longest function", long[0] if long else "-"
    yield "lines of tests", sum(len(file.text.splitlines()) for file in tests)
    yield "files of tests", sum(file.path.name.startswith("test_") for file in tests)
    yield "test files that import more than public names", len(beyond_public(tests))
    yield "test files that others import", len(importing_tests(tests))


def main() -> None:
    """Print a figure a line."""
    root = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parents[2]
    rows = list(figures(root.resolve()))
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value}")


if __name__ == "__main__":
    main()
