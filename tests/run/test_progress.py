"""How far a run is: nothing when quiet, lines where there is no terminal, and always the last one."""

from __future__ import annotations

import io

import pytest

from brittle.run import progress as module
from brittle.run.progress import progress


def test_quiet_is_nothing_to_call() -> None:
    stream = io.StringIO()
    with progress(True, stream) as advance:
        assert advance is None
    assert stream.getvalue() == ""


@pytest.mark.parametrize(("between", "lines"), [(1e9, 1), (0.0, 4)])
def test_lines_are_not_written_too_often_and_the_last_always(
    between: float, lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", between)
    stream = io.StringIO()
    with progress(False, stream) as advance:
        assert advance is not None
        for done in (10, 20, 30, 40):
            advance(done, 40, 1000 * done)
    said = stream.getvalue().splitlines()
    assert len(said) == lines
    assert said[-1] == "scoring: 40 of 40 points, 40,000 passes"


def test_a_terminal_gets_a_bar() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    with progress(False, stream) as advance:
        assert advance is not None
        advance(40, 40, 1234)
    assert "40/40" in stream.getvalue()
    assert "1,234 passes" in stream.getvalue()
