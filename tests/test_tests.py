"""The tests themselves: each file stands alone, helpers are helpers, and a table of figures says what is missing."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
from checks.figures import (
    Source,
    circles,
    figures,
    importing_tests,
    length,
    loose_dictionaries,
    parameters,
    repeated_lines,
    sources,
    without_test,
)
from helpers.halves import leave_every_other

pytestmark = pytest.mark.xdist_group("sources")  # one process reads every file

ROOT = Path(__file__).parents[1]

WITHOUT_TEST = 0.3
"""At most this share of the modules is tested only through others."""


class Item:
    """What is asked of an item of pytest."""

    def __init__(self, nodeid: str, marks: list[pytest.Mark]) -> None:
        self.nodeid = nodeid
        self._names = [mark.name for mark in marks]
        self.slow = False

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self._names else None

    def add_marker(self, marker: pytest.MarkDecorator) -> None:
        self.slow = self.slow or marker.name == "slow"


def files() -> list[Source]:
    return sources(ROOT, "tests")


def source(text: str, name: str = "src/brittle/x.py") -> Source:
    return Source(Path(name), text, ast.parse(text))


def test_no_test_file_is_imported() -> None:
    assert importing_tests(files()) == []


def test_helpers_hold_no_tests_and_are_all_used() -> None:
    helpers = {file.path.stem: file for file in files() if file.path.parent.name == "helpers"}
    assert [name for name, file in helpers.items() for one in file.functions if one.name.startswith("test_")] == []
    text = "\n".join(file.text for file in files())
    assert [
        name for name in helpers if not re.search(rf"helpers\.{name} import|helpers import .*\b{name}\b", text)
    ] == []


def test_no_test_is_defined_twice_in_a_file() -> None:
    for file in files():
        for owner in [file.tree, *(node for node in file.tree.body if isinstance(node, ast.ClassDef))]:
            names = Counter(node.name for node in owner.body if isinstance(node, ast.FunctionDef))
            assert [name for name, count in names.items() if count > 1] == [], file.path


def test_every_other_case_of_each_law_is_slow() -> None:
    """Items as pytest hands them over, of two marked laws whose cases come mixed, and of one that is not."""
    marked, plain = [pytest.mark.every_other.mark], []
    laws = [("a", marked), ("b", marked), ("a", marked), ("c", plain), ("a", marked), ("b", marked), ("c", plain)]
    items = [Item(f"test_x.py::{law}[{number}]", marks) for number, (law, marks) in enumerate(laws)]
    leave_every_other(items)
    assert [item.nodeid for item in items if item.slow] == ["test_x.py::a[2]", "test_x.py::b[5]"]


def test_most_modules_have_a_test_file_of_their_name() -> None:
    package = sources(ROOT, "src")
    assert len(without_test(package, files())) <= WITHOUT_TEST * len(package)


def test_every_figure_can_be_read_off() -> None:
    found = dict(figures(ROOT))
    counted = {name: value for name, value in found.items() if name not in ("longest function", "most parameters")}
    assert len(counted) == len(found) - 2
    assert all(isinstance(value, int) and value >= 0 for value in counted.values()), counted
    assert counted["files of tests"] == sum(file.path.name.startswith("test_") for file in files())
    assert int(str(counted["files of src"])) > int(str(counted["modules without a test file of their name"]))
    assert re.fullmatch(r"\w+ in \w+\.py: \d+", str(found["longest function"]))
    assert re.fullmatch(r"\d+ \(\w+ in \w+\.py\)", str(found["most parameters"]))


@pytest.mark.parametrize(
    ("text", "lines", "count"),
    [
        ("def f(a, *b, c=1, **d):\n    return a\n", 2, 4),
        ('def f(self):\n    """One.\n\n    Two.\n    """\n\n    # why\n    return 1\n', 2, 0),
        ("def f(\n    a,\n    b,\n):\n    pass\n", 5, 2),
    ],
)
def test_a_function_is_measured_without_its_docstring(text: str, lines: int, count: int) -> None:
    (function,) = source(text).functions
    assert length(function, text.splitlines()) == lines
    assert parameters(function) == count


def test_loose_dictionaries_are_counted_in_annotations_alone() -> None:
    text = "x: dict[str, Any] = {}\ndef f(a: 'dict[int, Any] | None', b: dict[str, int]) -> list[dict[str, Any]]: ...\n"
    assert loose_dictionaries([source(text + "y = dict[str, Any]\n")]) == 3


def test_circles_are_found_and_paths_are_not() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_lines_are_repeated_where_six_in_a_row_stand_twice() -> None:
    block = "\n".join(f"x{number} = {number}" for number in range(6))
    assert repeated_lines([source(block), source(block, "src/brittle/y.py")]) == 12
    assert repeated_lines([source(block), source(block[:-7], "src/brittle/y.py")]) == 0
