"""Figures of a tree: how large its rooms are, how many concepts it has, how long its functions are and things take.

    python tests/checks/figures.py [ROOT] [--call] [--seconds] [--all]

Everything is read off the files of the tree, which may be an older one; nothing of it is imported. `--call` scores five
points and counts the functions of the package that run. `--seconds` times `import brittle` and `brittle --help`, the
median of five. `--all` also runs the demo and the suite, once each.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

LONG = 30
"""A function with more lines of code than this is long."""

TIMES = 5
"""How often a short command is timed."""

ERRORS = re.compile(r"\w*Error|Finding|warn")
"""What is called with a code first."""

CALL = """
import sys, torch, brittle
torch.manual_seed(0)
ran, package = set(), brittle.__path__[0]
def note(frame, event, argument):
    if event == "call" and frame.f_code.co_filename.startswith(package):
        ran.add(frame.f_code)
x = torch.rand(5, 6)
classifier = brittle.Classifier(torch.nn.Linear(6, 3), bounds=(0, 1))
brittle.score(classifier, (x, torch.zeros(5, dtype=torch.long)), [brittle.scores.Shrinkage(0.1, limit=None)])
sys.setprofile(note)
brittle.score(classifier, (x, torch.zeros(5, dtype=torch.long)), [brittle.scores.Shrinkage(0.1, limit=None)])
sys.setprofile(None)
named = {one for one in ran if not one.co_name.startswith("<")}
print(len(named), "functions in", len({one.co_filename for one in named}), "files")
"""
"""One call of `brittle.score` on five points, after another that has imported what it needs."""

OPTIONS = """
from brittle.cli.commands import app
counts = []
for name in app:
    if not name.startswith("-") and app[name].default_command is not None:
        arguments = app[name].assemble_argument_collection(parse_docstring=True)
        counts.append(f"{name} {sum(one.name.startswith('--') and one.show for one in arguments)}")
print(", ".join(counts))
"""
"""The options of each command."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


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
    def functions(self) -> list[Function]:
        """Every function and method, those within others included."""
        return [node for node in self.nodes if isinstance(node, Function)]


@cache
def sources(root: Path, folder: str) -> list[Source]:
    """The Python files below a folder of the tree, in the order of their paths; read once in a process."""
    found = []
    for path in sorted((root / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        found.append(Source(path.relative_to(root), text, ast.parse(text)))
    return found


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
    found = []
    for file in tests:
        named = {alias.name for node in file.nodes if isinstance(node, ast.Import) for alias in node.names}
        named |= {node.module for node in file.nodes if isinstance(node, ast.ImportFrom) and node.module}
        if any(part in names for name in named for part in name.split(".")):
            found.append(str(file.path))
    return found


# Rooms, the core and its extensions.


Imports = list[tuple[str, str]]
"""Pairs of a module and the name that is imported from it; an empty name for the module itself."""


@cache
def module_trees(root: Path) -> dict[str, ast.Module]:
    """The syntax of every module of the package by its name; a package has the name of its folder."""
    modules = {".".join(file.path.with_suffix("").parts[1:]): file.tree for file in sources(root, "src")}
    return {name.removesuffix(".__init__"): tree for name, tree in modules.items()}


@cache
def imports_of(tree: ast.Module) -> Imports:
    """Every import of a module, lazy and for typing alike."""
    pairs: Imports = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            pairs += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports within the package are written in full"
            pairs += [(node.module or "", alias.name) for alias in node.names]
    return pairs


@cache
def import_graph(root: Path) -> dict[str, set[str]]:
    """The modules of the package that each module imports; `from package import module` imports the module."""
    trees, graph = module_trees(root), {}
    for module, tree in trees.items():
        targets = {f"{place}.{name}" if f"{place}.{name}" in trees else place for place, name in imports_of(tree)}
        graph[module] = (targets & trees.keys()) - {module, "brittle"}
    return graph


def closure(root: Path, start: str) -> set[str]:
    """The modules that `start` can reach by imports, with the packages in which they lie; `brittle` imports nothing."""
    graph, reached, waiting = import_graph(root), set[str](), [start]
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            waiting += [
                *(graph[module] if "." in module else ()),
                *([module.rpartition(".")[0]] if "." in module else []),
            ]
    return reached


def by_room(root: Path) -> Iterator[tuple[str, object]]:
    """Lines and files of the core and of each of its rooms, and of each extension."""
    rooms: dict[str, list[int]] = {}
    for file in sources(root, "src"):
        parts = file.path.with_suffix("").parts[2:]
        extension = parts[0] == "extensions" and len(parts) > 1 and parts[1] != "__init__"
        room = f"  extension {parts[1]}" if extension else f"  {parts[0] if len(parts) > 1 else 'the top'}"
        rooms.setdefault(room, []).append(len(file.text.splitlines()))
    core = [lines for room, sizes in rooms.items() if "extension " not in room for lines in sizes]
    yield "core", f"{sum(core)} lines in {len(core)} files"
    for room, sizes in sorted(rooms.items()):
        yield room, f"{sum(sizes)} lines in {len(sizes)} files"


def public_names(root: Path) -> list[str]:
    """The names in `__all__` of the package and of those of its packages that it names itself, without extensions."""
    tree = module_trees(root)["brittle"]
    packages = _literals(tree, "_PACKAGES") or _literals(tree, "_ROOMS")
    modules = {"brittle": tree} | {name: module_trees(root).get(f"brittle.{name}") for name in packages}
    return [f"{module}.{name}" for module, syntax in modules.items() if syntax for name in _literals(syntax, "__all__")]


def _literals(tree: ast.Module, name: str) -> list[str]:
    """The texts of a list or tuple that stands under a name at the top of a module."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return list(ast.literal_eval(node.value))
    return []


def options(root: Path) -> Iterator[tuple[str, object]]:
    """How many options each command takes, as its help shows them."""
    done = subprocess.run([sys.executable, "-c", OPTIONS], env=_environment(root), capture_output=True, text=True)
    yield "options by command", done.stdout.strip() or done.stderr[-200:]


def _environment(root: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1"}


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
    found = []
    for file in tests:
        named = {node.module for node in file.nodes if isinstance(node, ast.ImportFrom) and node.module}
        deep = any(name.startswith("brittle.") and name.count(".") > 1 for name in named)
        if deep and file.path.name.startswith("test_"):
            found.append(str(file.path))
    return found


# Seconds.


def seconds(root: Path, command: list[str], times: int = 1) -> str:
    """The median of the times that a command takes, run in the tree; a code that is not 0 is told."""
    taken, codes = [], []
    environment = _environment(root)
    for _ in range(times):
        start = time.perf_counter()
        ended = subprocess.run(command, cwd=root, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        taken.append(time.perf_counter() - start)
        codes.append(ended.returncode)
    return f"{statistics.median(taken):.2f}" + (f" (exit {max(codes)})" if any(codes) else "")


def call(root: Path) -> str:
    """Functions and files of the package that one call of `brittle.score` runs through."""
    environment = _environment(root)
    done = subprocess.run([sys.executable, "-c", CALL], cwd=root, env=environment, capture_output=True, text=True)
    return done.stdout.strip() or done.stderr[-200:]


def timed(root: Path, everything: bool) -> Iterator[tuple[str, object]]:
    """What takes how long, in seconds."""
    yield "seconds of import brittle", seconds(root, [sys.executable, "-c", "import brittle"], TIMES)
    yield "seconds of brittle --help", seconds(root, [sys.executable, "-m", "brittle", "--help"], TIMES)
    if everything:
        with tempfile.TemporaryDirectory() as folder:
            demo = [sys.executable, "-m", "brittle", "demo", "--quiet", "--out", str(Path(folder) / "demo")]
            yield "seconds of make demo", seconds(root, demo)
        suite = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadgroup", "-q"]
        yield "seconds of the suite, two processes", seconds(root, suite)


def figures(root: Path) -> Iterator[tuple[str, object]]:
    """Every figure that the files of the tree give."""
    package, tests = sources(root, "src"), sources(root, "tests")
    lines = [len(file.text.splitlines()) for file in package]
    long = long_functions(package)
    yield "lines of src", sum(lines)
    yield "files of src", len(package)
    yield from by_room(root)
    reached = closure(root, "brittle.run.scoring")
    trees = {file.path: len(file.text.splitlines()) for file in package}
    names = {".".join(path.with_suffix("").parts[1:]).removesuffix(".__init__"): size for path, size in trees.items()}
    yield "closure of brittle.score", f"{sum(names[module] for module in reached)} lines in {len(reached)} modules"
    edges = [(module, name) for module, targets in import_graph(root).items() for name in targets]
    outside = [(one, other) for one, other in edges if ".extensions." not in one and ".extensions." in other]
    yield "imports from the core to extensions", len(outside)
    yield "public names of the core", len(public_names(root))
    yield from options(root)
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
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[2], help="the tree")
    parser.add_argument("--call", action="store_true", help="also count what a call of brittle.score runs")
    parser.add_argument("--seconds", action="store_true", help="also time the import and the help")
    parser.add_argument("--all", action="store_true", help="also time the demo and the suite")
    given = parser.parse_args()
    root = given.root.resolve()
    rows = list(figures(root)) + list(timed(root, given.all) if given.seconds or given.all else ())
    rows += [("one brittle.score of five points", call(root))] if given.call or given.all else []
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value}")


if __name__ == "__main__":
    main()
