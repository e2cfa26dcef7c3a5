"""Architecture: the core imports no extension, each extension can be deleted, imports point one way."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from graphlib import TopologicalSorter
from itertools import combinations
from pathlib import Path

import pytest
from checks.figures import import_graph, imports_of, module_trees, sources
from helpers.processes import LIMIT

import brittle
from brittle.registry import GROUP, PARTS

pytestmark = pytest.mark.xdist_group("sources")  # one process reads every file

SOURCE = Path(brittle.__file__).parent
EXTENSIONS = sorted({path.stem for path in (SOURCE / "extensions").iterdir()} - {"__init__", "__pycache__"})

MOST_ENTRIES = 21
"""Largest number of files and folders at the top of the package."""

OF_TABLES = ("analysis", "chapter", "view")
"""Kinds of parts that read tables, as `brittle.analysis` does, and import no torch."""

STORE = {f"brittle.store.{name}" for name in ("columns", "record", "representative", "schemas", "settings", "table")}
"""Modules of the storage that `brittle.analysis` may import."""

EMPTY_WORDS = re.compile(
    "one|own|found|each|other|others|said|given|whole|told|there|many|few|known|named|asked|taken|seen|wanted|rest|what|"
    "where|some|every|both|first|most|least|left|right|kept|made|spent|way|ways"
)
"""Names that say nothing of what they hold."""

PAGE_BINDING = re.compile(
    rf"\b(?:const|let|function)\b[^=;\n]*?\b(?:{EMPTY_WORDS.pattern})\b(?!:)"
    rf"|\b(?:{EMPTY_WORDS.pattern})\b[^():\n]*\)? =>"
)
"""A declaration or a parameter of the page's script under one of these names."""

MOST_EMPTY = 3
"""Largest number of bindings of these names in 1,000 lines of a tree."""

LATE = {f"scipy.{name}" for name in ("interpolate", "ndimage", "optimize", "spatial", "stats")}
"""Modules that must be imported on use, as `scipy.stats` of `import scipy` is: a fifth of the time of a short
command."""

USED_BY = {"report": ("chapter",)}
"""Kinds of parts that only one extension uses: without it nothing imports them."""

CHILDREN = range(7)
"""Processes that lack several extensions each. Every extension is missing in a different set of three, so for any two
extensions a process lacks the first and has the second."""

WITHOUT = """
import json, os, sys, traceback
from importlib import import_module

core, groups, used_by, folder = json.loads(sys.argv[1])
for name in core:
    import_module(name)
present = [name for name in sys.modules if name.startswith("brittle.extensions.")]
assert not present, present
for name in ("altair", "jinja2", "pandas", "scipy.stats", "sklearn"):  # once for all children
    import_module(name)

class Deleted:
    def __init__(self, extensions):
        self.modules = tuple("brittle.extensions." + extension + "." for extension in extensions)
    def find_spec(self, name, path=None, target=None):
        if (name + ".").startswith(self.modules):
            raise ModuleNotFoundError(name)

def check(deleted):
    sys.meta_path.insert(0, Deleted(deleted))
    from brittle import registry
    from brittle.errors import BrittleError
    for function in vars(registry).values():  # what the parent has asked
        getattr(function, "cache_clear", lambda: None)()
    unused = {kind for extension in deleted for kind in used_by.get(extension, ())}
    for part, place in registry.PARTS.items():
        kind, name = part.split(".", 1)
        extension = place.replace(":", ".").split(".")[0]
        if extension not in deleted:
            kind in unused or registry.load(kind, name)
            continue
        try:
            registry.load(kind, name)
        except BrittleError as error:
            assert error.code == "not_installed" and extension in str(error), error
        else:
            raise AssertionError(part + " is there")
    import torch, brittle
    from brittle.cli.commands import main
    assert main(["--help"]) == main(["list"]) == 0
    x, out = torch.rand(6, 4), folder + "/" + "-".join(deleted)
    names = ["shrinkage", "moments", "taylor", "softmax", "logit_margin", "entropy"]
    scores = [brittle.scores.catalogue.CATALOGUE[name]() for name in names if name in names[3:]]
    scores += [brittle.scores.catalogue.CATALOGUE[name](0.1) for name in names[:3]]
    scores += [brittle.scores.MonteCarlo(0.1, draws=20, limit=None), brittle.scores.InputMargin(effort="fast")]
    needed = brittle.scores.InputMargin().needs[1].missing
    searches = [extension for extension in ("more_attacks", "trees") if extension in deleted]
    assert all((extension in needed) == (extension in searches) for extension in deleted), needed
    data = x, torch.zeros(6, dtype=torch.long)
    table = brittle.score(torch.nn.Linear(4, 3), data, scores, out=out, skip_doctor=True)
    assert len(table.scores) == 6 * len(scores)
    assert [bool(score.code) for score in table.record.scores] == [False] * 7 + [bool(needed)]
    assert brittle.check(table, holds=0.0).state == "passes"
    assert "6 points" in repr(table)
    assert main(["show", out]) == 0

for deleted in groups:
    child = os.fork()
    if not child:
        try:
            check(deleted)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    print(*deleted, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=sys.__stderr__, flush=True)
"""
"""Program that imports the core, which imports no extension, and forks a process for each group of missing extensions:
other parts, commands, scores and a table of the core work there, and the error for each missing word names its
extension."""


@cache
def trees() -> dict[str, ast.Module]:
    """Return the syntax of every module by its name."""
    return module_trees(SOURCE.parents[1])


@cache
def graph() -> dict[str, set[str]]:
    """Return the modules of the package that each module imports, lazily and for typing, too."""
    return import_graph(SOURCE.parents[1])


def is_core(module: str) -> bool:
    return not module.startswith(f"{GROUP}.")


def room_of(module: str) -> str:
    """Return the folder or file at the top of the package that holds a module; an extension is a room."""
    return ".".join(module.split(".")[: 2 if is_core(module) else 3])


def test_the_core_imports_no_extension() -> None:
    for module in filter(is_core, trees()):
        assert all(map(is_core, graph()[module])), module


def test_nothing_imports_one_another_in_a_circle() -> None:
    """Sort modules and rooms: a circle raises an error that names it."""
    TopologicalSorter(graph()).prepare()
    rooms: dict[str, set[str]] = {}
    for module, names in graph().items():
        rooms.setdefault(room_of(module), set()).update({*map(room_of, names)} - {room_of(module)})
    del rooms["brittle"]
    TopologicalSorter(rooms).prepare()


def check_without(groups: Sequence[Sequence[str]], folder: Path) -> None:
    """Check that everything else runs without the extensions of each group, with errors for their words."""
    core = [
        module for module in trees() if is_core(module) and module not in ("brittle.__main__", "brittle.cli.commands")
    ]
    task = json.dumps([core, groups, USED_BY, str(folder)])
    done = subprocess.run([sys.executable, "-c", WITHOUT, task], timeout=5 * LIMIT, capture_output=True, text=True)
    assert done.stderr == "".join(f"{' '.join(group)} 0\n" for group in groups), done.stderr[-3000:]


def test_extensions_can_be_deleted(tmp_path: Path) -> None:
    absences = dict(zip(EXTENSIONS, combinations(CHILDREN, 3), strict=False))
    assert absences.keys() == {*EXTENSIONS}
    groups = [[name for name, children in absences.items() if child in children] for child in CHILDREN]
    check_without(groups, tmp_path)


@pytest.mark.slow
def test_each_extension_can_be_deleted_alone(tmp_path: Path) -> None:
    check_without([[extension] for extension in EXTENSIONS], tmp_path)


@pytest.mark.parametrize("part", PARTS)
def test_a_part_lies_where_the_table_says(part: str) -> None:
    module, _, attribute = PARTS[part].partition(":")
    assert f"{GROUP}.{module}" in trees()
    assert not attribute or hasattr(importlib.import_module(f"{GROUP}.{module}"), attribute)


@cache
def readers() -> set[str]:
    """Return the modules that read tables: the analysis, and its parts, chapters and views in extensions."""
    modules = {name for name in trees() if room_of(name) == "brittle.analysis"}
    parts = [place.partition(":")[0] for part, place in PARTS.items() if part.partition(".")[0] in OF_TABLES]
    return modules | {f"{GROUP}.{module}" for module in parts}


def test_readers_of_tables_do_not_import_torch() -> None:
    command = [sys.executable, "-c", f"import sys, {', '.join(sorted(readers()))}; sys.exit('torch' in sys.modules)"]
    assert subprocess.run(command, timeout=LIMIT).returncode == 0


def test_readers_of_tables_do_not_name_torch() -> None:
    """Forbid imports that are lazy or for types, too."""
    for module, tree in trees().items():
        if room_of(module) in ("brittle.analysis", f"{GROUP}.report"):
            assert "torch" not in {place.partition(".")[0] for place, _ in imports_of(tree)}, module


def test_no_module_reaches_others_through_the_package_itself() -> None:
    for module, tree in trees().items():
        assert ("brittle", "") not in imports_of(tree), module


def test_the_analysis_reads_tables_alone() -> None:
    for module in trees():
        if room_of(module) == "brittle.analysis":
            assert {name for name in graph()[module] if name.startswith("brittle.store")} <= STORE, module


def test_slow_modules_are_imported_on_use() -> None:
    for module, tree in trees().items():
        places = {name for place, attribute in imports_of(tree) for name in (place, f"{place}.{attribute}")}
        assert not places & LATE, f"{module}: import scipy, and write scipy.{places & LATE}"


def test_the_top_of_the_package_is_seen_at_a_glance() -> None:
    entries = [path.name for path in SOURCE.iterdir() if path.suffix == ".py" or any(path.glob("**/*.py"))]
    assert len(entries) <= MOST_ENTRIES, sorted(entries)


def test_the_file_of_a_package_only_exports() -> None:
    """Allow a docstring, imports, `__all__`, and the names that extensions add."""
    for path in SOURCE.glob("*/**/__init__.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = {ast.unparse(target) for target in node.targets} if isinstance(node, ast.Assign) else set()
            documented = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            imports = isinstance(node, ast.Import | ast.ImportFrom)
            assert names & {"__all__", "__getattr__"} or documented or imports, f"{path}: {ast.unparse(node)[:80]}"


def bound_name(node: ast.AST) -> str:
    """Return the name that a node binds, of a parameter or a stored variable, or nothing."""
    if isinstance(node, ast.arg):
        return node.arg
    return node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else ""


@pytest.mark.parametrize("tree", ["src", "tests", "research"])
def test_names_say_what_they_hold(tree: str) -> None:
    files = sources(SOURCE.parents[1], tree)
    allowed = MOST_EMPTY * sum(file.text.count("\n") for file in files) // 1000
    bindings = [(file, node) for file in files for node in file.nodes if EMPTY_WORDS.fullmatch(bound_name(node))]
    places = [f"{file.path}:{getattr(node, 'lineno', 0)}: {bound_name(node)}" for file, node in bindings]
    assert len(places) <= allowed, "\n".join(places[allowed:])


def test_names_of_the_page_say_what_they_hold() -> None:
    for path in [*SOURCE.rglob("*.js"), *Path(__file__).parent.rglob("*.js")]:
        assert not PAGE_BINDING.findall(path.read_text(encoding="utf-8")), path
