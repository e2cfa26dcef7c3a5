"""Names and texts from anybody stay text: they come back exactly, and no terminal or page obeys them."""

from __future__ import annotations

import os
import re
import unicodedata
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.data_files import encode
from helpers.pages import Page, assert_inert, storable
from helpers.poisoned import poisoned_run
from helpers.tables import HOSTILE, make_table, with_model, with_scores

import brittle
from brittle.cli.commands import main
from brittle.data import array_points, open_points
from brittle.errors import DataError, StorageError
from brittle.scores import LogitMargin
from brittle.store.reading import read_table

NAMES = (
    b"two\nlines.png",
    b"quotes'\".png",
    b"x" * 251 + b".png",
    unicodedata.normalize("NFC", "caf\u00e9.png").encode(),
    unicodedata.normalize("NFD", "caf\u00e9.png").encode(),
    b"caf\xe9.png",
    b"caf\\xe9.png",
    b"\xed\xa0\x80.png",
    "\u202egnp.exe.png".encode(),
    b"\x1b[31mred\x1b[0m.png",
    b"=HYPERLINK(1).png",
    b" .png",
)


def as_bytes(text: str) -> bytes:
    """Return the name that a text of `brittle.data.files.path_text` stands for."""
    return re.sub(
        rb"\\(x[0-9a-f]{2}|\\)",
        lambda escape: b"\\" if escape[1] == b"\\" else bytes.fromhex(escape[1][1:].decode()),
        text.encode(),
    )


@pytest.fixture
def hostile_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> brittle.Table:
    """Score images of many names, write the run to `run`, and read it again."""
    monkeypatch.chdir(tmp_path)
    Path("images/ant").mkdir(parents=True)
    for level, name in enumerate(NAMES):
        content = encode(np.full((1, 2, 2), 10 * level, np.uint8))
        Path(os.fsdecode(b"images/ant/" + name)).write_bytes(content)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 3))
    classifier = brittle.Classifier(network, bounds=(0, 1))
    brittle.score(classifier, open_points("images"), [LogitMargin()], out="run")
    return read_table("run")


def test_names_come_back_exactly(hostile_run: brittle.Table) -> None:
    stored = {as_bytes(text) for text in hostile_run.points["point"].to_pylist()}
    assert stored == {b"ant/" + name for name in NAMES}
    paths = {as_bytes(text) for text in hostile_run.points["name"].to_pylist()}
    assert paths == {b"images/ant/" + name for name in NAMES}
    assert set(hostile_run.scores["point"].to_pylist()) == set(hostile_run.points["point"].to_pylist())
    assert len(hostile_run.frame(whole=True)) == len(NAMES)
    page = hostile_run.report("report.html").html
    assert_inert(Page(page))
    assert not {"\x1b", "\u202e"} & {*page}


def test_messages_are_one_readable_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An error that names a file, whatever the name."""
    for name in ("two\nlines", "\x1b[31m", "\u202e", "a\rb", "\x00"):
        assert str(StorageError("code", f"{name} is odd")).isprintable()
    (tmp_path / "\x1b[31m\n.npz").write_bytes(b"x")
    assert main(["score", "os:getcwd", str(tmp_path / "\x1b[31m\n.npz"), "--out", str(tmp_path / "run")]) == 3
    assert all(line.isprintable() for line in capsys.readouterr().err.splitlines())


def test_ids_that_cannot_be_stored_are_refused() -> None:
    with pytest.raises(DataError, match=r"id of row 1 of the data is '.udc80'") as caught:
        array_points(torch.zeros(2, 3), ids=["a", "\udc80"])
    assert caught.value.code == "ids"


@pytest.mark.usefixtures("figures_drawn_once")
def test_hostile_strings_in_every_field_are_shown_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every text of the run is one of the forty."""
    assert len(set(HOSTILE)) >= 40
    scores = ("moments", "softmax", "input_margin")
    poisoned = poisoned_run(make_table(points=len(HOSTILE), scores=scores, sigmas=(0.1,), budgets=(10,)))
    poisoned.save(tmp_path / "run")
    table = read_table(tmp_path / "run")
    assert table.record == poisoned.record
    assert table.points["name"].to_pylist() == [storable(text) for text in HOSTILE]
    page = table.report().html
    assert_inert(Page(page))
    place = str(tmp_path / "run")
    assert main(["report", place]) == 0
    assert main(["verify", place]) == 0
    assert main(["compare", place, place, "--out", str(tmp_path / "c.csv")]) == 0
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    for text in (printed.out, printed.err, (tmp_path / "c.csv").read_text(encoding="utf-8")):
        assert all(line.isprintable() for line in text.split("\n"))


@pytest.mark.usefixtures("nothing_drawn")
def test_no_command_prints_text_that_a_terminal_obeys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Texts of somebody else's run, and names of files, printed to a terminal."""
    table = make_table(points=150, scores=("logit_margin", "input_margin"))
    scores = [replace(score, label=f"{score.label}\x1b[31m\u202e") for score in table.record.scores]
    run_table = with_scores(with_model(table, state_sha256="0" * 64), scores)
    run_table.save(tmp_path / "run\x1b[2J")
    run, detector = str(tmp_path / "run\x1b[2J"), str(tmp_path / "d.json")
    main(["report", run, "--out", str(tmp_path / "r.html")])
    main(["compare", run, run])
    main(["verify", run])
    main(["detector", "fit", run, "--epsilon", "0.02", "--tpr", "0.5", "--out", detector])
    main(["doctor", "absent\x1b[2J.pt2", "absent\x1b[2J.npz"])
    main(["score", "absent.pt2", "absent.npz", "--out", "x", "--no-such\x1b[2J"])
    printed = capsys.readouterr()
    for line in f"{printed.out}\n{printed.err}".split("\n"):
        assert line.isprintable(), line
