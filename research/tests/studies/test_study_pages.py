"""The pages of the studies are what the builder writes from Parquet files, and hold no number that somebody typed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from studies.pages import DOCS, RESULTS, TEMPLATE, files_of, index_of, page_of
from studies.study import HERE, all_studies
from studies.tables import read_tables

KEPT = sorted(path.name for path in RESULTS.glob("*/"))
"""Studies whose results are kept."""

NAMES = re.compile(r"\bL[012]\b|CIFAR-100?(?:-C)?\b|ResNet-18|WideResNet-34-10|`[^`]*`")
"""Names with a number in them."""


def typed(template: str) -> list[str]:
    """Return the words of a template with a digit that is part of no name, inside expressions, too."""
    return [
        word
        for word in NAMES.sub("", re.sub(r"\{#.*?#\}", "", template, flags=re.DOTALL)).split()
        if re.search(r"\d", word)
    ]


def constants(code: str) -> Iterator[str]:
    """Return the texts in what a finding says was found, and why: the third and the fifth argument of `Finding`."""
    for call in ast.walk(ast.parse(code)):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Finding":
            for argument in (call.args[2], *call.args[4:]):
                formats = {
                    id(part)
                    for field in ast.walk(argument)
                    if isinstance(field, ast.FormattedValue)
                    for part in ast.walk(field)
                }
                for part in ast.walk(argument):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str) and id(part) not in formats:
                        yield part.value


@pytest.mark.parametrize("name", KEPT)
def test_a_page_is_what_its_results_say(name: str) -> None:
    written = (DOCS / "studies" / f"{name}.md").read_text(encoding="utf-8")
    assert written == page_of(all_studies()[name], read_tables(RESULTS / name))
    for linked in re.findall(r"\]\((\.\./images/[^)]+|[^)]+\.csv)\)", written):
        assert (DOCS / "studies" / linked).is_file()
    for path, text in files_of(all_studies()[name], read_tables(RESULTS / name)).items():
        assert (DOCS / "studies" / path).read_text(encoding="utf-8") == text


@pytest.mark.parametrize("name", KEPT)
def test_a_page_is_short_and_no_cell_is_a_list(name: str) -> None:
    written = (DOCS / "studies" / f"{name}.md").read_text(encoding="utf-8")
    assert len(written.split()) <= 1500
    cells = [cell for line in written.splitlines() if line.startswith("|") for cell in line.split("|")]
    cells_without_sources = [
        re.sub(r"\([^()]*(?:figure|table|section|PRBench|theorem|proposition|UAI)[^()]*\)", "", cell) for cell in cells
    ]
    assert [cell for cell in cells_without_sources if len(re.findall(r"\d[\d.,]*", NAMES.sub("", cell))) > 3] == []


def test_the_list_of_studies_says_what_each_found() -> None:
    written = (DOCS / "studies" / "README.md").read_text(encoding="utf-8")
    assert written == index_of(RESULTS)
    assert all(f"]({name}.md)" in written for name in KEPT)
    assert len(re.findall(r"^\d+\. ", written, flags=re.MULTILINE)) == 12
    assert all((DOCS / "studies" / path).is_file() for path in re.findall(r"\]\((\.\./images/[^)]+)\)", written))


@pytest.mark.parametrize("name", sorted(all_studies()))
def test_no_number_is_typed(name: str) -> None:
    assert typed((HERE / TEMPLATE).read_text(encoding="utf-8")) == []
    for path in (HERE / name).glob("*.py"):
        assert [
            text for text in constants(path.read_text(encoding="utf-8")) if re.search(r"\d", NAMES.sub("", text))
        ] == []
