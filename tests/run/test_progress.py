"""How far a run is: nothing when quiet, lines where there is no terminal, and always the last one."""

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
    """What a kernel of a notebook looks like from inside: every display of a cell, with what it says now and before."""

    def __init__(self) -> None:
        self.outputs: list[list[dict[str, str]]] = []

    def display(self, bundle: dict[str, str], *, raw: bool, display_id: bool) -> SimpleNamespace:
        assert raw
        assert display_id
        states = [bundle]
        self.outputs.append(states)
        return SimpleNamespace(update=lambda one, raw: states.append(one))


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    """This process computes the cells of a notebook."""
    found = Notebook()
    ipython: Any = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())
    shown: Any = ModuleType("IPython.display")
    shown.display = found.display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    monkeypatch.setattr(module, "SECONDS_BETWEEN_CHANGES", 0.0)
    return found


@pytest.mark.parametrize(("between", "lines"), [(1e9, 1), (0.0, 5)])
def test_lines_are_not_written_too_often_and_the_last_always(
    between: float, lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", between)
    stream = io.StringIO()
    with progress(True, stream) as advance:
        assert advance is not None
        for done in (0, 10, 20, 30, 40):
            advance(done, 40, 1000 * done)
    said = stream.getvalue().splitlines()
    assert len(said) == lines
    assert said[-1] == "scoring: 40 of 40 points, 40,000 passes"
    assert all(line.endswith(" left") for line in said[1:-1])


def test_the_time_that_is_left_is_that_of_the_points_of_this_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that goes on after 900 of 1,000 points, of which it computes 5 in a second."""
    clock = iter([0.0, 100.0, 110.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 0.0)
    stream = io.StringIO()
    with progress(True, stream) as advance:
        assert advance is not None
        advance(900, 1000, 9000)
        advance(950, 1000, 9500)
    first, second = stream.getvalue().splitlines()
    assert first == "scoring: 900 of 1,000 points, 9,000 passes"
    assert second == "scoring: 950 of 1,000 points, 9,500 passes, 0:10 left"


class Stop(Exception):
    pass


def stop(*_: object) -> None:
    raise Stop


def test_a_long_run_is_told_before_it_begins_how_long_it_takes(
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
    for shown, told in ((True, 1), (stop, 0)):
        with pytest.raises(Stop):
            brittle.score(classifier, x, counting, progress=shown)
        found = re.findall(r"1,600 points; the network takes about (\d+) s", capsys.readouterr().err)
        assert len(found) == told
        assert all(60 <= int(one) < 120 for one in found)


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
    _, first, second = stream.getvalue().split("\r\x1b[K")[1:]
    assert first.startswith("scoring: 30 of 40 points, 600 passes, 0:0")
    assert second == "scoring: 40 of 40 points, 1,234 passes\n"


def test_a_notebook_gets_one_output_that_changes(notebook: Notebook, capsys: pytest.CaptureFixture[str]) -> None:
    with progress(True, sys.stderr) as advance:
        assert advance is not None
        for done in (0, 50, 100, 150, 200):
            advance(done, 200, 10 * done)
    said = [state["text/plain"] for state in notebook.outputs[0]]
    assert said[2].startswith("scoring: 50 of 200 points, 500 passes, 0:0")
    assert said[-1] == "scoring: 200 of 200 points, 2,000 passes"
    assert len(said) == 6
    assert capsys.readouterr() == ("", "")


def test_a_run_from_python_shows_how_far_it_is_where_it_is_asked_to(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    run(inputs(6), None, scores=[Softmax()])
    run(inputs(6), None, scores=[Softmax()], progress=False)
    assert notebook.outputs == []
    run(inputs(6), None, scores=[Softmax()], progress=True)
    assert notebook.outputs[0][-1]["text/plain"].startswith("scoring: 6 of 6 points, ")
    calls: list[tuple[int, int, int]] = []
    run(inputs(6), None, scores=[Softmax()], progress=lambda *now: calls.append(now))
    assert calls[-1][:2] == (6, 6)
    assert len(notebook.outputs) == 1
    assert capsys.readouterr() == ("", "")


def test_progress_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"progress must be True, or a function .*; found 'yes'"):
        brittle.score(small_classifier(), inputs(2), [Softmax()], progress="yes")  # pyright: ignore[reportArgumentType]
