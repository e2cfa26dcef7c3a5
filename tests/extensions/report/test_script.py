"""The script of the page: every module in it once, after those that it imports, and nothing that reads markup."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from brittle.extensions.report.render import MAIN, script

FOLDER = resources.files("brittle.extensions.report") / "page" / "js"
MODULES = {one.name: one.read_text(encoding="utf-8") for one in FOLDER.iterdir() if one.name.endswith(".js")}

FORBIDDEN = (
    "eval(", "Function(", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser", "fetch(",
    "XMLHttpRequest", "WebSocket", "EventSource", "sendBeacon", "import(", "setAttribute(\"on", "srcdoc", "https:",
    "javascript:", "new Worker", "postMessage", "createContextualFragment", "</script", "<!--",
)  # fmt: skip
"""What a page without a network and without markup in its texts has no use for."""


def test_every_module_is_there_once_and_after_what_it_imports() -> None:
    text = script()
    begun = re.findall(r'^modules\["(\w+\.js)"\] = ', text, re.MULTILINE)
    assert sorted(begun) == sorted(MODULES)
    for name, module in MODULES.items():
        for other in re.findall(r'from "\./(\w+\.js)";', module):
            assert begun.index(other) < begun.index(name), (name, other)
    assert begun[-1] == MAIN
    assert re.findall(r"^(?:import|export)\b.*", text, re.MULTILINE) == []


@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_module_says_what_it_is_for_and_reads_no_markup(name: str) -> None:
    lines = MODULES[name].splitlines()
    assert lines[0] == "// @ts-check"
    assert re.fullmatch(r"/\*\* [A-Z].*\. \*/", lines[1])
    code = re.sub(r"(?s)/\*.*?\*/", "", MODULES[name])
    assert [word for word in FORBIDDEN if word in code] == []
    assert MODULES[name].count("http:") == MODULES[name].count('createElementNS("http://www.w3.org/2000/svg"')
