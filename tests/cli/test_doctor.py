"""`brittle doctor`: every check on its own line, and exit codes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from helpers.problems import inputs, small_network

from brittle import doctor
from brittle.cli.commands import main
from brittle.cli.doctor import PAGE


def states(printed: str) -> dict[str, str]:
    """State of each check that was printed, by name."""
    return {line[10:25].strip(): line[2:10].strip() for line in printed.splitlines()[1:] if line.startswith("  ")}


def test_a_sound_model_passes_every_check(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "./net.py:make", "data.npz", "--scores", "taylor", "moments"]) == 0
    printed = capsys.readouterr().out
    found = states(printed)
    assert [name for name in found if name in {check.name for check in doctor.CHECKS}] == [
        c.name for c in doctor.CHECKS
    ]
    assert set(found.values()) <= {"ok", "0"}
    assert "for 8 points (101 forward and 4 backward passes a point" in printed
    assert "0 failed, 0 noted" in printed


def test_what_each_check_costs_is_printed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "./net.py:make", "data.npz", "--scores", "moments", "--sigma", "0.1", "--cost"]) == 0
    printed = capsys.readouterr().out
    spent = {
        name: int(passes) for name, passes in re.findall(r"^  ([a-z ]+?) +(\d+) passes +\d+\.\d+ s$", printed, re.M)
    }
    assert (spent["forward"], spent["repeatable"]) == (8, 4 * 8)
    checks = {check.name for check in doctor.CHECKS}
    own = sum(passes for name, passes in spent.items() if name in checks)
    assert f"before a run {own:,} passes; its scores take about 808" in printed


def test_all_that_is_wrong_is_told_with_where_it_is_explained(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(place / "bad.npz", x=inputs(40).numpy() * 255, y=np.arange(40) % 4 + 1)
    assert main(["doctor", "./net.py:detached", "bad.npz", "--scores", "taylor"]) == 3
    printed = capsys.readouterr().out
    for code in ("value_range", "labels", "masked_gradient"):
        assert f"[{PAGE}#{code}]" in printed
    assert "3 failed" in printed
    assert "http" not in printed


def test_what_cannot_be_opened_is_a_failed_check(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for model, data, code, seen in (
        ("./net.py:make", "nothing.npz", "no_such_path", "ok      model"),
        ("./net.py:nothing", "data.npz", "user_code", "ok      data"),
    ):
        assert main(["doctor", model, data]) == 3
        printed = capsys.readouterr().out
        assert f"{PAGE}#{code}" in printed
        assert seen in printed


def test_an_expected_accuracy_is_expected_here_too(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "./net.py:make", "data.npz", "--expected-accuracy", "1.5"]) == 3
    assert "must lie in (0, 1], 0.9 for 90%; found 1.5" in capsys.readouterr().err
    assert main(["doctor", "./net.py:make", "data.npz", "--expected-accuracy", "0.9"]) == 3
    assert "failed  accuracy       accuracy_guard: accuracy 0." in capsys.readouterr().out
    np.savez(place / "data.npz", x=1 - inputs(300).numpy(), y=small_network()(inputs(300)).argmax(1).numpy())
    assert main(["doctor", "./net.py:make", "data.npz", "--expected-accuracy", "0.9"]) == 3
    assert re.search("accuracy_guard: .* inverted", capsys.readouterr().out), "what explains it is said with it"


def test_what_a_run_refuses_is_refused_as_well(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options in ("softmax --sigma 0.1", "softmax --effort fast", "input_margin --effort luck"):
        said = []
        for command in (["doctor"], ["score", "--out", "run", "--quiet"]):
            assert main([*command, "./net.py:make", "data.npz", "--scores", *options.split()]) == 2
            said.append(capsys.readouterr().err)
        assert said[0] == said[1]
        assert said[0].startswith("brittle: usage: ")
