"""The command line: exit codes, one sentence per failure, results on stdout and talk on stderr."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from cyclopts import App, Argument
from helpers.problems import inputs, small_network
from safetensors.torch import save_file

import brittle
from brittle.cli import app, main
from brittle.scores import CATALOGUE

FACTORY = """
import sys
sys.path.insert(0, {tests!r})
from helpers.problems import Wrapped, nan_under_noise, small_network
def make():
    return small_network()
def broken():
    return Wrapped(nan_under_noise)
def nothing():
    return 3
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `net.py`, `data.npz` and the weights, as the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(FACTORY.format(tests=str(Path(__file__).parents[1])))
    np.savez(tmp_path / "data.npz", x=inputs(8).numpy(), y=np.arange(8) % 4)
    save_file(small_network(seed=5).state_dict(), tmp_path / "weights.safetensors")
    return tmp_path


def score(*more: str, model: str = "./net.py:make", data: str = "data.npz", out: str = "run") -> int:
    return main(["score", model, data, "--out", out, *more])


def test_score_then_report(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score("--scores", *CATALOGUE, "--sigma", "0.1", "0.2", "--draws", "20", "--gradient-draws", "6") == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "8 points" in said.err
    assert main(["report", "run"]) == 0
    said = capsys.readouterr()
    assert "monte_carlo" in said.out or "Monte Carlo" in said.out
    assert said.out.rstrip().endswith("run/report.html")
    table = brittle.read_table("run")
    assert {row["score"] for row in table.scores.to_pylist()} == set(CATALOGUE)
    assert table.provenance["command"][0] == "brittle"


def test_the_defaults(place: Path) -> None:
    assert score("--quiet", "--bounds", "0", "2") == 0
    labels = [entry["label"] for entry in brittle.read_table("run").provenance["scores"]]
    assert labels == ["moments(draws=100, sigma=0.2)", "softmax", "logit_margin"]


def test_budgets_are_compared_when_monte_carlo_is_among_the_scores(place: Path) -> None:
    assert score("--scores", "monte_carlo", "mmse_margin", "--sigma", "0.1", "--draws", "60") == 0
    entries = brittle.read_table("run").provenance["scores"]
    budgets = [(entry["score"], entry["parameters"]["draws"]) for entry in entries]
    assert budgets == [
        *(("monte_carlo", draws) for draws in (6, 10, 20, 50, 60)),
        *(("mmse_margin", draws) for draws in (6, 10, 20)),
    ]
    assert set(brittle.read_table("run").points.column("passes").to_pylist()) == {1 + 60 + 40}


def test_weights_are_loaded(place: Path) -> None:
    assert score("--scores", "logit_margin", "--weights", "weights.safetensors") == 0
    expected = small_network(seed=5)(inputs(8)).topk(2, dim=1).values
    found = brittle.read_table("run").wide()["logit_margin"]
    assert found.to_numpy() == pytest.approx((expected[:, 0] - expected[:, 1]).detach().numpy(), abs=1e-5)


def test_what_differs_between_the_scores_of_two_runs_is_named(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each side by what only it has, the largest budget first, whatever else both have."""
    assert score("--scores", "monte_carlo", "softmax", "--sigma", "0.1", "--draws", "60") == 0
    assert score("--scores", "monte_carlo", "softmax", "--sigma", "0.1", "--draws", "70", "--resume") == 5
    there, now = "monte_carlo(draws=60, sigma=0.1) only there", "monte_carlo(draws=70, sigma=0.1) only now"
    assert f"scores {there}, {now};" in capsys.readouterr().err
    assert score("--scores", "monte_carlo", "--sigma", "0.1", "--draws", "60", "--resume") == 5
    assert "scores softmax, monte_carlo(draws=50, sigma=0.1)" in (said := capsys.readouterr().err)
    assert "and 2 more only there, nothing only now;" in said


def test_a_run_that_was_finished_says_so(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score("--scores", "softmax") == 0
    assert "was finished before" not in capsys.readouterr().err
    assert score("--scores", "softmax", "--resume") == 0
    assert "brittle: the run in run was finished before; nothing was computed\n" in capsys.readouterr().err


def test_quiet_says_nothing(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score("--quiet") == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--scores", "lucky_guess"], 2, "no score is called 'lucky_guess'; there are monte_carlo"),
        (["--noise", "pink"], 2, "no noise family is called 'pink'"),
        (["--draws", "50", "--scores", "softmax"], 2, "--draws changes none of these scores; it is for monte_carlo"),
        (["--no-such-option"], 2, "no-such-option"),
        (["--batch-size", "many"], 2, "a whole number or auto"),
        (["--outputs", "scores"], 2, "scores"),
        (["--sigma", "0"], 3, "sigma must be a positive finite number in pixel units; found 0"),
        (["--sigma", "nan"], 3, "sigma must be a positive finite number in pixel units; found nan"),
        (["--draws", "1"], 3, "draws must be between 2 and 10000000"),
        (["--draws", "1000000000000"], 3, "draws must be between 2 and 10000000"),
        (["--confidence", "1"], 3, "the confidence must lie between 0 and 1"),
        (["--limit", "0"], 3, "limit"),
        (["--bounds", "1", "0"], 3, "increasing"),
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


def test_a_run_is_not_overwritten(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score("--quiet") == 0
    assert score("--quiet") == 7
    assert "holds a run already" in capsys.readouterr().err


def test_points_without_a_number_are_told_by_the_exit_code(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score(model="./net.py:broken") == 4
    said = capsys.readouterr().err
    assert "8 of 8 points got no number; some of them:\n" in said
    assert "point 0, moments: nonfinite_logits: " in said
    assert "of 100 noisy copies gave NaN or infinite logits" in said
    assert score("--allow-row-errors", model="./net.py:broken", out="other") == 0


def test_what_is_no_model(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score(model="./net.py:nothing") == 3
    assert "factory_type" in capsys.readouterr().err


def test_a_report_of_nothing(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "nowhere"]) == 7
    assert "is not a run folder" in capsys.readouterr().err


@pytest.fixture
def run(place: Path) -> Path:
    """`place` with a run."""
    assert score("--quiet") == 0
    return place


WRITING = [
    (["report", "run", "--out", "page.html"], "page.html", "report"),
    (["report", "run"], "run/report.html", "report"),
    (["compare", "run", "run", "--out", "table.csv"], "table.csv", "comparison"),
]
"""Commands that write a file, the file, and what it is called."""


@pytest.mark.parametrize(("command", "path", "called"), WRITING)
def test_a_file_of_brittle_is_replaced(run: Path, command: list[str], path: str, called: str) -> None:
    assert main(command) == 0
    whole = Path(path).read_text()
    Path(path).write_text(whole + "<!-- an older one -->\n")
    assert main(command) == 0
    assert Path(path).read_text() == whole


@pytest.mark.parametrize("found", ["", "<html><body>brittle</body></html>", "score,title\n", "\0\xff" * 9000])
@pytest.mark.parametrize(("command", "path", "called"), WRITING)
def test_another_file_is_kept(
    run: Path, capsys: pytest.CaptureFixture[str], command: list[str], path: str, called: str, found: str
) -> None:
    Path(path).write_text(found)
    assert main(command) == 7
    said = capsys.readouterr()
    end = f"is there already and is no {called} of brittle; choose another file, or remove it\n"
    assert said.err == f"brittle: file_exists: {path} {end}"
    assert said.out == ""
    assert Path(path).read_text() == found


def test_another_file_is_told_before_any_work_is_done(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """There is no run to read, and no network is trained."""
    for path in ("page.html", "table.csv", "report.html"):
        Path(path).write_text("mine")
    for *command, out in (
        ["report", "absent", "--out", "page.html"],
        ["compare", "absent", "absent", "--out", "table.csv"],
        ["demo", "--out", "."],
    ):
        assert main([*command, out]) == 7
        assert capsys.readouterr().err.startswith("brittle: file_exists: ")


def test_debug_raises(place: Path) -> None:
    with pytest.raises(brittle.errors.BrittleError):
        score("--sigma", "0", "--debug")


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["score", "--help"]], ids=" ".join)
def test_help_is_quick_and_needs_no_torch(arguments: list[str]) -> None:
    code = f"import sys, brittle.cli; brittle.cli.main({arguments}); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def small_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"EPOCHS": 20, "TEST_POINTS": 60, "DRAWS": 20, "SIGMAS": (0.2,)}.items():
        monkeypatch.setattr(f"brittle.cli.digits.{name}", value)


def test_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It ends on one screen, which says what it found, where the report lies and what comes next."""
    small_demo(monkeypatch)
    for name, value in {"POINTS": 40, "DRAWS": 50}.items():
        monkeypatch.setattr(f"brittle.cli.demo.{name}", value)
    before = torch.random.get_rng_state()
    assert main(["demo", "--out", str(tmp_path / "demo"), "--quiet"]) == 0
    assert torch.equal(before, torch.random.get_rng_state())
    table = brittle.read_table(tmp_path / "demo" / "run")
    assert table.points.num_rows == 40
    page = (tmp_path / "demo" / "report.html").read_text()
    assert all(f'id="{view}"' in page for view in ("distribution", "worst-case", "expected-change"))
    printed, said = capsys.readouterr()
    assert said == ""
    lines, flat = printed.splitlines(), " ".join(printed.split())
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 100 + len(str(tmp_path))
    found = re.search(r"reads (\S+)% of 40 .* (\d+) predictions hold and (\d+) break; of the other (\d+)", flat)
    assert found is not None
    assert float(found[1]) > 80
    assert int(found[2]) + int(found[3]) + int(found[4]) == 40
    flips = table.long().query("score == 'monte_carlo' and parameters.str.contains('50')")
    assert int(found[3]) == (flips["low"] > 0.05).sum()
    worst = flips.sort_values("value")["value"].iloc[-1]
    assert f"{worst:.1%} (" in lines[[line.startswith("  point") for line in lines].index(True) + 1]
    assert f"Report: {tmp_path / 'demo' / 'report.html'}" in printed
    assert "brittle demo --full" in printed


def test_the_full_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    small_demo(monkeypatch)
    assert main(["demo", "--full", "--out", str(tmp_path / "demo"), "--quiet"]) == 0
    table = brittle.read_table(tmp_path / "demo" / "run")
    assert table.points.num_rows == 60
    assert table.points.column("correct").to_pylist().count(True) > 50
    assert set(table.scores["score"].to_pylist()) == set(CATALOGUE)
    assert (tmp_path / "demo" / "report.html").is_file()


def test_the_package_is_the_command() -> None:
    command = [sys.executable, "-m", "brittle", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, brittle.__version__)


def every_option(below: App = app, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Argument]]:
    """Every command with every option that it takes."""
    for name in below:
        if not name.startswith("-"):
            command = below[name]
            if command.default_command is not None:
                for argument in command.assemble_argument_collection(parse_docstring=True):
                    if argument.parse and not argument.children:
                        yield (*path, name), argument
            yield from every_option(command, (*path, name))


def options_of(*command: str) -> set[str]:
    return {argument.name for path, argument in every_option() if path == command}


def whole_number_options() -> list[tuple[str, ...]]:
    """Every option that takes an int, as the command line has it, its command before it."""
    return [(*path, argument.name) for path, argument in every_option() if argument.hint in (int, int | None)]


def test_every_option_says_what_it_is() -> None:
    silent = [(*path, argument.name) for path, argument in every_option() if not argument.parameter.help]
    assert silent == []


def test_the_doctor_takes_the_options_of_a_run_that_say_what_is_scored() -> None:
    of_the_run = {"--out", "--confidence", "--allow-row-errors", "--skip-doctor", "--resume"}
    of_the_run |= {"--quiet", "--workers", "--cluster", "--gpus-per-worker", "--insecure-cluster", "--as-worker"}
    assert of_the_run <= options_of("score")
    assert options_of("doctor") == options_of("score") - of_the_run | {"--planted"}


def test_options_of_whole_numbers_are_found() -> None:
    found = set(whole_number_options())
    assert {("score", "--draws"), ("corrupt", "--seed"), ("detector", "fit", "--seed")} <= found


@pytest.mark.parametrize("option", whole_number_options(), ids=" ".join)
@pytest.mark.parametrize("number", ["1.5", "2.0", "1e3", "many"])
def test_a_fraction_is_no_whole_number(
    option: tuple[str, ...], number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*option, number]) == 2
    assert f"{option[-1]} takes a whole number; found {number!r}" in capsys.readouterr().err


def test_an_occupied_folder_is_refused_before_anything_is_said(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score("--quiet") == 0
    for command in (["score", "./net.py:make", "data.npz", "--out", "run"], ["demo", "--out", "."]):
        assert main(command) == 7
        said = capsys.readouterr().err
        assert said.startswith("brittle: run_exists: run holds a run already; ")
        assert said.count("\n") == 1


def test_the_pseudo_margin_is_named_by_its_option(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score("--scores", "pseudo_margin") == 2
    said = capsys.readouterr().err
    assert "give its file with --pseudo-margin FILE" in said
    assert "did you mean" not in said
