"""Mistakes get one sentence that says what was seen, where, and what to do, and destroy nothing."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import chdir
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from helpers.documents import read
from helpers.mistake_files import images, interrupt, lay_out, python_names

import brittle
from brittle.cli.commands import main
from brittle.model.loading.load import EXPORT


class Mistake(NamedTuple):
    """A row of the page: a mistake and its error.

    Attributes:
        text: the mistake, in words.
        typed: the command, or a line of Python.
        code: code of the error or note; `usage` where the parser itself refuses, empty where nothing is wrong.
        facts: texts that the sentence names.
        exit_code: exit code of the command; empty for Python.
    """

    text: str
    typed: str
    code: str
    facts: list[str]
    exit_code: str


ROW = re.compile(r"^\| (.+) \| `(.+)` \| (\w*) \| (`.+`) \|(?: (\d) \|)?$", flags=re.MULTILINE)
MISTAKES = [
    Mistake(text, typed, code, re.findall("`([^`]+)`", facts), exit_code)
    for text, typed, code, facts, exit_code in ROW.findall(read("docs/reference/mistakes.md"))
]
COMMANDS = [mistake for mistake in MISTAKES if mistake.exit_code]
LINES = [mistake for mistake in MISTAKES if not mistake.exit_code]


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with all named files, and with runs."""
    place = tmp_path_factory.mktemp("mistakes")
    lay_out(place)
    with chdir(place):
        network, x = python_names()["network"], images()[0]
        torch.export.save(torch.export.export(network, (x[:1],)), "fixed.pt2")
        assert main(["score", "./net.py:make", "data.npz", "--out", "old-run", "--quiet"]) == 0
        interrupt(place)
    return place


@pytest.fixture
def place(laid_out: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Enter the folder, and check that its files are the same at the end."""
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])  # as for the command `brittle`
    before = digests(laid_out)
    with chdir(laid_out):
        yield laid_out
    for leftover in ("run", "kept/shards"):
        shutil.rmtree(laid_out / leftover, ignore_errors=True)
    after = digests(laid_out)
    assert {name: after.get(name) for name in before} == before, "files of the user are as they were"
    for name in after.keys() - before.keys():
        (laid_out / name).unlink()


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    return python_names()


def digests(place: Path) -> dict[str, str]:
    files = (path for path in place.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(place)): sha256(path.read_bytes()).hexdigest() for path in files}


def says(mistake: Mistake, text: str) -> bool:
    """Return whether a line of the text has the code of the mistake and names its facts."""
    code = "" if mistake.code in ("", "usage") else f"{mistake.code}: "
    return any(code in line and all(fact in line for fact in mistake.facts) for line in text.splitlines())


@pytest.mark.parametrize("mistake", COMMANDS, ids=lambda mistake: mistake.text)
def test_a_mistake_on_the_command_line_gets_its_sentence(
    place: Path, capsys: pytest.CaptureFixture[str], mistake: Mistake
) -> None:
    assert main(shlex.split(mistake.typed)[1:]) == int(mistake.exit_code)
    stderr = capsys.readouterr().err
    assert says(mistake, stderr), stderr
    assert "Traceback" not in stderr
    if mistake.exit_code not in "04":
        assert not Path("run").exists(), "what is refused leaves nothing behind"
        assert len([line for line in stderr.splitlines() if "a tenth of the value range" not in line]) == 1


@pytest.mark.parametrize("mistake", LINES, ids=lambda mistake: mistake.text)
def test_a_mistake_in_python_gets_its_sentence(place: Path, names: dict[str, Any], mistake: Mistake) -> None:
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        try:
            eval(mistake.typed, dict(names))
            message = ""
        except brittle.errors.BrittleError as error:
            message = str(error)
    text = "\n".join([message, *(str(note.message) for note in noted if note.category is brittle.BrittleWarning)])
    assert says(mistake, text), text
    options = set(re.findall(r"--([a-z][a-z-]*)", message))
    assert all(f"{option.replace('-', '_')}=" in message for option in options), "the interface that was used"


def test_every_row_of_the_page_is_tested() -> None:
    rows = [line for line in read("docs/reference/mistakes.md").splitlines() if line.startswith("| ")]
    assert len(rows) - 4 == len(MISTAKES) >= 45


def test_the_advice_for_an_archive_of_one_batch_size_works(place: Path) -> None:
    advice = EXPORT.format(path="free.pt2")
    namespace = {"torch": torch, "model": python_names()["network"], "inputs": images()[0]}
    eval(advice, namespace)
    assert main(["score", "free.pt2", "data.npz", "--out", "run", "--scores", "logit_margin", "--quiet"]) == 0


def test_notes_come_before_the_scoring_and_once(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "./net.py:half", "shifted.npz", "--out", "run"]) == 0
    stderr = capsys.readouterr().err
    precision, scoring, last = (stderr.index(word) for word in ("low_precision", "scoring: 40", "accuracy_suspicious"))
    assert precision < scoring < last
    assert all(stderr.count(code) == 1 for code in ("low_precision", "accuracy_suspicious"))


def test_notes_are_warnings_at_the_line_that_called(names: dict[str, Any]) -> None:
    began = []
    classifier = brittle.Classifier(names["make"]().half(), bounds=(0, 1))
    with pytest.warns(brittle.BrittleWarning) as noted:
        brittle.score(classifier, images(), names["scores"], progress=lambda *at: began.append(len(noted)))
    assert [str(note.message).partition(":")[0] for note in noted] == ["low_precision"]
    assert {note.filename for note in noted} == {__file__}
    assert set(began) == {1}, "it was told before the first batch"
