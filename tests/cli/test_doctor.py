"""`brittle doctor`: every check on its own line, facts, and exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.problems import inputs, small_network

from brittle import doctor
from brittle.cli import main
from brittle.cli.doctor import PAGE

CODE = """
import sys
sys.path.insert(0, {tests!r})
import torch
from helpers.problems import Wrapped, small_network
def make():
    return small_network()
def detached():
    return Wrapped(lambda x, z: z.detach())
def half():
    return small_network(dtype=torch.bfloat16)
def random():
    return Wrapped(lambda x, z: z + torch.rand_like(z))
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `net.py` and `data.npz`, as the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(CODE.format(tests=str(Path(__file__).parents[1])))
    np.savez(tmp_path / "data.npz", x=inputs(40).numpy(), y=np.arange(40) % 4)
    return tmp_path


def states(printed: str) -> dict[str, str]:
    """State of each check that was printed, by name."""
    return {
        line[10:25].strip(): line[2:10].strip() for line in printed.partition("\nfacts")[0].splitlines()[1:] if line
    }


def test_a_sound_model_passes_every_check(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "./net.py:make", "data.npz", "--scores", "taylor", "moments"]) == 0
    printed = capsys.readouterr().out
    found = states(printed)
    assert [name for name in found if name in {check.name for check in doctor.CHECKS}] == [
        c.name for c in doctor.CHECKS
    ]
    assert set(found.values()) <= {"ok", "0"}
    for fact, seen in {
        "model": "4 classes, 1,680 parameters",
        "shape": "piecewise linear (no second derivative at 8 of 8 points); a kink at 0 of 8 points",
        "cost": "for 40 points (101 forward and 4 backward passes a point",
    }.items():
        assert re.search(rf"^  {fact} .*{re.escape(seen)}", printed, flags=re.MULTILINE), fact
    assert "0 failed, 0 noted" in printed


def test_all_that_is_wrong_is_told_with_where_it_is_explained(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(place / "bad.npz", x=inputs(40).numpy() * 255, y=np.arange(40) % 4 + 1)
    assert main(["doctor", "./net.py:detached", "bad.npz", "--scores", "taylor"]) == 3
    printed = capsys.readouterr().out
    for code in ("value_range", "labels", "masked_gradient"):
        assert f"[{PAGE}#{code}]" in printed
    assert "3 failed" in printed
    assert "http" not in printed


def test_a_note_is_no_failure(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "./net.py:half", "data.npz"]) == 0
    assert "note    forward        low_precision: the model computes in bfloat16" in (
        printed := capsys.readouterr().out
    )
    assert "0 failed, 1 noted" in printed


@pytest.mark.parametrize(
    ("model", "data", "code", "seen"),
    [
        ("./net.py:make", "nothing.npz", "no_such_path", "ok      model"),
        ("./net.py:nothing", "data.npz", "user_code", "ok      data"),
        ("./net.py:nothing", "nothing.npz", "no_such_path", "failed  model"),
    ],
)
def test_what_cannot_be_opened_is_a_failed_check(
    place: Path, capsys: pytest.CaptureFixture[str], model: str, data: str, code: str, seen: str
) -> None:
    assert main(["doctor", model, data]) == 3
    printed = capsys.readouterr().out
    assert f"{PAGE}#{code}" in printed
    assert seen in printed


def noted(printed: str) -> list[str]:
    """The codes of the notes that were printed."""
    return re.findall(r"^  note +(?:\w+ )+ +(\w+):", printed, flags=re.MULTILINE)


def test_labels_that_are_surely_wrong_are_noted_on_few_points(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The interval of the accuracy tells: of 40 points none right is noted, a quarter for four classes is not."""
    network, x = small_network(), inputs(40)
    with torch.no_grad():
        predicted = network(x).argmax(dim=1).numpy()
    for right, codes in ((40, []), (10, []), (0, ["accuracy_suspicious"])):
        labels = np.where(np.arange(40) < right, predicted, (predicted + 1) % 4)
        np.savez(place / "data.npz", x=x.numpy(), y=labels)
        assert main(["doctor", "./net.py:make", "data.npz"]) == 0
        assert noted(printed := capsys.readouterr().out) == codes
        assert "renamed" not in printed  # nine of ten labels are one class, which a guess gets as well


def test_an_expected_accuracy_is_expected_here_too(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "./net.py:make", "data.npz", "--expected-accuracy", "1.5"]) == 3
    assert "must lie in (0, 1]; found 1.5" in capsys.readouterr().err
    assert main(["doctor", "./net.py:make", "data.npz", "--expected-accuracy", "0.9"]) == 3
    assert "failed  accuracy       accuracy_guard: accuracy 0." in capsys.readouterr().out
    np.savez(place / "data.npz", x=1 - inputs(300).numpy(), y=small_network()(inputs(300)).argmax(1).numpy())
    assert main(["doctor", "./net.py:make", "data.npz", "--expected-accuracy", "0.9"]) == 3
    assert re.search("accuracy_guard: .* inverted", capsys.readouterr().out), "what explains it is said with it"


def test_rows_without_a_score_are_counted(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = inputs(300).numpy()
    x[[200, 250], 0, 0, 0] = np.nan
    np.savez(place / "data.npz", x=x, y=np.arange(300) % 4)
    assert main(["doctor", "./net.py:make", "data.npz"]) == 0
    printed = capsys.readouterr().out
    assert "rows_without_score" in noted(printed)
    assert "2 of the first 300 rows get no score, the first of them row 200:" in printed
    assert "298 labelled" in printed


def test_a_model_that_is_random_is_not_said_to_mix_rows(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "./net.py:random", "data.npz"]) == 3
    found = states(capsys.readouterr().out)
    assert found["repeatable"] == "failed"
    assert found["rows apart"] == "skipped"


def test_misuse_is_told_as_everywhere(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "./net.py:make", "data.npz", "--scores", "luck"]) == 2
    assert main(["doctor", "net.py", "data.npz"]) == 2
    assert main(["doctor", "./net.py:make", "data.npz", "--sigma", "0"]) == 3
    assert "Traceback" not in capsys.readouterr().err


MISUSES = [
    (["--scores", "softmax", "--sigma", "0.1"], "usage"),
    (["--scores", "softmax", "--head", "head"], "usage"),
    (["--scores", "softmax", "--effort", "fast"], "usage"),
    (["--radius", "1", "--sigma", "0.1"], "usage"),
    (["--scores", "input_margin", "--effort", "luck"], "usage"),
]


@pytest.mark.parametrize(("options", "code"), MISUSES, ids=lambda value: " ".join(value))
def test_what_a_run_refuses_is_refused_as_well(
    place: Path, capsys: pytest.CaptureFixture[str], options: list[str], code: str
) -> None:
    said = []
    for command in (["doctor"], ["score", "--out", "run", "--quiet"]):
        assert main([*command, "./net.py:make", "data.npz", *options]) == 2
        said.append(capsys.readouterr().err)
    assert said[0] == said[1]
    assert said[0].startswith(f"brittle: {code}: ")


def test_noise_on_a_sphere_has_the_size_that_a_run_gives_it(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Around 36 pixels a length of 0.6 is a standard deviation of 0.1."""
    arguments = ["./net.py:make", "data.npz", "--scores", "moments", "--radius", "0.6", "--clip", "--draws", "20"]
    assert main(["doctor", *arguments]) == 0
    assert "for moments\n" in capsys.readouterr().out
    assert main(["score", *arguments, "--out", "run", "--quiet"]) == 0
    (entry,) = json.loads((place / "run" / "run.json").read_text())["scores"]
    assert entry["parameters"]["sigma"] == pytest.approx(0.1)


def test_a_pseudo_margin_is_examined_with_the_others(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ["score", "./net.py:make", "data.npz", "--scores", "input_margin", "--effort", "fast", "--quiet"]
    assert main([*run, "--out", "run"]) == 0
    learn = ["pseudo-margin", "fit", "run", "./net.py:make", "data.npz", "--out", "learned.safetensors"]
    assert main(learn) == 0
    capsys.readouterr()
    arguments = ["data.npz", "--scores", "softmax", "--pseudo-margin", "learned.safetensors"]
    assert main(["doctor", "./net.py:make", *arguments]) == 0
    assert "for softmax, pseudo_margin\n" in capsys.readouterr().out
    assert main(["doctor", "./net.py:half", *arguments]) == 3
    assert f"{PAGE}#other_model" in capsys.readouterr().out


def test_skipping_is_in_the_record(place: Path) -> None:
    for option, said in ((), "passed"), (("--skip-doctor",), "skipped"):
        out = f"run-{said}"
        assert main(["score", "./net.py:make", "data.npz", "--out", out, "--quiet", *option]) == 0
        assert json.loads((place / out / "run.json").read_text())["doctor"] == said


def test_what_is_said_of_a_number_fits_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The data hold numbers and no classes; it was said that there are no labels, beside how many are right."""
    monkeypatch.chdir(tmp_path)
    Path("price.py").write_text("import torch\nmake = lambda: torch.nn.Linear(2, 1)\n", encoding="utf-8")
    rows = "".join(f"0.{number},{number % 2},{number}\n" for number in range(1, 9))
    Path("houses.csv").write_text(f"a,b,price\n{rows}", encoding="utf-8")
    options = ["--label-column", "price", "--decision", "within:0.5", "--noise", "per-feature", "--sigma", "0.1"]
    main(["doctor", "./price.py:make", "houses.csv", *options])
    said = capsys.readouterr().out
    assert "a number within a tolerance" in said
    assert "decision within:0.5, 3 parameters" in said
