"""Fixtures of several rooms; the rules of every test are in `helpers/suite.py`."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from helpers.threads import Worker

pytest_plugins = ["helpers.suite", "helpers.cpu_seconds"]


@pytest.fixture(scope="session")
def figures_drawn_once() -> Iterator[Callable[..., str]]:
    """A figure of the same name and numbers is drawn once for all pages of a process; gives what draws it."""
    from brittle.extensions.report import figure

    drawn: dict[bytes, str] = {}
    draw = figure.draw

    def once(one: figure.Figure, identity: str) -> str:
        frame = one.frame
        key = pickle.dumps((one.chart.__qualname__, identity, frame.to_dict("list"), frame.index.tolist()))
        if key not in drawn:
            drawn[key] = draw(one, identity)
        return drawn[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figure, "draw", once)
        yield draw


@pytest.fixture
def nothing_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages have no drawings, which take most of their time: for laws of words alone."""
    from brittle.extensions.report import figure

    monkeypatch.setattr(figure, "draw", lambda one, identity: "")


@pytest.fixture(scope="module")
def short_search() -> Iterator[None]:
    """The two smaller efforts search a tenth as long: for files of tests that ask no search how near it comes."""
    from brittle.measure.nearest import EFFORTS

    lengths: dict[str, Any] = {"untargeted": (), "agreeing": 1, "scout_steps": 2, "refine_steps": 2, "queries": 20}
    lengths |= {"rounds": ((2, 3), (1, 6)), "restart_rounds": ((1, 6),)}
    with pytest.MonkeyPatch.context() as patch:
        for effort, starts in (("fast", (0, 2)), ("standard", (0, 8))):
            patch.setitem(EFFORTS, effort, replace(EFFORTS[effort], starts=starts, **lengths))
        yield


@pytest.fixture
def workers() -> Iterator[list[Worker]]:
    """Three threads, each of which does one thing after another when it is told to."""
    from helpers.threads import Worker

    made = [Worker() for _ in range(3)]
    yield made
    for worker in made:
        worker.shutdown()
