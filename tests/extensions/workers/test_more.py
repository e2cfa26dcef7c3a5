"""More copies of undecided points: of these alone, in place, and whatever stops the command."""

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
    """The exit code of a command, recorded as one that was typed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["brittle", *words])
        return main([*words])


def score(out: str, *words: str, draws: int = FIRST, sigma: str = "0.2") -> brittle.Table:
    line = ["score", "./net.py:make", "data.npz", "--sigma", sigma, "--draws", str(draws), *words]
    assert command(*line, "--out", out, "--quiet") == 0
    return brittle.read_table(out)


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a network, data and a run, some of whose points are undecided."""
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
    """A copy of that folder, in which the commands run."""
    shutil.copytree(scored, tmp_path / "place")
    monkeypatch.chdir(tmp_path / "place")
    return tmp_path / "place"


def numbers(table: brittle.Table) -> dict[str, Any]:
    """What is known of the points by each score, whatever its draws are."""
    names = ["value", "low", "high", "status", "passes"]
    return {f"{one.score} {one.setting}": one.rows[names] for one in table.columns}


def assert_alike(found: Any, expected: Any) -> None:
    """Equal, but for what another batch rounds."""
    pd.testing.assert_frame_equal(found, expected, rtol=0, atol=1e-6)


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
"""Of 60 copies each look is one of 600, so that all rows are those of a run of 600."""


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("words", [pytest.param(words, id=name) for name, words in CHOICES.items()])
def test_a_run_with_more_copies_is_the_run_that_as_many_give(words: tuple[str, ...]) -> None:
    first = score("first", *words)
    anew = tuple(word.replace("draws=60", f"draws={THEN}") for word in words)
    whole = numbers(score("whole", *anew, draws=THEN))
    assert command("more", "first", "--draws", str(THEN)) == 0
    found = brittle.read_table("first")
    assert verify("first") == []
    assert {one.parameters["draws"] for one in found.columns if one.limit is not None} == {THEN}
    assert any(not rows.equals(numbers(first)[name]) for name, rows in numbers(found).items())
    for name, rows in numbers(found).items():
        assert_alike(rows, numbers(first)[name] if "moments" in name else whole[name])
    assert found.points["point"].equals(first.points["point"])
    assert found.record.account.passes == sum(found.points["passes"].to_pylist()) > first.record.account.passes


@pytest.fixture(scope="module")
def finished(scored: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The numbers of that run with more copies, which nothing stopped."""
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
"""A step that changes folders, which of its calls is interrupted, and whether after its work."""


def stopping(step: Callable[..., Any], at: int, after: bool) -> Callable[..., Any]:
    """`step`, whose call number `at` is interrupted, before or after its work."""
    calls = iter(range(1_000))

    def stopped(*given: Any, **options: Any) -> Any:
        last = next(calls) == at
        if last and not after:
            raise KeyboardInterrupt
        found = step(*given, **options)
        if last:
            raise KeyboardInterrupt
        return found

    return stopped


@pytest.mark.parametrize(("step", "at", "after"), STOPS)
def test_a_command_that_is_stopped_loses_nothing_and_is_called_again(
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


def test_what_cannot_have_more_copies_is_refused_before_anything_is_drawn(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
