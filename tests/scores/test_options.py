"""Fields of scores are set by name, each with a sentence; some are options of the command line."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal

import pytest

from brittle.errors import UsageError
from brittle.scores import CATALOGUE, LogitMargin, MonteCarlo, NoiseScore, Score, Shrinkage
from brittle.scores import options as options_module
from brittle.scores.choose import choose
from brittle.scores.options import by_name, described, option, options_of


@pytest.mark.parametrize("kind", CATALOGUE.values(), ids=list(CATALOGUE))
def test_every_field_has_an_option_with_a_sentence(kind: type[Score]) -> None:
    known = options_of(kind)
    given_otherwise = {"sigma", "noise"} if issubclass(kind, NoiseScore) else set()
    assert known.keys() == {one.name for one in fields(kind) if one.init} - given_otherwise
    assert all(one.text for one in known.values())


def test_scores_that_share_an_option_take_the_same_kind_of_value() -> None:
    known = by_name(CATALOGUE.items())
    for name in ("draws", "norm", "effort"):
        assert len({(one.kind, one.several, one.choices) for one in known[name].values()}) == 1


@dataclass(frozen=True)
class Deep(LogitMargin):
    """A score with fields of every kind.

    Attributes:
        depth: how deep it looks,
            in layers.
        near: look at the nearest only.
        way: how it looks.
        share: of the units.
    """

    depth: int = 2
    near: bool = field(default=True, metadata=option("far", text="look at all"))
    way: Literal["up", "down"] = "up"
    share: float | None = None

    name: ClassVar[str] = "deep"


def test_a_new_field_is_an_option_with_nothing_to_add_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CATALOGUE, "deep", Deep)
    given = {"depth": 3, "far": True, "way": "down", "share": 0.5}
    assert choose(["deep"], [], options=given) == [Deep(3, False, "down", 0.5)]
    assert choose(["deep"], []) == [Deep()]
    with pytest.raises(UsageError, match="'left'; there are up, down"):
        choose(["deep"], [], options={"way": "left"})
    with pytest.raises(UsageError, match=r"--depth .* deep"):
        choose(["softmax"], [], options={"depth": 3})


def test_beside_a_count_no_point_stops() -> None:
    """The copies of the count are there for every point; who wants draws by need says so."""
    assert choose(["shrinkage"], [0.1]) == [Shrinkage(0.1)]
    assert Shrinkage(0.1).adaptive
    budgets = (6, 10, 20, 50, 100, 200)
    fixed = [Shrinkage(0.1, draws=draws, adaptive=False) for draws in budgets]
    chosen = choose(["shrinkage", "monte_carlo"], [0.1])
    assert [score for score in chosen if not isinstance(score, MonteCarlo)] == fixed
    assert choose(["shrinkage"], [0.1], settings=["shrinkage.adaptive=false"]) == fixed[-1:]
    asked = choose(["shrinkage", "monte_carlo"], [0.1], settings=["shrinkage.adaptive=true"])
    assert Shrinkage(0.1) in asked


def test_the_sentence_of_an_option() -> None:
    known = by_name([("deep", Deep), ("wide", Deep)])
    assert described(known["depth"]) == "How deep it looks, in layers (2 for deep, wide)."
    assert described(known["far"]) == "Look at all (for deep, wide)."
    assert described(known["share"]) == "Of the units (for deep, wide)."


def test_a_type_that_is_not_there_at_run_time_is_no_option() -> None:
    @dataclass(frozen=True)
    class Odd(LogitMargin):
        other: Missing = None  # type: ignore[name-defined]  # noqa: F821
        many: tuple[int, ...] = ()

    assert options_of(Odd) == {}
    assert options_module.attribute_texts(Odd) == {}
