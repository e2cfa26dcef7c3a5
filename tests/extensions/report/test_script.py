"""Script of the page: every module once, after those that it imports, and nothing that reads markup."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from brittle.extensions.report.render import MAIN, script

FOLDER = resources.files("brittle.extensions.report") / "page" / "js"
MODULES = {file.name: file.read_text(encoding="utf-8") for file in FOLDER.iterdir() if file.name.endswith(".js")}

FORBIDDEN = (
    "eval(", "Function(", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser", "fetch(",
    "XMLHttpRequest", "WebSocket", "EventSource", "sendBeacon", "import(", "setAttribute(\"on", "srcdoc", "https:",
    "javascript:", "new Worker", "postMessage", "createContextualFragment", "</script", "<!--",
)  # fmt: skip
"""Names that a page without a network and without markup in its texts does not use."""


def test_every_module_occurs_once_and_after_its_imports() -> None:
    text = script()
    order = re.findall(r'^modules\["(\w+\.js)"\] = ', text, re.MULTILINE)
    assert sorted(order) == sorted(MODULES)
    for name, module in MODULES.items():
        for imported in re.findall(r'from "\./(\w+\.js)";', module):
            assert order.index(imported) < order.index(name), (name, imported)
    assert order[-1] == MAIN
    assert re.findall(r"^(?:import|export)\b.*", text, re.MULTILINE) == []


@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_module_has_a_description_and_reads_no_markup(name: str) -> None:
    lines = MODULES[name].splitlines()
    assert lines[0] == "// @ts-check"
    assert re.fullmatch(r"/\*\* [A-Z].*\. \*/", lines[1])
    code = re.sub(r"(?s)/\*.*?\*/", "", MODULES[name])
    assert [word for word in FORBIDDEN if word in code] == []
    assert MODULES[name].count("http:") == MODULES[name].count('createElementNS("http://www.w3.org/2000/svg"')
