"""Scores from outside the package: missing attributes and wrong results are refused in a sentence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from helpers.inputs import said
from helpers.problems import inputs, small_classifier

import brittle
from brittle.errors import ParameterError
from brittle.estimate import Estimate
from brittle.measure import Forward, Measurement, Passes
from brittle.noise import Noise
from brittle.scores import Moments, MonteCarlo, Score
from brittle.scores.choose import check_kind
from brittle.scores.one_pass import OnePass, OnePassScore


def refuse(score: Score, fact: str) -> None:
    """Check that a call and a run refuse the score, and name the fact."""
    for use in (
        lambda: score(small_classifier(), inputs(2)),
        lambda: brittle.score(small_classifier(), inputs(2), [score], skip_doctor=True),
    ):
        with pytest.raises(ParameterError, match=re.escape(fact)):
            use()


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        ({"name": "moments"}, "'moments'"),
        ({"name": "My score"}, "'My score'"),
        ({"serves": "class"}, "serves = 'class'"),
    ],
)
def test_a_wrong_attribute_of_a_score_is_named(changes: dict[str, object], fact: str) -> None:
    assert check_kind(said(), "here").name == "mine"
    with pytest.raises(ParameterError, match=f"here .*{re.escape(fact)}"):
        check_kind(said(**changes), "here")
    with pytest.raises(ParameterError, match=re.escape(fact)):
        brittle.score(small_classifier(), inputs(2), [said(**changes)()])
    if fact != "'moments'":
        refuse(said(**changes)(), fact)


@pytest.mark.parametrize("changes", [{"title": 3}, {"safer": "up"}, {"colour": "red"}, {"model": 3}])
def test_attributes_that_a_run_cannot_record_are_refused(changes: dict[str, object]) -> None:
    (name,) = changes
    with pytest.raises(ParameterError, match=f"mine.*{name}"):
        brittle.score(small_classifier(), inputs(2), [said(**changes)()])


def test_a_class_that_is_no_frozen_dataclass_is_refused() -> None:
    class Loose(said()):  # type: ignore[misc]
        name: ClassVar[str] = "loose"

    with pytest.raises(ParameterError, match=r"here .*dataclass"):
        check_kind(Loose, "here")


def test_two_classes_of_one_name_are_refused() -> None:
    with pytest.raises(ParameterError, match="is called 'mine' like Mine"):
        brittle.score(small_classifier(), inputs(2), [said()(), said(title="another")()])


def test_a_field_that_no_table_holds_is_refused() -> None:
    @dataclass(frozen=True)
    class Weighted(said()):  # type: ignore[misc]
        weights: tuple[float, ...] = (1.0,)

    table = brittle.score(small_classifier(), inputs(2), [Moments(0.1, draws=4)])
    heavy: Any = Weighted((2.0,))  # pyright: ignore[reportAbstractUsage] it is not
    assert Weighted().label == "mine"  # pyright: ignore[reportAbstractUsage] it is not
    refuse(heavy, "Weighted leaves weights")
    with pytest.raises(ParameterError, match="Weighted leaves weights"):
        table[heavy]


def test_noise_with_a_field_of_the_score_is_refused() -> None:
    @dataclass(frozen=True)
    class Block(Noise):
        draws: int = 3
        name: ClassVar[str] = "block"

        def draw(self, generator: torch.Generator, size: int) -> torch.Tensor:
            return torch.randn(size, generator=generator)

    with pytest.raises(ParameterError, match=r"block .* draws, as MonteCarlo"):
        MonteCarlo(noise=Block(0.1), limit=None)


@pytest.mark.parametrize("noise", ["uniform", brittle.noise.Gaussian, 0.1, lambda x, generator: x])
def test_anything_but_noise_is_refused(noise: Any) -> None:
    with pytest.raises(ParameterError, match=re.escape(f"{noise!r:.20}")):
        MonteCarlo(noise=noise, limit=None)


def numbers(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


HALF, WHOLE = numbers(0.5, 0.5), torch.tensor([0, 0])


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        (HALF, "returned an object of type Tensor; expected an Estimate"),
        (Estimate(HALF[:1], HALF, HALF, WHOLE, WHOLE), "returned value [1] of torch.float64; expected [2]"),
        (Estimate(HALF, HALF, HALF, WHOLE + 77, WHOLE), "returned the status 77; expected a member of"),
        (Estimate(HALF, HALF, HALF, WHOLE, WHOLE - 1), "returned -1 passes; expected 0 or more"),
        (Estimate(numbers(0.5, torch.nan), HALF, HALF, WHOLE, WHOLE), "returned nan with the interval [0.5, 0.5]"),
        (Estimate(HALF + 1, HALF, HALF + 1, WHOLE, WHOLE), "expected a flip probability within [0, 1]"),
    ],
)
def test_a_malformed_estimate_is_refused(returned: object, sentence: str) -> None:
    refuse(said(quantity="flip_probability", estimate=lambda self, measured, confidence: returned)(), sentence)


@dataclass(frozen=True)
class Wrong(Measurement):
    """A measurement with malformed results."""

    how: str

    def cost(self, network: object) -> Passes:
        return Passes(0)

    @classmethod
    def measure(cls, needs: Any, classifier: object, clean: Any) -> list[Any]:
        if needs[0].how == "raises":
            raise KeyError("lost")
        return {"few": [], "dear": [SimpleNamespace(passes=clean.passes + 5)]}[needs[0].how]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"estimate": lambda self, measured, confidence: 1 / 0}, "Mine.estimate failed: ZeroDivisionError"),
        ({"needs": property(lambda self: 1 / 0)}, "Mine.needs failed: ZeroDivisionError"),
        ({"needs": [Forward()]}, "Mine.needs"),
        ({"needs": (Wrong("raises"),)}, "Wrong.measure failed at line"),
        ({"needs": (Wrong("few"),)}, "Wrong.measure failed: ValueError"),
    ],
)
def test_a_failure_outside_the_package_is_named(changes: dict[str, object], sentence: str) -> None:
    refuse(said(**changes)(), sentence)


def test_passes_that_never_ran_are_refused() -> None:
    fine = Estimate(HALF, HALF, HALF, WHOLE, WHOLE)
    kind = said(needs=(Wrong("dear"),), estimate=lambda self, measured, confidence: fine)
    with pytest.raises(ParameterError, match="Wrong state 10 passes, and the classifier counted 0"):
        brittle.score(small_classifier(), inputs(2), [kind()], skip_doctor=True)


@dataclass(frozen=True)
class Undefined(OnePassScore):
    """A formula of one pass that is NaN at points with finite logits."""

    name: ClassVar[str] = "undefined"
    title = "Undefined"
    quantity = "logit_margin"
    reference = "none"
    serves = "all"
    explanation = "A formula that fails."

    def value(self, one_pass: OnePass) -> torch.Tensor:
        return one_pass.top[0] * torch.nan


def test_a_formula_that_gives_nan_at_finite_logits_is_refused() -> None:
    with pytest.raises(ParameterError) as caught:
        brittle.score(small_classifier(), inputs(4), [Undefined()])
    assert "undefined" in str(caught.value)
