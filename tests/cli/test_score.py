"""The command `brittle score`: from model and data to table and report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.commands import WRITING, score
from helpers.problems import small_network

import brittle
from brittle.analysis import overview
from brittle.analysis.overview_text import how_brittle
from brittle.cli.commands import main
from brittle.scores.catalogue import CATALOGUE

pytestmark = pytest.mark.usefixtures("nothing_drawn")  # words are what counts here


@pytest.mark.usefixtures("short_search")
def test_score_then_report(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fast = ("--draws", "20", "--effort", "fast", "--set", "mmse.draws=6")
    assert score("--scores", *CATALOGUE, "--sigma", "0.1", "0.2", *fast) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{how_brittle(overview(brittle.read_table('run')))}\n"
    assert "8 points" in printed.err
    assert main(["report", "run"]) == 0
    printed = capsys.readouterr()
    assert printed.out.rstrip().endswith("run/report.html")
    table = brittle.read_table("run")
    assert {row["score"] for row in table.scores.to_pylist()} == set(CATALOGUE)
    assert (table.record.command or ())[0] == "brittle"


def test_the_defaults(place: Path) -> None:
    assert score("--quiet", "--bounds", "0", "2") == 0
    labels = [entry.label for entry in brittle.read_table("run").record.scores]
    assert labels == ["shrinkage(draws=1000, limit=0.9, sigma=0.2)", "softmax", "logit_margin"]


def test_some_points_by_their_ids(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "ids.txt").write_text("6\n1\n4\n")
    assert score("--scores", "monte_carlo", "--sigma", "0.1", "--draws", "20", "--ids", "ids.txt") == 0
    assert "3 points (chosen by their ids out of 8), accuracy" in capsys.readouterr().err
    table = brittle.read_table("run")
    assert table.points["row"].to_pylist() == [1, 4, 6]
    assert (table.record.data.points, table.record.data.chosen_from) == (3, 8)
    assert main(["show", "run"]) == 0
    assert capsys.readouterr().out.startswith("The 3 points here were chosen by their ids out of 8, ")
    assert main(["show", "run", "--top", "2"]) == 0
    assert capsys.readouterr().out.startswith("3 of 3 points (chosen by their ids out of 8), the least safe by ")
    assert main(["report", "run"]) == 0
    page = Path("run/report.html").read_text()
    assert "The 3 points here were chosen by their ids out of 8" in page
    assert "3 points, chosen by their ids out of 8." in page


def test_some_points_by_chance(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score("--scores", "monte_carlo", "--sigma", "0.1", "--draws", "20", "--sample", "3") == 0
    assert "3 points (drawn at random out of 8), accuracy" in capsys.readouterr().err
    data = brittle.read_table("run").record.data
    assert (data.points, data.chosen_from, data.sample_seed) == (3, 8, 0)
    assert main(["show", "run"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("The 3 points here were drawn at random out of 8. ")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--ids", "net.py"], 3, "ids are not in data.npz: "),
        (["--ids", "weights.safetensors"], 3, "weights.safetensors cannot be read"),
        (["--ids", "nothing.txt"], 3, "nothing.txt does not exist"),
        (["--ids", "net.py", "--points", "3"], 3, "give one of them"),
        (["--scores", "lucky_guess"], 2, "no score is called 'lucky_guess'"),
        (["--draws", "50", "--scores", "softmax"], 2, "--draws changes none of these scores; it is for monte_carlo"),
        (["--no-such-option"], 2, "no-such-option"),
        (["--limit", "0.8", "--scores", "softmax"], 2, "--limit changes none of these scores; it is for monte_carlo"),
        (["--outputs", "scores"], 2, "scores"),
        (["--sigma", "0"], 3, "sigma must be a positive finite number in pixel units; found 0"),
        (["--draws", "1"], 3, "from 2 to 10,000,000; found 1"),
        (["--confidence", "1"], 3, "the confidence must lie between 0 and 1"),
        (["--points", "0"], 3, "found 0"),
        (["--bounds", "1", "0"], 3, "found 1, 0"),
        (["--bounds", "0", "0.5"], 3, "outside [0, 0.5]"),
        (["--expected-accuracy", "0.999"], 3, "expected 0.999"),
        (["--weights", "data.npz"], 6, "data.npz"),
    ],
)
def test_refusals(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, sentence: str
) -> None:
    assert score(*arguments) == code
    message = capsys.readouterr().err
    assert sentence in message
    assert message.startswith("brittle: ")
    assert "Traceback" not in message
    assert not list(Path("run").glob("*.parquet"))


def test_points_without_a_number_set_the_exit_code(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score(model="./net.py:broken") == 4
    message = capsys.readouterr().err
    assert "8 of 8 points got no number; some of them:\n" in message
    assert "point 0, shrinkage: nonfinite_logits: " in message
    assert " of 60 noisy copies gave NaN or infinite logits" in message


@pytest.mark.parametrize(("command", "path", "called"), WRITING)
def test_a_foreign_file_is_kept(
    run: Path, capsys: pytest.CaptureFixture[str], command: list[str], path: str, called: str
) -> None:
    for content in ("", "<html><body>brittle</body></html>", "\0\xff" * 9000):
        Path(path).write_text(content)
        assert main(command) == 7
        printed = capsys.readouterr()
        assert printed.err.startswith(f"brittle: exists: {path} is there already and is no {called} of brittle; ")
        assert (printed.out, Path(path).read_text()) == ("", content)


def test_an_occupied_folder_is_refused_at_once(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score("--quiet") == 0
    capsys.readouterr()
    for command in (["score", "./net.py:make", "data.npz", "--out", "run"], ["demo", "--out", "."]):
        assert main(command) == 7
        message = capsys.readouterr().err
        assert message.startswith("brittle: exists: run holds a run already; ")
        assert message.count("\n") == 1


def test_a_zero_is_not_taken_for_the_default(place: Path) -> None:
    assert score("--scores", "moments", "taylor", "--sigma", "0.1", "--set", "taylor.classes=0", "--quiet") != 0
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("words", "parameters"),
    [
        (("--limit", "0.8"), {"draws": 200, "limit": 0.8}),
        (("--precision", "0.3"), {"draws": 200, "precision": 0.3}),
        (("--limit", "none"), {"draws": 200}),
    ],
)
@pytest.mark.usefixtures("place")
def test_how_long_copies_are_drawn(words: tuple[str, ...], parameters: dict[str, float]) -> None:
    assert score("--sigma", "0.5", "--draws", "200", *words) == 0
    table = brittle.read_table("run")
    assert table["shrinkage"].parameters == {"sigma": 0.5, **parameters}


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("", {}),
        ("--sigma 0.05 0.1", {"sigma": [0.05, 0.1]}),
        (
            "--scores shrinkage entropy --noise rotation:15",
            {"scores": ["shrinkage", "entropy"], "noise": "rotation:15"},
        ),
        ("--scores taylor --noise per-feature --sigma 0.1", {"scores": "taylor", "noise": "per-feature", "sigma": 0.1}),
    ],
    ids=str,
)
def test_names_of_scores_and_noise_are_the_same_in_python(place: Path, line: str, options: dict[str, Any]) -> None:
    assert score(*line.split(), "--quiet", "--skip-doctor") == 0
    data = np.load("data.npz")
    bounds = None if "per-feature" in line else (0.0, 1.0)
    classifier = brittle.Classifier(small_network(), bounds)
    table = brittle.score(classifier, (data["x"], data["y"]), **options, skip_doctor=True)
    pd.testing.assert_frame_equal(table.frame(), brittle.read_table("run").frame())
