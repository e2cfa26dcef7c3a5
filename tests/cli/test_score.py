"""The command `brittle score`: from model and data to table and report."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.commands import WRITING, score

import brittle
from brittle.analysis import decisions
from brittle.cli import main
from brittle.scores import CATALOGUE

pytestmark = pytest.mark.usefixtures("nothing_drawn")  # words are what counts here


def test_score_then_report(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score("--scores", *CATALOGUE, "--sigma", "0.1", "0.2", "--draws", "20", "--set", "mmse.draws=6") == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "8 points" in said.err
    assert main(["report", "run"]) == 0
    said = capsys.readouterr()
    assert said.out.rstrip().endswith("run/report.html")
    table = brittle.read_table("run")
    assert {row["score"] for row in table.scores.to_pylist()} == set(CATALOGUE)
    assert (table.record.command or ())[0] == "brittle"


def test_the_defaults(place: Path) -> None:
    assert score("--quiet", "--bounds", "0", "2") == 0
    labels = [entry.label for entry in brittle.read_table("run").record.scores]
    assert labels == ["shrinkage(adaptive=True, draws=200, sigma=0.2)", "softmax", "logit_margin"]


def test_budgets_are_compared_when_monte_carlo_is_among_the_scores(place: Path) -> None:
    assert score("--scores", "monte_carlo", "mmse_mvs", "--sigma", "0.1", "--draws", "60") == 0
    entries = brittle.read_table("run").record.scores
    budgets = [(entry.score, entry.parameters["draws"]) for entry in entries]
    assert budgets == [
        *(("monte_carlo", draws) for draws in (6, 10, 20, 50, 60)),
        *(("mmse_mvs", draws) for draws in (6, 10, 20)),
    ]
    assert set(brittle.read_table("run").points.column("passes").to_pylist()) == {1 + 60 + 20 * (1 + 4)}


def test_a_run_that_was_finished_says_so(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score("--scores", "softmax") == 0
    assert "was finished before" not in capsys.readouterr().err
    assert score("--scores", "softmax", "--resume") == 0
    assert "brittle: the run in run was finished before; nothing was computed\n" in capsys.readouterr().err


def test_some_points_by_their_ids(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "ids.txt").write_text("6\n1\n4\n")
    assert score("--scores", "monte_carlo", "--sigma", "0.1", "--draws", "20", "--ids", "ids.txt") == 0
    assert "3 points (chosen by their ids out of 8), accuracy" in capsys.readouterr().err
    table = brittle.read_table("run")
    assert table.points["row"].to_pylist() == [1, 4, 6]
    assert (table.record.data.points, table.record.data.chosen_from) == (3, 8)
    assert main(["show", "run"]) == 0
    assert capsys.readouterr().out.startswith("The 3 points of this run were chosen by their ids out of 8, ")
    assert main(["show", "run", "--top", "2"]) == 0
    assert capsys.readouterr().out.startswith("3 of 3 points (chosen by their ids out of 8), the least safe by ")
    assert main(["report", "run"]) == 0
    page = Path("run/report.html").read_text()
    assert "The 3 points of this run were chosen by their ids out of 8" in page
    assert "3 points, chosen by their ids out of 8, of which 3 got a robustness." in page


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--ids", "net.py"], 3, "ids are not in data.npz: "),
        (["--ids", "weights.safetensors"], 3, "weights.safetensors cannot be read"),
        (["--ids", "nothing.txt"], 3, "nothing.txt does not exist"),
        (["--ids", "nothing.txt", "--points", "3"], 2, "--points takes the first points and --ids those that"),
        (["--scores", "lucky_guess"], 2, "no score is called 'lucky_guess'; there are monte_carlo"),
        (["--noise", "pink"], 2, "no noise family is called 'pink'"),
        (["--draws", "50", "--scores", "softmax"], 2, "--draws changes none of these scores; it is for monte_carlo"),
        (["--no-such-option"], 2, "no-such-option"),
        (["--batch-size", "many"], 2, "a whole number or auto"),
        (["--outputs", "scores"], 2, "scores"),
        (["--sigma", "0"], 3, "sigma must be a positive finite number in pixel units; found 0"),
        (["--sigma", "nan"], 3, "sigma must be a positive finite number in pixel units; found nan"),
        (["--draws", "1"], 3, "draws must be a whole number between 2 and 10000000"),
        (["--draws", "1000000000000"], 3, "draws must be a whole number between 2 and 10000000"),
        (["--confidence", "1"], 3, "the confidence must lie between 0 and 1"),
        (["--points", "0"], 3, "found 0"),
        (["--bounds", "1", "0"], 3, "found 1, 0"),
        (["--bounds", "0", "0.5"], 3, "outside [0, 0.5]"),
        (["--expected-accuracy", "0.999"], 3, "expected 0.999"),
        (["--weights", "data.npz"], 3, "safetensors"),
    ],
)
def test_refusals(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, sentence: str
) -> None:
    assert score(*arguments) == code
    said = capsys.readouterr().err
    assert sentence in said
    assert said.startswith("brittle: ")
    assert "Traceback" not in said
    assert not list(Path("run").glob("*.parquet"))


def test_points_without_a_number_are_told_by_the_exit_code(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score(model="./net.py:broken") == 4
    said = capsys.readouterr().err
    assert "8 of 8 points got no number; some of them:\n" in said
    assert "point 0, shrinkage: nonfinite_logits: " in said
    assert "60 of 60 noisy copies gave NaN or infinite logits" in said
    assert score("--allow-row-errors", model="./net.py:broken", out="other") == 0


def test_what_is_no_model(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score(model="./net.py:nothing") == 3
    assert "user_code" in capsys.readouterr().err


@pytest.mark.parametrize("found", ["", "<html><body>brittle</body></html>", "score,title\n", "\0\xff" * 9000])
@pytest.mark.parametrize(("command", "path", "called"), WRITING)
def test_another_file_is_kept(
    run: Path, capsys: pytest.CaptureFixture[str], command: list[str], path: str, called: str, found: str
) -> None:
    Path(path).write_text(found)
    assert main(command) == 7
    said = capsys.readouterr()
    end = f"is there already and is no {called} of brittle; choose another file, or remove it\n"
    assert said.err == f"brittle: exists: {path} {end}"
    assert said.out == ""
    assert Path(path).read_text() == found


def test_an_occupied_folder_is_refused_before_anything_is_said(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score("--quiet") == 0
    capsys.readouterr()
    for command in (["score", "./net.py:make", "data.npz", "--out", "run"], ["demo", "--out", "."]):
        assert main(command) == 7
        said = capsys.readouterr().err
        assert said.startswith("brittle: exists: run holds a run already; ")
        assert said.count("\n") == 1


@pytest.mark.parametrize("setting", ["moments.draws", "mmse.draws", "taylor.classes", "change_bound.columns"])
def test_a_zero_is_chosen_and_not_the_default(place: Path, setting: str, capsys: pytest.CaptureFixture[str]) -> None:
    scores = ("moments", "mmse", "taylor", "softmax", "change_bound", "laplacian")
    assert score("--scores", *scores, "--sigma", "0.1", "--set", f"{setting}=0", "--quiet") != 0
    assert "0" in capsys.readouterr().err
    assert not Path("run").exists()


def test_until_decided(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score("--sigma", "0.5", "--until", "decided", "--limit", "0.9", "--most-draws", "200") == 0
    said = capsys.readouterr()
    assert "does it hold?" in said.out
    table = brittle.read_table("run")
    assert table["monte_carlo"].parameters == {"draws": 200, "limit": 0.9, "sigma": 0.5}
    counts = decisions(table).iloc[0]
    assert f"{counts['holds']}" in said.out.splitlines()[1].split()
    assert main(["report", "run"]) == 0
    assert "does it hold?" in capsys.readouterr().out


def test_more_draws_by_a_second_run(place: Path) -> None:
    """Of some points, joined with the first run."""
    rule = ("--sigma", "0.5", "--until", "decided", "--limit", "0.9", "--quiet")
    assert score(*rule, "--most-draws", "40") == 0
    Path("ids.txt").write_text("1\n3\n")
    Path("run").rename("first")
    assert score(*rule, "--most-draws", "200", "--ids", "ids.txt") == 0
    assert main(["join", "joined", "first", "run"]) == 0
    labels = [entry.label for entry in brittle.read_table("joined").record.scores]
    assert "monte_carlo(draws=200, limit=0.9, sigma=0.5)" in labels
    assert main(["verify", "joined"]) == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--most-draws", "100"], "--most-draws is for --until decided and --precision"),
        (["--precision", "0.1", "--most-draws", "0"], "draws must be"),
        (["--limit", "0.9"], "a limit draws for each point only together with --until decided"),
        (["--until", "decided"], "until decided needs a limit, such as 0.9"),
        (["--until", "decided", "--limit", "0.9", "--scores", "softmax"], "add one, such as moments"),
    ],
)
def test_rules_that_say_nothing(options: list[str], said: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score(*options) in (2, 3)
    assert said in capsys.readouterr().err
