"""The files behind a number: what a study imports, and nothing else, decides whether it is measured again."""

from __future__ import annotations

from pathlib import Path

import pytest

from studies import sources
from studies.sources import ROOTS, files_behind
from studies.study import all_studies


def names_behind(module: str) -> set[str]:
    """Files by their places below the folders of the packages."""
    return {str(path.relative_to(folder.parent)) for path in files_behind(module) for folder in ROOTS.values()
            if path.is_relative_to(folder)}  # fmt: skip


@pytest.mark.parametrize("name", all_studies())
def test_what_measures_is_behind_a_number_and_what_tells_is_not(name: str) -> None:
    names = names_behind(f"studies.{name}.measures")
    assert {f"studies/{name}/measures.py", "studies/networks.py", "brittle/model/classifier.py"} <= names
    assert not names & {f"studies/{name}/{module}.py" for module in ("said", "page", "pictures", "summary", "study")}
    assert not any(path.startswith(("brittle/extensions/report/", "brittle/cli/")) for path in names)


def test_imports_are_followed_as_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Follow imports of modules, of names in them, within functions, by public names; not for types alone."""
    monkeypatch.setitem(sources.ROOTS, "studies", tmp_path)
    for path, text in {
        "__init__": "", "inner/__init__": "", "inner/named": "", "inner/late": "", "inner/typed": "",
        "inner/unread": "",
        "first": """
from typing import TYPE_CHECKING
import torch, brittle, studies.inner.named
if TYPE_CHECKING:
    from studies.inner.typed import x
def last():
    from studies.inner import late
    return brittle.orthant_probability
""",
    }.items():  # fmt: skip
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / f"{path}.py").write_text(text)
    sources.file_of.cache_clear()
    try:
        files = files_behind("studies.first")
    finally:
        sources.file_of.cache_clear()
    stems = {path.stem for path in files if path.is_relative_to(tmp_path)}
    assert stems == {"first", "__init__", "named", "late"}
    library = {path.parent.name for path in files if not path.is_relative_to(tmp_path)}
    assert "orthant" in library
    assert "doctor" not in library


def test_scores_of_extensions_are_behind_a_study() -> None:
    """They are imported by their public names, and lie elsewhere."""
    assert "brittle/extensions/mmse.py" in names_behind("studies.average_case.measures")
