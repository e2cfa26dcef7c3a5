"""Fixtures for several rooms; the rules of every test are in `helpers/suite.py`."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from copy import copy
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from helpers.threads import Worker

pytest_plugins = ["helpers.suite", "helpers.cpu_seconds"]


@pytest.fixture(scope="session")
def figures_drawn_once() -> Iterator[Callable[..., str]]:
    """Draw a figure of the same name and numbers once for all pages of a process; return the function that draws."""
    from brittle.extensions.report import figure

    drawn: dict[bytes, str] = {}
    draw = figure.draw

    def once(image: figure.Figure, identity: str) -> str:
        frame = image.frame
        key = pickle.dumps((image.chart.__qualname__, identity, frame.to_dict("list"), frame.index.tolist()))
        if key not in drawn:
            drawn[key] = draw(image, identity)
        return drawn[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figure, "draw", once)
        yield draw


@pytest.fixture
def nothing_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out drawings, which take most of the time of pages, for laws of words alone."""
    from brittle.extensions.report import figure

    monkeypatch.setattr(figure, "draw", lambda image, identity: "")


@pytest.fixture(scope="module")
def short_search() -> Iterator[None]:
    """Let the two smaller efforts search a tenth as long, for tests that do not need near results."""
    from brittle.measure.nearest import EFFORTS

    lengths: dict[str, Any] = {"untargeted": (), "agreeing": 1, "scout_steps": 2, "refine_steps": 2, "queries": 20}
    lengths |= {"rounds": ((2, 3), (1, 6)), "restart_rounds": ((1, 6),)}
    with pytest.MonkeyPatch.context() as patch:
        for effort, starts in (("fast", (0, 2)), ("standard", (0, 8))):
            patch.setitem(EFFORTS, effort, copy(EFFORTS[effort]))
            vars(EFFORTS[effort]).update(lengths, starts=starts)
        yield


@pytest.fixture
def workers() -> Iterator[list[Worker]]:
    """Return three threads that run one task after another on request."""
    from helpers.threads import Worker

    threads = [Worker() for _ in range(3)]
    yield threads
    for worker in threads:
        worker.shutdown()
