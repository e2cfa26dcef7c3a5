"""The command `brittle show`: a screen, a list, a point, and refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.tables import HOSTILE, make_table

from brittle.analysis.overview import overview
from brittle.analysis.overview_text import format_overview
from brittle.analysis.point_card import format_point_card, point_card
from brittle.analysis.point_list import format_point_list, point_list
from brittle.cli.commands import main
from brittle.scores.catalogue import CATALOGUE

TABLE = make_table(points=30, scores=("monte_carlo", "logit_margin"), sigmas=(0.1, 0.25))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Save a run to the folder `run`."""
    monkeypatch.chdir(tmp_path)
    TABLE.save("run")


def show(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["show", "run", *arguments]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out


def test_a_screen_a_list_and_a_point(capsys: pytest.CaptureFixture[str]) -> None:
    margin, flips = TABLE["logit_margin"], TABLE["monte_carlo(draws=400, sigma=0.1)"]
    notes = "".join(f"\n\nnote: {note.code}: {note.sentence}" for note in TABLE.record.warnings) + "\n"
    assert TABLE.record.warnings
    assert show(capsys) == format_overview(overview(TABLE), "run") + notes
    assert show(capsys, "--limit", "0.5") == format_overview(overview(TABLE, 0.5), "run") + notes
    assert show(capsys, "--sigma", "0.1") == format_overview(overview(TABLE), "run") + notes
    assert show(capsys, "--top", "4", "--by", "logit_margin", "--class", "bird") == (
        format_point_list(point_list(TABLE, margin, of_class="bird"), TABLE, margin, 4) + "\n"
    )
    label = "monte_carlo(draws=400, sigma=0.25)"
    assert label in show(capsys, "--top", "3", "--by", "monte_carlo", "--sigma", "0.25").splitlines()[0]
    assert show(capsys, "--state", "breaks", "--right") == (
        format_point_list(point_list(TABLE, flips, state="breaks", correct="right"), TABLE, flips, 20) + "\n"
    )
    assert show(capsys, "3") == format_point_card(TABLE, TABLE.points["point"].to_pylist()[3]) + "\n"


def test_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    expected, ids = overview(TABLE), TABLE.points["point"].to_pylist()
    screen, top_list, card = (
        json.loads(show(capsys, *arguments, "--json")) for arguments in ((), ("--top", "4"), (ids[3],))
    )
    assert (screen["format"], screen["points"]) == (1, 30)
    assert screen["states"] == {state: expected.count(state) for state in ("holds", "undecided", "breaks")}
    assert [note["code"] for note in screen["notes"]] == [note.code for note in TABLE.record.warnings]
    assert [entry["class"] for entry in screen["classes"]] == expected.classes["class"].tolist()
    frame = point_list(TABLE).head(4)
    assert [entry["point"] for entry in top_list["points"]] == frame["point"].tolist()
    assert [entry["value"] for entry in top_list["points"]] == pytest.approx(frame["value"].tolist(), nan_ok=True)
    assert (card["point"]["point"], card["point"]["row"]) == (ids[3], 3)
    assert [entry["score"] for entry in card["scores"]] == point_card(TABLE, ids[3])["score"].tolist()
    kinds = (("list", ["list"]), ("verify", ["verify", "run"]), ("compare", ["compare", "run", "run"]))
    fields = {}
    for kind, command in kinds:
        assert main([*command, "--json"]) == 0
        fields[kind] = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in fields["list"]["scores"]] == [*CATALOGUE]
    assert fields["verify"]["faults"] == []
    assert {entry["difference"] for entry in fields["compare"]["scores"]} == {0.0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--right", "--wrong"), "--right and --wrong leave no point together"),
        (("--top", "0"), "--top takes a number of points, 1 or more; found 0"),
        (("3", "--top", "4"), "POINT (3) shows one point and takes no option of a list"),
        (("nobody",), "no point of the run has the id, row or name 'nobody'"),
        (("--by", "mommets"), "expected a score of this run, found mommets"),
        (("--limit", "2", "--state", "holds"), "limit must be a number between 0 and 1"),
        (("--limit", "nan"), "limit must be a number between 0 and 1"),
        (("--sigma", "0.3"), "no score of the run has sigma 0.3; it has 0.1, 0.25"),
        (("--class", "unicorn"), "no point of the run is in class 'unicorn'"),
    ],
)
def test_refusals(arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "run", *arguments]) != 0
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""


def test_nothing_that_a_terminal_obeys_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    make_table(points=40, scores=("monte_carlo",), class_names=HOSTILE[30:40]).save("hostile")
    for arguments in ([], ["--top", "40"], ["3"]):
        assert main(["show", "hostile", *arguments]) == 0
        text = capsys.readouterr().out
        assert all(character.isprintable() for character in text.replace("\n", ""))


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    """`brittle show run --top 30 | head -1`, over an output longer than a pipe holds."""
    make_table(points=3000, scores=("monte_carlo",), sigmas=(0.1,), budgets=(10,), images=False).save("long")
    command = [sys.executable, "-m", "brittle", "show", "long", "--top", "3000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"3,000 of 3,000 points")
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141
