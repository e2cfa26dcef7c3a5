"""Every code of an error or a note has one explanation, on the page that `brittle doctor` names."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from brittle.cli.doctor import PAGE
from brittle.doctor import CHECKS

ROOT = Path(__file__).parents[2]
ROW = re.compile(r'^\| <a id="(\w+)"></a>`(\w+)` \| (.+) \| (.+) \|$', flags=re.MULTILINE)
RAISED = re.compile(r'(?:(?<!UnknownName)Error|Finding|__init__)\(\s*"([a-z]\w*)",')


def page() -> str:
    return (ROOT / PAGE).read_text(encoding="utf-8")


def test_every_code_is_explained_once_under_its_own_anchor() -> None:
    rows = ROW.findall(page())
    sources = {path: path.read_text(encoding="utf-8") for path in (ROOT / "src" / "brittle").rglob("*.py")}
    files_by_code = {code: path.name for path, text in sources.items() for code in RAISED.findall(text)}
    assert len(rows) > 60
    assert len(files_by_code) > 60
    assert [code for code, count in Counter(code for code, *_ in rows).items() if count > 1] == []
    assert all(anchor == code for anchor, code, *_ in rows)
    missing = {code: name for code, name in files_by_code.items() if code not in {code for code, *_ in rows}}
    assert not missing, f"give each a row in {PAGE}: {missing}"


def test_the_checks_are_listed() -> None:
    for check in CHECKS:
        sentence = (check.run.__doc__ or "").strip().splitlines()[0]
        assert f"| {check.name} | {sentence} |" in page(), check.name
