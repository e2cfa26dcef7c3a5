"""Fields of scores are set by name, each with a sentence; some are options of the command line."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal

import pytest

from brittle.errors import UsageError
from brittle.scores import LogitMargin, MonteCarlo, NoiseScore, Score, Shrinkage
from brittle.scores.catalogue import CATALOGUE
from brittle.scores.choose import choose
from brittle.scores.options import option, options_of


@pytest.mark.parametrize("kind", CATALOGUE.values(), ids=list(CATALOGUE))
def test_every_field_can_be_set(kind: type[Score]) -> None:
    given_otherwise = {"sigma", "noise"} if issubclass(kind, NoiseScore) else set()
    assert options_of(kind).keys() == {field_.name for field_ in fields(kind) if field_.init} - given_otherwise


def test_scores_that_share_an_option_take_the_same_kind_of_value() -> None:
    for name in ("draws", "norm", "effort"):
        takers = [options_of(kind)[name] for kind in CATALOGUE.values() if name in options_of(kind)]
        assert len({(option_.kind, option_.choices) for option_ in takers if not option_.alone}) == 1


@dataclass(frozen=True)
class Deep(LogitMargin):
    """A score with fields of every kind."""

    depth: int = 2
    near: bool = True
    alone: int = field(default=1, metadata=option(alone=True))
    way: Literal["up", "down"] = "up"
    share: float | None = None

    name: ClassVar[str] = "deep"


def test_a_new_field_is_an_option_without_other_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue = {**CATALOGUE, "deep": Deep}
    monkeypatch.setattr("brittle.scores.choose.CATALOGUE", catalogue)
    monkeypatch.setattr("brittle.scores.outside.CATALOGUE", catalogue)
    options = {"depth": 3, "way": "down", "share": 0.5}
    settings = ["deep.near=no", "deep.alone=2"]
    assert choose(["deep"], [], options=options, settings=settings) == [Deep(3, False, 2, "down", 0.5)]
    assert choose(["deep"], []) == [Deep()]
    with pytest.raises(UsageError, match="'left'; there are up, down"):
        choose(["deep"], [], options={"way": "left"})
    with pytest.raises(UsageError, match=r"--depth .* deep"):
        choose(["softmax"], [], options={"depth": 3})
    with pytest.raises(UsageError, match=r"--alone .* no score"):
        choose(["deep"], [], options={"alone": 3})


def test_several_budgets_give_several_scores() -> None:
    """For all scores that draw, and no other; without a limit each point gets exactly as many draws."""
    budgets, kinds = (20, 60, 200), (MonteCarlo, Shrinkage)
    chosen = choose(["monte_carlo", "shrinkage", "logit_margin"], [0.1], options={"draws": budgets, "limit": "none"})
    assert chosen == [*(kind(0.1, draws=draws, limit=None) for kind in kinds for draws in budgets), LogitMargin()]
    assert choose(["shrinkage", "monte_carlo"], [0.1]) == [Shrinkage(0.1), MonteCarlo(0.1)]


def test_a_rule_is_set_by_option_and_by_setting() -> None:
    assert choose(["shrinkage"], [0.1], options={"limit": 0.8}) == [Shrinkage(0.1, limit=0.8)]
    assert choose(["shrinkage"], [0.1], options={"precision": 0.2}) == [Shrinkage(0.1, limit=None, precision=0.2)]
    scores = choose(["shrinkage", "monte_carlo"], [0.1], settings=["monte_carlo.limit=0.5"])
    assert scores == [Shrinkage(0.1), MonteCarlo(0.1, limit=0.5)]
    with pytest.raises(UsageError, match="--limit"):
        choose(["moments"], [0.1], options={"limit": 0.8})


def test_a_type_that_is_missing_at_run_time_is_no_option() -> None:
    @dataclass(frozen=True)
    class Odd(LogitMargin):
        other: Missing = None  # type: ignore[name-defined]  # noqa: F821
        many: tuple[int, ...] = ()

    assert options_of(Odd) == {}
