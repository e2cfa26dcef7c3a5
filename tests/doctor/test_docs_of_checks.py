"""Every code that the package can raise or note is explained, once, where `brittle doctor` says it is."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from brittle.cli.doctor import PAGE
from brittle.doctor import CHECKS

ROOT = Path(__file__).parents[2]
BUILT_IN = {
    "AssertionError",
    "AttributeError",
    "KeyError",
    "NotImplementedError",
    "OSError",
    "RuntimeError",
    "TypeError",
}
BUILT_IN |= {"ImportError", "IndexError", "UnicodeDecodeError", "ValueError"}
ROW = re.compile(r'^\| <a id="(\w+)"></a>`(\w+)` \| (.+) \| (.+) \|$', flags=re.MULTILINE)


_OF_THEIR_KIND = {"UsageError", "ParameterError", "UnknownNameError"}
"""Errors of one code each, which their class says."""


def page() -> str:
    return (ROOT / PAGE).read_text(encoding="utf-8")


def codes() -> Iterator[tuple[str, str]]:
    """Every code that is written out in the package, and where."""
    for path in (ROOT / "src" / "brittle").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            raised = called.endswith("Error") and called not in BUILT_IN
            if called in _OF_THEIR_KIND:
                continue
            first = node.args[called == "__init__" and len(node.args) > 1]
            if (raised or called in ("Finding", "__init__")) and isinstance(first, ast.Constant):
                yield str(first.value), f"{path.relative_to(ROOT)}:{node.lineno}"


def test_every_code_is_explained() -> None:
    explained = {code for code, *_ in ROW.findall(page())}
    missing = {code: where for code, where in codes() if re.fullmatch(r"\w+", code) and code not in explained}
    assert not missing, f"give each a row in {PAGE}: {missing}"


def test_every_code_is_explained_once_under_its_own_anchor() -> None:
    rows = ROW.findall(page())
    assert len(rows) > 60
    assert [code for code, count in Counter(code for code, *_ in rows).items() if count > 1] == []
    assert all(anchor == code for anchor, code, *_ in rows)


def test_the_checks_are_listed() -> None:
    for check in CHECKS:
        says = (check.run.__doc__ or "").strip().splitlines()[0]
        assert f"| {check.name} | {says} |" in page(), check.name
