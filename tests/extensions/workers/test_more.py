"""More copies of undecided points alone: in place, and safe against interrupts."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.problems import inputs, small_classifier

import brittle
from brittle.cli.commands import main
from brittle.scores import LogitMargin, Shrinkage
from brittle.store.reading import verify

COUNT, FIRST, THEN = 24, 60, 600

NETWORK = (
    "import torch\n\n\ndef make():\n    torch.manual_seed(0)\n"
    "    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 4)).eval()\n"
)


def command(*words: str) -> int:
    """Return the exit code of a command; the record stores it as typed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["brittle", *words])
        return main([*words])


def score(out: str, *words: str, draws: int = FIRST, sigma: str = "0.2") -> brittle.Table:
    line = ["score", "./net.py:make", "data.npz", "--sigma", sigma, "--draws", str(draws), "--skip-doctor", *words]
    assert command(*line, "--out", out, "--quiet") == 0
    return brittle.read_table(out)


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with a network, data and a run, some of whose points are undecided."""
    place = tmp_path_factory.mktemp("scored")
    (place / "net.py").write_text(NETWORK)
    np.savez(place / "data.npz", x=inputs(COUNT).numpy(), y=np.arange(COUNT) % 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        table = score("run")
    assert 0 < sum(table["shrinkage"].states(0.9) == "undecided") < COUNT
    return place


@pytest.fixture
def place(scored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy that folder, and run the commands in the copy."""
    shutil.copytree(scored, tmp_path / "place")
    monkeypatch.chdir(tmp_path / "place")
    return tmp_path / "place"


def numbers(table: brittle.Table) -> dict[str, Any]:
    """Return the rows by score, without their draws."""
    names = ["value", "low", "high", "status", "passes"]
    return {f"{column.score} {column.setting}": column.rows[names] for column in table.columns}


def assert_alike(actual: Any, expected: Any) -> None:
    """Assert equality up to the rounding of another batch."""
    pd.testing.assert_frame_equal(actual, expected, rtol=0, atol=1e-6)


CHOICES = {
    "the default": (),
    "the first": ("--points", "16"),
    "a sample": ("--sample", "16"),
    "both": ("--scores", "monte_carlo", "shrinkage", "--limit", "0.8"),
    "levels": ("--sigma", "0.1"),
    "settings": (
        *("--points", "12", "--scores", "shrinkage", "input_margin", "moments", "--norm", "linf", "--effort", "fast"),
        *("--set", "shrinkage.clip=true", "--set", "moments.draws=20", "--set", "shrinkage.draws=60"),
    ),
}
"""Options of runs; each look of 60 copies is one of 600, so that all rows equal those of a run with 600."""


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("words", [pytest.param(words, id=name) for name, words in CHOICES.items()])
def test_a_run_with_more_copies_is_the_run_that_as_many_give(words: tuple[str, ...]) -> None:
    before = score("first", *words)
    anew = tuple(word.replace("draws=60", f"draws={THEN}") for word in words)
    expected = numbers(score("whole", *anew, draws=THEN))
    assert command("more", "first", "--draws", str(THEN)) == 0
    after = brittle.read_table("first")
    assert verify("first") == []
    assert {column.parameters["draws"] for column in after.columns if column.limit is not None} == {THEN}
    assert any(not rows.equals(numbers(before)[name]) for name, rows in numbers(after).items())
    for name, rows in numbers(after).items():
        assert_alike(rows, numbers(before)[name] if "moments" in name else expected[name])
    assert after.points["point"].equals(before.points["point"])
    assert after.record.account.passes == sum(after.points["passes"].to_pylist()) > before.record.account.passes


@pytest.fixture(scope="module")
def finished(scored: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the numbers of that run with more copies, uninterrupted."""
    place = tmp_path_factory.mktemp("finished") / "place"
    shutil.copytree(scored, place)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        assert command("more", "run", "--quiet") == 0
        return numbers(brittle.read_table("run"))


STOPS = [
    *(("brittle.run.execute", 0, False), ("brittle.run.execute", 0, True)),
    *(("brittle.extensions.workers.join.join", 0, True), ("pathlib.Path.rename", 0, True)),
    *(("pathlib.Path.rename", 1, True), ("pathlib.Path.rename", 2, True)),
    *(("shutil.rmtree", 0, True), ("shutil.rmtree", 1, False)),
]
"""A step that changes folders, the number of the interrupted call, and whether it has done its work."""


def stopping(step: Callable[..., Any], at: int, after: bool) -> Callable[..., Any]:
    """Return `step` with call number `at` interrupted, before or after its work."""
    calls = iter(range(1_000))

    def stopped(*arguments: Any, **options: Any) -> Any:
        last = next(calls) == at
        if last and not after:
            raise KeyboardInterrupt
        output = step(*arguments, **options)
        if last:
            raise KeyboardInterrupt
        return output

    return stopped


@pytest.mark.parametrize(("step", "at", "after"), STOPS)
def test_an_interrupted_command_can_be_repeated_without_loss(
    step: str, at: int, after: bool, place: Path, finished: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "run" / "report.html").write_text("mine")
    with monkeypatch.context() as patch:
        patch.setattr(step, stopping(resolve_name(step), at, after))
        assert command("more", "run", "--quiet") == 130
    assert command("more", "run", "--quiet") == 0
    assert verify("run") == []
    for name, rows in numbers(brittle.read_table("run")).items():
        assert_alike(rows, finished[name])
    assert (place / "run" / "report.html").read_text() == "mine"
    assert sorted(path.name for path in place.iterdir() if path.name != "__pycache__") == ["data.npz", "net.py", "run"]


@pytest.mark.usefixtures("place")
def test_a_report_and_a_mirror_of_the_run_before_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    score("other", "--mirror", "second")
    Path("other/report.html").write_text("mine")
    capsys.readouterr()
    assert command("more", "other", "--quiet") == 0
    report, mirror = capsys.readouterr().err.splitlines()
    assert "other/report.html" in report
    assert "report other" in report
    assert "second" in mirror


@pytest.mark.parametrize("change", ["other data", "a missing model", "other draws"])
def test_a_command_that_failed_does_not_stand_in_the_way(
    change: str, place: Path, finished: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, network = (place / name for name in ("data.npz", "net.py"))
    before = data.read_bytes(), network.read_bytes()
    if change == "other draws":
        with monkeypatch.context() as patch:
            step = "brittle.extensions.workers.join.join"
            patch.setattr(step, stopping(resolve_name(step), 0, after=False))
            assert command("more", "run", "--quiet", "--draws", str(2 * THEN)) == 130
    else:
        np.savez(data, x=1 - inputs(COUNT).numpy(), y=np.arange(COUNT) % 4)
        if change == "a missing model":
            network.unlink()
        assert command("more", "run", "--quiet") > 0
        assert not (place / ".run.more").exists()
    for path, content in zip((data, network), before, strict=True):
        path.write_bytes(content)
    assert command("more", "run", "--quiet") == 0
    for name, rows in numbers(brittle.read_table("run")).items():
        assert_alike(rows, finished[name])
    assert not (place / ".run.more").exists()


@pytest.mark.usefixtures("place")
def test_a_run_without_undecided_points_stays_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    score("sure", sigma="0.0001")
    files = {path.name: path.read_bytes() for path in Path("sure").iterdir()}
    capsys.readouterr()
    assert command("more", "sure") == 0
    assert "every point is decided" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in Path("sure").iterdir()} == files


def test_a_run_behind_a_link_stays_behind_it(place: Path) -> None:
    (place / "runs").mkdir()
    (place / "run").rename(place / "runs" / "first")
    (place / "run").symlink_to(place / "runs" / "first")
    assert command("more", "run", "--quiet") == 0
    assert (place / "run").is_symlink()
    assert {path.name for path in (place / "runs").iterdir()} == {"first"}
    assert brittle.read_table("run")["shrinkage"].parameters["draws"] == THEN


def test_runs_that_cannot_have_more_copies_are_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = inputs(COUNT)
    classifier = small_classifier()
    brittle.score(classifier, x, [Shrinkage(0.2, draws=FIRST)], out="python")
    brittle.score(classifier, x, [LogitMargin()], out="margins")
    brittle.score(classifier, x, [Shrinkage(0.2, draws=FIRST, limit=None)], out="fixed")
    assert command("score", "./net.py:make", "data.npz", "--out", "part", "--part", "1/2", "--quiet") == 0
    for run, code, fact in (
        ("python", 2, f"draws={THEN}"),
        ("margins", 2, "--limit"),
        ("fixed", 2, "--limit"),
        ("part", 2, "join"),
    ):
        capsys.readouterr()
        assert command("more", run) == code
        assert fact in capsys.readouterr().err
    assert command("more", "run", "--draws", str(FIRST)) == 2
    assert str(FIRST) in capsys.readouterr().err
    assert not [path for path in place.iterdir() if path.name.startswith(".")]
