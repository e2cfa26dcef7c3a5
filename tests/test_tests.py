"""The tests themselves: no file of tests imports another, and helpers are used and hold no tests."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers.halves import WIDEST, leave_every_other

ROOT = Path(__file__).parents[1]


class Item:
    """A stand-in for an item of pytest."""

    def __init__(self, nodeid: str, marks: list[pytest.Mark], **indices: int) -> None:
        self.nodeid = nodeid
        self.callspec = SimpleNamespace(indices=indices)
        self._names = [mark.name for mark in marks]
        self.slow = False

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self._names else None

    def add_marker(self, marker: pytest.MarkDecorator) -> None:
        self.slow = self.slow or marker.name == "slow"


@cache
def texts() -> dict[Path, str]:
    """Return every file of the tests with its content."""
    return {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").rglob("*.py"))}


def test_no_test_file_is_imported() -> None:
    imports = re.compile(r"^ *(from|import) ([\w.]+\.)?test_", flags=re.MULTILINE)
    assert [str(path) for path, text in texts().items() if imports.search(text)] == []


def test_helpers_hold_no_tests_and_are_all_used() -> None:
    helpers = {path.stem: text for path, text in texts().items() if path.parent.name == "helpers"}
    assert [name for name, text in helpers.items() if re.search(r"^ *def test_", text, flags=re.MULTILINE)] == []
    everything = "\n".join(texts().values())
    used = r"helpers\.{0} import|helpers import .*\b{0}\b|\"helpers\.{0}\""
    assert [name for name in helpers if not re.search(used.format(name), everything)] == []


def test_every_other_case_of_each_law_is_slow() -> None:
    """Pass items as pytest does, with the cases of two marked laws mixed, and of one without the marker."""
    marked, plain = [pytest.mark.every_other.mark], []
    laws = [("a", 0, marked), ("b", 0, marked), ("a", 1, marked), ("c", 0, plain), ("a", 2, marked), ("b", 1, marked),
            ("c", 1, plain)]  # fmt: skip
    items = [Item(f"test_x.py::{law}[{place}]", marks, one=place, beside=place) for law, place, marks in laws]
    leave_every_other(items)  # pyright: ignore[reportArgumentType] it is all that is asked of one
    assert [item.nodeid for item in items if item.slow] == ["test_x.py::a[1]", "test_x.py::b[1]"]


def test_every_third_case_of_the_widest_laws_stays() -> None:
    marked = [pytest.mark.every_other.mark]
    items = [Item(f"test_x.py::a[{place}]", marked, one=place) for place in range(WIDEST)]
    leave_every_other(items)  # pyright: ignore[reportArgumentType] it is all that is asked of one
    assert [item.callspec.indices["one"] for item in items if not item.slow] == [*range(0, WIDEST, 3)]


def test_every_value_of_each_parameter_stays_in_the_suite() -> None:
    """Check that half of the cases of a law with two parameters are slow, and no value is in these alone."""
    marked = [pytest.mark.every_other.mark]
    items = [Item(f"test_x.py::a[{x}-{y}]", marked, x=x, y=y) for x in range(4) for y in range(2)]
    leave_every_other(items)  # pyright: ignore[reportArgumentType] it is all that is asked of one
    indices = [item.callspec.indices for item in items if not item.slow]
    assert len(indices) == 4
    assert ({places["x"] for places in indices}, {places["y"] for places in indices}) == ({0, 1, 2, 3}, {0, 1})
