"""The progress of a run: nothing when quiet, lines without a terminal, and always the last line."""

from __future__ import annotations

import io
import re
import sys
import time
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from helpers.problems import inputs, small_classifier
from helpers.small_runs import run

import brittle
from brittle.errors import ParameterError
from brittle.run import progress as module
from brittle.run.progress import progress
from brittle.scores import MonteCarlo, Softmax


class Notebook:
    """A stand-in for the kernel of a notebook: every display of a cell, with its states."""

    def __init__(self) -> None:
        self.outputs: list[list[dict[str, str]]] = []

    def display(self, bundle: dict[str, str], *, raw: bool, display_id: bool) -> SimpleNamespace:
        assert raw
        assert display_id
        states = [bundle]
        self.outputs.append(states)
        return SimpleNamespace(update=lambda state, raw: states.append(state))


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    """Make a notebook whose cells run in this process."""
    kernel = Notebook()
    ipython: Any = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())
    shown: Any = ModuleType("IPython.display")
    shown.display = kernel.display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    monkeypatch.setattr(module, "SECONDS_BETWEEN_CHANGES", 0.0)
    return kernel


@pytest.mark.parametrize(("between", "lines"), [(1e9, 1), (0.0, 5)])
def test_lines_are_not_too_frequent_and_the_last_is_written(
    between: float, lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", between)
    stream = io.StringIO()
    with progress(True, stream) as advance:
        assert advance is not None
        for done in (0, 10, 20, 30, 40):
            advance(done, 40, 1000 * done)
    written = stream.getvalue().splitlines()
    assert len(written) == lines
    assert written[-1] == "scoring: 40 of 40 points, 40,000 passes"
    assert all(line.endswith(" left") for line in written[1:-1])


def test_the_time_left_follows_from_the_points_of_this_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that resumes after 900 of 1,000 points computes 5 a second."""
    clock = iter([0.0, 100.0, 110.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 0.0)
    stream = io.StringIO()
    with progress(True, stream) as advance:
        assert advance is not None
        advance(900, 1000, 9000)
        advance(950, 1000, 9500)
    early, late = stream.getvalue().splitlines()
    assert early == "scoring: 900 of 1,000 points, 9,000 passes"
    assert late == "scoring: 950 of 1,000 points, 9,500 passes, 0:10 left"


class Stop(Exception):
    pass


def stop(*_: object) -> None:
    raise Stop


def test_a_long_run_states_its_duration_before_it_begins(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network that sleeps 0.2 ms a row, and 1,600 points of 201 passes each: 64 s on a quiet machine."""

    def slow(x: torch.Tensor) -> torch.Tensor:
        time.sleep(0.0002 * len(x))
        return x[:, :2]

    classifier, x, counting = (
        brittle.Classifier(slow, bounds=(0, 1)),
        torch.rand(1600, 3),
        [MonteCarlo(0.1, draws=200, limit=None)],
    )
    brittle.score(classifier, x[:1], counting, progress=True)
    assert "takes about" not in capsys.readouterr().err
    monkeypatch.setattr("brittle.run.progress.ProgressLine.__call__", stop)
    for shown, count in ((True, 1), (stop, 0)):
        with pytest.raises(Stop):
            brittle.score(classifier, x, counting, progress=shown)
        seconds = re.findall(r"1,600 points; the network takes about (\d+) s", capsys.readouterr().err)
        assert len(seconds) == count
        assert all(60 <= int(text) < 120 for text in seconds)


def test_a_terminal_gets_one_line_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    monkeypatch.setattr(module, "SECONDS_BETWEEN_CHANGES", 0.0)
    with progress(True, stream) as advance:
        assert advance is not None
        advance(0, 40, 0)
        advance(30, 40, 600)
        advance(40, 40, 1234)
    _, middle, final = stream.getvalue().split("\r\x1b[K")[1:]
    assert middle.startswith("scoring: 30 of 40 points, 600 passes, 0:0")
    assert final == "scoring: 40 of 40 points, 1,234 passes\n"


def test_a_kernelgets_one_output_that_changes(notebook: Notebook, capsys: pytest.CaptureFixture[str]) -> None:
    with progress(True, sys.stderr) as advance:
        assert advance is not None
        for done in (0, 50, 100, 150, 200):
            advance(done, 200, 10 * done)
    texts = [state["text/plain"] for state in notebook.outputs[0]]
    assert texts[2].startswith("scoring: 50 of 200 points, 500 passes, 0:0")
    assert texts[-1] == "scoring: 200 of 200 points, 2,000 passes"
    assert len(texts) == 6
    assert capsys.readouterr() == ("", "")


def test_a_run_from_python_shows_progress_on_request(notebook: Notebook, capsys: pytest.CaptureFixture[str]) -> None:
    run(inputs(6), None, scores=[Softmax()])
    run(inputs(6), None, scores=[Softmax()], progress=False)
    assert notebook.outputs == []
    run(inputs(6), None, scores=[Softmax()], progress=True)
    assert notebook.outputs[0][-1]["text/plain"].startswith("scoring: 6 of 6 points, ")
    calls: list[tuple[int, int, int]] = []
    run(inputs(6), None, scores=[Softmax()], progress=lambda *state: calls.append(state))
    assert calls[-1][:2] == (6, 6)
    assert len(notebook.outputs) == 1
    assert capsys.readouterr() == ("", "")


def test_progress_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"progress must be True, or a function .*; found 'yes'"):
        brittle.score(small_classifier(), inputs(2), [Softmax()], progress="yes")  # pyright: ignore[reportArgumentType]
