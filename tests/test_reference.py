"""Every public name, score, option and error code has its place in the reference, by the names in the code."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.documents import ROOT, read

import brittle
from brittle import decisions, noise
from brittle.cli.commands import app
from brittle.scores import CATALOGUE

GENERATED = re.compile(r"^\.\. (?:auto\w+|py:data):: ([\w.]+)$", flags=re.MULTILINE)
"""What the site takes from a docstring."""

REFERENCE = [path.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob("docs/reference/*.md"))]


def generated(*pages: str) -> list[str]:
    return [name for page in pages for name in GENERATED.findall(read(page))]


@pytest.mark.parametrize(
    "room", ["", "analysis", "data", "decisions", "detector", "functional", "noise", "report", "scores"]
)
def test_every_public_name_has_its_place(room: str) -> None:
    module = importlib.import_module(f"brittle.{room}".rstrip("."))
    known = generated(*REFERENCE)
    own = {"__version__"} if room == "" else brittle.__all__  # those of the package itself stand there once
    assert [name for name in module.__all__ if f"{module.__name__}.{name}" not in known and name not in own] == []


def test_nothing_stands_there_twice_or_is_gone() -> None:
    known = generated(*REFERENCE)
    assert len(known) == len(set(known))
    for name in known:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


def test_scores_noise_and_decisions_have_a_section_each() -> None:
    for page, module, names in (
        ("scores", "brittle.scores", {kind.__name__: name for name, kind in CATALOGUE.items()}),
        ("noise", "brittle.noise", {name: name for name in noise.__all__ if name[0].isupper() and name != "FAMILIES"}),
        ("decisions", "brittle.decisions", {name: name for name in decisions.__all__ if name[0].isupper()}),
    ):
        text = read(f"docs/reference/{page}.md")
        for name, title in names.items():
            section = rf"^##+ {title}\n\n```\{{eval-rst\}}\n\.\. autoclass:: {module}\.{name}\n"
            assert name == "Stream" or re.search(section, text, flags=re.MULTILINE), name


def test_commands_and_options_are_taken_from_the_code() -> None:
    """The page names the program, and what is written of a program has every option that it takes."""
    assert "```{cyclopts} brittle.cli.commands:app\n" in read("docs/reference/cli.md")
    written = app.generate_docs(output_format="rst")
    for command in [app, *(app[name] for name in app if not name.startswith("-"))]:
        if command.default_command is not None:
            for argument in command.assemble_argument_collection(parse_docstring=True):
                assert argument.name in written or not argument.show, argument.name


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """Tutorials are executed, and every link within leads somewhere."""
    pytest.importorskip("myst_nb")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", str(ROOT / "docs"), str(tmp_path)]
    assert subprocess.run(command).returncode == 0
    assert all((tmp_path / f"{page}.html").is_file() for page in ("index", "tutorials/images", "reference/scores"))
