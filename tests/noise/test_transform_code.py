"""The code of a function of the user, or of a class, tells noise from other noise of its name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest
import torch
from helpers.problems import inputs, small_classifier

import brittle
from brittle.errors import ParameterError, ResumeError
from brittle.noise import Transform, Transforming
from brittle.scores import MonteCarlo


def _adding(number: float):
    return lambda x, g: x + number * torch.rand(1, generator=g)


def doubling(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return 2 * x


def without_source(number: float):
    return eval(f"lambda x, g: x + {number} * torch.rand(1, generator=g)", {"torch": torch})


def test_the_code_of_a_function_is_that_of_its_source() -> None:
    """The same in every call; without a source it is known by itself alone."""
    codes = [Transform(function, name="f").code for function in (doubling, partial(doubling), LIGHT)]
    assert codes[0] == codes[1] != codes[2]
    one, other = without_source(1.0), without_source(1.0)
    assert Transform(one, name="light").code == Transform(one, name="light").code
    assert Transform(one, name="light").code != Transform(other, name="light").code


@dataclass(frozen=True)
class Typed(Transforming):
    name: ClassVar[str] = "typed"

    def apply(self, x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        return x + torch.rand(1, generator=generator)


def typed() -> Transforming:
    """A family that stands in no file and has no source, as where `exec` defines it."""
    session = ModuleType("typed_in_a_session")
    kind: Any = type("Typed", (Typed,), {"__module__": session.__name__})
    return dataclass(frozen=True)(kind)(0.5)


def test_two_functions_of_one_name_are_refused() -> None:
    scores = [MonteCarlo(noise=Transform(_adding(number), name="light"), draws=4) for number in (1.0, 2.0)]
    with pytest.raises(ParameterError, match="two functions"):
        brittle.score(small_classifier(), inputs(6), scores)


FAMILY, LIGHT = typed(), _adding(1.0)


@pytest.mark.parametrize(
    ("one", "other", "named"),
    [
        (lambda: Transform(LIGHT, name="light"), lambda: Transform(doubling, name="light"), "code"),
        (lambda: FAMILY, typed, r"code\.class Typed"),
    ],
    ids=["function", "class"],
)
def test_a_run_is_not_resumed_with_other_noise_of_the_same_name(one, other, named: str, tmp_path: Path) -> None:
    def run(noise: Transforming) -> None:
        score = MonteCarlo(noise=noise, draws=4)
        brittle.score(small_classifier(), inputs(6), [score], out=tmp_path / "run", resume=True)

    run(one())
    run(one())
    with pytest.raises(ResumeError, match=named):
        run(other())
