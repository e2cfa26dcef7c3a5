"""Fields of scores are set by name, each with a sentence; some are options of the command line."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal

import pytest

from brittle.errors import UsageError
from brittle.scores import CATALOGUE, LogitMargin, MonteCarlo, NoiseScore, Score, Shrinkage
from brittle.scores.choose import choose
from brittle.scores.options import option, options_of


@pytest.mark.parametrize("kind", CATALOGUE.values(), ids=list(CATALOGUE))
def test_every_field_can_be_set(kind: type[Score]) -> None:
    given_otherwise = {"sigma", "noise"} if issubclass(kind, NoiseScore) else set()
    assert options_of(kind).keys() == {one.name for one in fields(kind) if one.init} - given_otherwise


def test_scores_that_share_an_option_take_the_same_kind_of_value() -> None:
    for name in ("draws", "norm", "effort"):
        takers = [options_of(kind)[name] for kind in CATALOGUE.values() if name in options_of(kind)]
        assert len({(one.kind, one.choices) for one in takers if not one.alone}) == 1


@dataclass(frozen=True)
class Deep(LogitMargin):
    """A score with fields of every kind."""

    depth: int = 2
    near: bool = True
    alone: int = field(default=1, metadata=option(alone=True))
    way: Literal["up", "down"] = "up"
    share: float | None = None

    name: ClassVar[str] = "deep"


def test_a_new_field_is_an_option_with_nothing_to_add_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue = {**CATALOGUE, "deep": Deep}
    monkeypatch.setattr("brittle.scores.choose.CATALOGUE", catalogue)
    monkeypatch.setattr("brittle.scores.outside.CATALOGUE", catalogue)
    given = {"depth": 3, "way": "down", "share": 0.5}
    settings = ["deep.near=no", "deep.alone=2"]
    assert choose(["deep"], [], options=given, settings=settings) == [Deep(3, False, 2, "down", 0.5)]
    assert choose(["deep"], []) == [Deep()]
    with pytest.raises(UsageError, match="'left'; there are up, down"):
        choose(["deep"], [], options={"way": "left"})
    with pytest.raises(UsageError, match=r"--depth .* deep"):
        choose(["softmax"], [], options={"depth": 3})
    with pytest.raises(UsageError, match=r"--alone .* no score"):
        choose(["deep"], [], options={"alone": 3})


def test_beside_a_count_no_point_stops() -> None:
    """The copies of the count are there for every point; who wants draws by need says so."""
    assert choose(["shrinkage"], [0.1]) == [Shrinkage(0.1, limit=None)]
    assert Shrinkage(0.1, limit=None).adaptive
    budgets = (6, 10, 20, 50, 100, 200)
    fixed = [Shrinkage(0.1, draws=draws, limit=None) for draws in budgets]
    chosen = choose(["shrinkage", "monte_carlo"], [0.1])
    assert [score for score in chosen if not isinstance(score, MonteCarlo)] == fixed
    assert choose(["shrinkage"], [0.1], settings=["shrinkage.adaptive=false"]) == fixed[-1:]
    asked = choose(["shrinkage", "monte_carlo"], [0.1], settings=["shrinkage.adaptive=true"])
    assert Shrinkage(0.1, limit=None) in asked


def test_a_type_that_is_not_there_at_run_time_is_no_option() -> None:
    @dataclass(frozen=True)
    class Odd(LogitMargin):
        other: Missing = None  # type: ignore[name-defined]  # noqa: F821
        many: tuple[int, ...] = ()

    assert options_of(Odd) == {}
