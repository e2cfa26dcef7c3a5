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
    states_by_check = states(printed)
    assert [name for name in states_by_check if name in {check.name for check in doctor.CHECKS}] == [
        c.name for c in doctor.CHECKS
    ]
    assert set(states_by_check.values()) <= {"ok", "0"}
    assert "for 8 points (101 forward and 4 backward passes a point" in printed
    assert "0 failed, 0 noted" in printed


def test_the_cost_of_each_check_is_printed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "./net.py:make", "data.npz", "--scores", "moments", "--sigma", "0.1", "--cost"]) == 0
    printed = capsys.readouterr().out
    passes_by_check = {
        name: int(passes) for name, passes in re.findall(r"^  ([a-z ]+?) +(\d+) passes +\d+\.\d+ s$", printed, re.M)
    }
    assert (passes_by_check["forward"], passes_by_check["repeatable"]) == (8, 4 * 8)
    checks = {check.name for check in doctor.CHECKS}
    check_passes = sum(passes for name, passes in passes_by_check.items() if name in checks)
    assert f"before a run {check_passes:,} passes; its scores take about 808" in printed


def test_every_fault_is_printed_with_its_page(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(place / "bad.npz", x=inputs(40).numpy() * 255, y=np.arange(40) % 4 + 1)
    assert main(["doctor", "./net.py:detached", "bad.npz", "--scores", "taylor"]) == 3
    printed = capsys.readouterr().out
    for code in ("value_range", "labels", "masked_gradient"):
        assert f"[{PAGE}#{code}]" in printed
    assert "3 failed" in printed
    assert "http" not in printed


def test_an_unreadable_model_or_file_is_a_failed_check(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for model, data, code, passed in (
        ("./net.py:make", "nothing.npz", "no_such_path", "ok      model"),
        ("./net.py:nothing", "data.npz", "user_code", "ok      data"),
    ):
        assert main(["doctor", model, data]) == 3
        printed = capsys.readouterr().out
        assert f"{PAGE}#{code}" in printed
        assert passed in printed


def test_the_doctor_checks_the_expected_accuracy(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "./net.py:make", "data.npz", "--expected-accuracy", "1.5"]) == 3
    assert "must lie in (0, 1], 0.9 for 90%; found 1.5" in capsys.readouterr().err
    assert main(["doctor", "./net.py:make", "data.npz", "--expected-accuracy", "0.9"]) == 3
    assert "failed  accuracy       accuracy_guard: accuracy 0." in capsys.readouterr().out
    np.savez(place / "data.npz", x=1 - inputs(300).numpy(), y=small_network()(inputs(300)).argmax(1).numpy())
    assert main(["doctor", "./net.py:make", "data.npz", "--expected-accuracy", "0.9"]) == 3
    assert re.search("accuracy_guard: .* inverted", capsys.readouterr().out), "what explains it is said with it"


def test_the_doctor_refuses_the_options_that_a_run_refuses(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options in ("softmax --sigma 0.1", "softmax --effort fast", "input_margin --effort luck"):
        messages = []
        for command in (["doctor"], ["score", "--out", "run", "--quiet"]):
            assert main([*command, "./net.py:make", "data.npz", "--scores", *options.split()]) == 2
            messages.append(capsys.readouterr().err)
        assert messages[0] == messages[1]
        assert messages[0].startswith("brittle: usage: ")
