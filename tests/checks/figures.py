"""How large the rooms of the package are, beside their budget, and how many concepts it has.

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

BUDGET = {
    "the top": (700, 6), "model": (3000, 21), "decisions": (700, 6), "data": (2800, 16), "noise": (1300, 8),
    "orthant": (560, 4), "measure": (7800, 45), "scores": (3100, 24), "store": (1700, 12), "run": (1900, 12),
    "doctor": (2000, 13), "analysis": (3600, 24), "detector": (2000, 12), "report": (3900, 32), "cli": (1900, 15),
}  # fmt: skip
"""Lines and files that each room should have at most."""

ERRORS = re.compile(r"\w*Error|Finding|warn")
"""What is called with a code first."""


@dataclass(frozen=True)
class Source:
    """A file of Python, parsed; `path` is where it is, below the root of the tree."""

    path: Path
    text: str
    tree: ast.Module

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All that the tree holds."""
        return list(ast.walk(self.tree))

    @cached_property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @property
    def room(self) -> str:
        """The folder of the package in which it lies."""
        return self.path.parts[2] if len(self.path.parts) > 3 else "the top"


@cache
def sources(root: Path, folder: str) -> list[Source]:
    """The Python files below a folder of the tree, in the order of their paths; read once in a process."""
    found = []
    for path in sorted((root / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        found.append(Source(path.relative_to(root), text, ast.parse(text)))
    return found


def codes(package: list[Source]) -> set[str]:
    """Codes of errors and notes that are written out in the package."""
    found = {"usage", "parameter", "unknown_name"}
    for call in (node for file in package for node in file.nodes if isinstance(node, ast.Call) and len(node.args) > 1):
        called = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        code = str(getattr(call.args[0], "value", ""))
        if ERRORS.fullmatch(called) and re.fullmatch(r"[a-z_]+", code):
            found.add(code)
    return found


def dataclasses(package: list[Source]) -> int:
    """How many classes are decorated as dataclasses or derive from structs."""
    every = [node for file in package for node in file.nodes if isinstance(node, ast.ClassDef)]
    return sum(
        "dataclass" in ast.unparse(ast.List(one.decorator_list, ast.Load())) or "Struct" in map(ast.unparse, one.bases)
        for one in every
    )


def figures(root: Path) -> Iterator[tuple[str, object]]:
    """Every figure that the files of the tree give."""
    package, tests = sources(root, "src"), sources(root, "tests")
    yield "lines of src", sum(file.lines for file in package)
    yield "files of src", len(package)
    for room, (most_lines, most_files) in BUDGET.items():
        own = [file for file in package if file.room == room]
        yield (
            f"  {room}",
            f"{sum(file.lines for file in own)} lines in {len(own)} files; at most {most_lines} in {most_files}",
        )
    yield "lines of the longest file", max(file.lines for file in package)
    yield "codes of errors and notes", len(codes(package))
    yield "dataclasses and structs", dataclasses(package)
    yield "lines of tests", sum(file.lines for file in tests)
    yield "files of tests", sum(file.path.name.startswith("test_") for file in tests)


if __name__ == "__main__":
    for name, value in figures(Path(sys.argv[1] if sys.argv[1:] else Path(__file__).parents[2]).resolve()):
        print(f"{name:<26}  {value}")
