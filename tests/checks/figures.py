"""Figures of a tree: size of its rooms, number of concepts, length of functions, and timings.

    python tests/checks/figures.py [ROOT] [--call] [--seconds] [--all]

Everything comes from the files of the tree, which may be an older one; none is imported. `--call` scores five points
and counts the functions of the package that run. `--seconds` times `import brittle` and `brittle --help`, the median of
five. `--all` also runs the demo and the suite, once each.
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
"""Lines of code above which a function is long."""

TIMES = 5
"""Repetitions of a short command."""

ERRORS = re.compile(r"\w*Error|Finding|warn")
"""Functions with a code as their first argument."""

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
"""A call of `brittle.score` on five points, after another that has made the imports."""

OPTIONS = """
from brittle.cli.commands import app
counts = []
for name in app:
    if not name.startswith("-") and app[name].default_command is not None:
        arguments = app[name].assemble_argument_collection(parse_docstring=True)
        counts.append(f"{name} {sum(one.name.startswith('--') and one.show for one in arguments)}")
print(", ".join(counts))
"""
"""Code that counts the options of each command."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """A parsed file of Python.

    Attributes:
        path: path below the root of the tree.
        text: content.
        tree: syntax of the content.
    """

    path: Path
    text: str
    tree: ast.Module

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Return all nodes of the tree."""
        return list(ast.walk(self.tree))

    @cached_property
    def functions(self) -> list[Function]:
        """Return every function and method, nested ones included."""
        return [node for node in self.nodes if isinstance(node, Function)]


@cache
def sources(root: Path, folder: str) -> list[Source]:
    """Return the Python files below a folder of the tree, in the order of their paths; read once in a process."""
    files = []
    for path in sorted((root / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        files.append(Source(path.relative_to(root), text, ast.parse(text)))
    return files


# How long.


def length(function: Function, lines: list[str]) -> int:
    """Count the lines of code of a function with its signature, without docstring, comments and empty lines."""
    docstring_lines: set[int] = set()
    if ast.get_docstring(function) is not None:
        docstring_lines = set(range(function.body[0].lineno, (function.body[0].end_lineno or 0) + 1))
    span = range(function.lineno, (function.end_lineno or function.lineno) + 1)
    return sum(number not in docstring_lines and _is_code(lines[number - 1]) for number in span)


def _is_code(line: str) -> bool:
    return bool(line.strip()) and not line.strip().startswith("#")


def long_functions(files: list[Source]) -> list[str]:
    """Return name and length of every function over the limit, the longest first."""
    lengths = []
    for file in files:
        lines = file.text.splitlines()
        lengths += [(length(function, lines), function.name, file.path.name) for function in file.functions]
    return [f"{name} in {file}: {count}" for count, name, file in sorted(lengths, reverse=True) if count > LONG]


# Tests.


def importing_tests(tests: list[Source]) -> list[str]:
    """Return files of tests, checks and helpers that import a file of tests."""
    names = {file.path.stem for file in tests if file.path.name.startswith("test_")}
    importing = []
    for file in tests:
        modules = {alias.name for node in file.nodes if isinstance(node, ast.Import) for alias in node.names}
        modules |= {node.module for node in file.nodes if isinstance(node, ast.ImportFrom) and node.module}
        if any(part in names for name in modules for part in name.split(".")):
            importing.append(str(file.path))
    return importing


# Rooms, the core and its extensions.


Imports = list[tuple[str, str]]
"""Pairs of a module and the name that is imported from it; an empty name for the module itself."""


@cache
def module_trees(root: Path) -> dict[str, ast.Module]:
    """Return the syntax of every module of the package by its name; a package has the name of its folder."""
    modules = {".".join(file.path.with_suffix("").parts[1:]): file.tree for file in sources(root, "src")}
    return {name.removesuffix(".__init__"): tree for name, tree in modules.items()}


@cache
def imports_of(tree: ast.Module) -> Imports:
    """Return every import of a module, lazy and for typing alike."""
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
    """Return the modules of the package that each module imports; `from package import module` imports the module."""
    trees, graph = module_trees(root), {}
    for module, tree in trees.items():
        targets = {f"{place}.{name}" if f"{place}.{name}" in trees else place for place, name in imports_of(tree)}
        graph[module] = (targets & trees.keys()) - {module, "brittle"}
    return graph


def closure(root: Path, start: str) -> set[str]:
    """Return the modules that `start` can reach by imports, with their packages; `brittle` imports nothing."""
    graph, reached, queue = import_graph(root), set[str](), [start]
    while queue:
        module = queue.pop()
        if module not in reached:
            reached.add(module)
            queue += [
                *(graph[module] if "." in module else ()),
                *([module.rpartition(".")[0]] if "." in module else []),
            ]
    return reached


def by_room(root: Path) -> Iterator[tuple[str, object]]:
    """Count lines and files of the core, of each of its rooms, and of each extension."""
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
    """Return the names in `__all__` of the package and of the packages that it names itself, without extensions."""
    tree = module_trees(root)["brittle"]
    packages = _literals(tree, "_PACKAGES") or _literals(tree, "_ROOMS")
    modules = {"brittle": tree} | {name: module_trees(root).get(f"brittle.{name}") for name in packages}
    return [f"{module}.{name}" for module, syntax in modules.items() if syntax for name in _literals(syntax, "__all__")]


def _literals(tree: ast.Module, name: str) -> list[str]:
    """Return the texts of a list or tuple that a module assigns to a name at its top."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return list(ast.literal_eval(node.value))
    return []


def options(root: Path) -> Iterator[tuple[str, object]]:
    """Count the options of each command, as its help shows them."""
    done = subprocess.run([sys.executable, "-c", OPTIONS], env=_environment(root), capture_output=True, text=True)
    yield "options by command", done.stdout.strip() or done.stderr[-200:]


def _environment(root: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1"}


def codes(package: list[Source]) -> set[str]:
    """Return the codes of errors and notes that the package spells out."""
    written = {"usage", "parameter", "unknown_name"}
    for file in package:
        calls = [node for node in file.nodes if isinstance(node, ast.Call) and len(node.args) > 1]
        for node in calls:
            function = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            code = node.args[0]
            if (
                ERRORS.fullmatch(function)
                and isinstance(code, ast.Constant)
                and re.fullmatch(r"[a-z_]+", str(code.value))
            ):
                written.add(str(code.value))
    return written


def dataclasses(package: list[Source]) -> int:
    """Count the classes that are dataclasses or derive from structs."""
    classes = [node for file in package for node in file.nodes if isinstance(node, ast.ClassDef)]
    return sum(
        "dataclass" in ast.unparse(ast.List(class_node.decorator_list, ast.Load()))
        or "Struct" in map(ast.unparse, class_node.bases)
        for class_node in classes
    )


def beyond_public(tests: list[Source]) -> list[str]:
    """Return files of tests that import more of the package than `brittle` and its rooms by name."""
    paths = []
    for file in tests:
        modules = {node.module for node in file.nodes if isinstance(node, ast.ImportFrom) and node.module}
        deep = any(name.startswith("brittle.") and name.count(".") > 1 for name in modules)
        if deep and file.path.name.startswith("test_"):
            paths.append(str(file.path))
    return paths


# Seconds.


def seconds(root: Path, command: list[str], times: int = 1) -> str:
    """Return the median of the times that a command takes in the tree, with its exit code unless 0."""
    durations, codes = [], []
    environment = _environment(root)
    for _ in range(times):
        start = time.perf_counter()
        run = subprocess.run(command, cwd=root, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        durations.append(time.perf_counter() - start)
        codes.append(run.returncode)
    return f"{statistics.median(durations):.2f}" + (f" (exit {max(codes)})" if any(codes) else "")


def call(root: Path) -> str:
    """Count the functions and files of the package that a call of `brittle.score` runs."""
    environment = _environment(root)
    done = subprocess.run([sys.executable, "-c", CALL], cwd=root, env=environment, capture_output=True, text=True)
    return done.stdout.strip() or done.stderr[-200:]


def time_commands(root: Path, everything: bool) -> Iterator[tuple[str, object]]:
    """Measure the seconds of imports, commands, and with `everything` of the demo and the suite."""
    yield "seconds of import brittle", seconds(root, [sys.executable, "-c", "import brittle"], TIMES)
    yield "seconds of brittle --help", seconds(root, [sys.executable, "-m", "brittle", "--help"], TIMES)
    if everything:
        with tempfile.TemporaryDirectory() as folder:
            demo = [sys.executable, "-m", "brittle", "demo", "--quiet", "--out", str(Path(folder) / "demo")]
            yield "seconds of make demo", seconds(root, demo)
        suite = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadgroup", "-q"]
        yield "seconds of the suite, two processes", seconds(root, suite)


def figures(root: Path) -> Iterator[tuple[str, object]]:
    """Compute every figure from the files of the tree."""
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
    outside = [
        (importer, imported)
        for importer, imported in edges
        if ".extensions." not in importer and ".extensions." in imported
    ]
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
    """Print one figure per line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[2], help="the tree")
    parser.add_argument("--call", action="store_true", help="also count what a call of brittle.score runs")
    parser.add_argument("--seconds", action="store_true", help="also time the import and the help")
    parser.add_argument("--all", action="store_true", help="also time the demo and the suite")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    rows = list(figures(root)) + list(time_commands(root, arguments.all) if arguments.seconds or arguments.all else ())
    rows += [("one brittle.score of five points", call(root))] if arguments.call or arguments.all else []
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value}")


if __name__ == "__main__":
    main()
