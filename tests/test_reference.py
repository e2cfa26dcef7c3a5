"""Every public name, score, option and error code has its place in the reference, by its name in the code."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from helpers.documents import ROOT, read

from brittle import _PACKAGES as PACKAGES
from brittle import noise
from brittle.cli.commands import app
from brittle.decisions.kinds import DECISIONS
from brittle.registry import PARTS
from brittle.scores.catalogue import CATALOGUE

GENERATED = re.compile(r"^\.\. (?:auto\w+|py:data):: ([\w.]+)$", flags=re.MULTILINE)
"""Directives of the site that read a docstring."""

REFERENCE = [path.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob("docs/reference/*.md"))]


def generated(*pages: str) -> list[str]:
    return [name for page in pages for name in GENERATED.findall(read(page))]


PUBLIC = {
    "name": "brittle", "analysis": "brittle.analysis", "score": "brittle.scores", "decision": "brittle.decisions",
    "family": "brittle.noise", "points": "brittle.data",
}  # fmt: skip
"""Modules that export the parts of extensions, by kind."""


def public_names() -> Iterator[str]:
    """Return every public name with its module, of the core and of extensions."""
    for module in ("brittle", *(f"brittle.{package}" for package in PACKAGES)):
        names = {*importlib.import_module(module).__all__} - {"__version__"}
        yield from (f"{module}.{name}" for name in names)
    for part, place in PARTS.items():
        module, attribute = PUBLIC.get(part.partition(".")[0]), place.partition(":")[2]
        if module is not None and attribute:
            yield f"{module}.{attribute}"


def test_every_public_name_has_its_place() -> None:
    assert {*public_names()} - {*generated(*REFERENCE)} == set()


@pytest.mark.parametrize("name", sorted(public_names()))
def test_a_public_name_is_imported(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    assert hasattr(importlib.import_module(module), attribute)


def test_nothing_stands_there_twice_or_is_gone() -> None:
    names = generated(*REFERENCE)
    assert len(names) == len(set(names))
    for name in names:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute) or find_spec(name), name


def test_scores_noise_and_decisions_have_a_section_each() -> None:
    for page, module, names in (
        ("scores", "brittle.scores", {kind.__name__: name for name, kind in CATALOGUE.items()}),
        ("noise", "brittle.noise", {name: name for name in noise.__all__ if name[0].isupper()}),
        ("decisions", "brittle.decisions", {kind.__name__: kind.__name__ for kind in DECISIONS.values()}),
    ):
        text = read(f"docs/reference/{page}.md")
        for name, title in names.items():
            section = rf"^##+ {title}\n\n```\{{eval-rst\}}\n\.\. autoclass:: {module}\.{name}\n"
            assert name == "Stream" or re.search(section, text, flags=re.MULTILINE), name


def test_commands_and_options_are_taken_from_the_code() -> None:
    """Check that the page names the program, with every option."""
    assert "```{cyclopts} brittle.cli.commands:app\n" in read("docs/reference/cli.md")
    written = app.generate_docs(output_format="rst")
    for command in [app, *(app[name] for name in app if not name.startswith("-"))]:
        if command.default_command is not None:
            for argument in command.assemble_argument_collection(parse_docstring=True):
                assert argument.name in written or not argument.show, argument.name


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """Build the site, with tutorials executed and links checked."""
    pytest.importorskip("myst_nb")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", str(ROOT / "docs"), str(tmp_path)]
    assert subprocess.run(command).returncode == 0
    assert all((tmp_path / f"{page}.html").is_file() for page in ("index", "tutorials/images", "reference/scores"))
