"""The code of a function of the user, or of a class, tells noise from other noise of its name."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from helpers.problems import inputs, small_classifier

import brittle
from brittle.decisions.function_code import code_digest
from brittle.errors import ParameterError, ResumeError
from brittle.noise import Transform, Transforming
from brittle.scores import MonteCarlo


def _adding(number: float):
    return lambda x, g: x + number * torch.rand(1, generator=g)


class Adds:
    def __init__(self, number: float) -> None:
        self.number = number

    def __call__(self, x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        return x + self.number * torch.rand(1, generator=generator)


class Holds:
    """An object whose `repr` does not show its number."""

    def __init__(self, number: float) -> None:
        self.number = number

    def added(self, x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        return x + self.number


def _object_around(number: float):
    held = Holds(number)
    return lambda x, g: x + held.number


def _network_around(number: float):
    torch.manual_seed(int(number))
    network = torch.nn.Sequential(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()))
    return lambda x, g: network(x)


def _class_of_another_module(number: float):
    module = ModuleType("_another_module")
    exec(f"class Inside:\n    number = {number}", vars(module))
    return lambda x, g, kind=module.Inside: x + kind.number


def _class_without_module(number: float):
    namespace: dict[str, Any] = {"__builtins__": __builtins__}
    exec(f"class Inside:\n    number = {number}\n    def __call__(self, x, g): return x + self.number", namespace)
    return namespace["Inside"]


MAKERS = {
    "one of two on a line": lambda number: [lambda x, g: x + 1, lambda x, g: x + 2][int(number) - 1],
    "around a class of another module": _class_of_another_module,
    "class without a module": _class_without_module,
    "around a number": _adding,
    "object": Adds,
    "partial": lambda number: partial(torch.add, alpha=number),
    "method": lambda number: Holds(number).added,
    "around an object": _object_around,
    "around a network": _network_around,
    "within another, without source": lambda number: eval(f"lambda x, g: (lambda: x + {number})()"),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_the_digest_of_a_function_tells_it_from_others(kind: str) -> None:
    make = MAKERS[kind]
    assert code_digest(make(1.0)) == code_digest(make(1.0))
    assert code_digest(make(1.0)) != code_digest(make(2.0))


LEVEL = 1.0


def by_name(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return x + LEVEL * torch.rand(1, generator=generator)


def around(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return by_name(x, generator)


def inside(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return (lambda: x + LEVEL)()


@pytest.mark.parametrize("function", [by_name, around, inside])
@pytest.mark.parametrize("values", [(1.0, 2.0), (Holds(1.0), Holds(2.0))])
def test_the_digest_follows_names_of_the_module(function, values, monkeypatch) -> None:
    value, changed_value = values
    monkeypatch.setattr(f"{__name__}.LEVEL", value)
    before = code_digest(function)
    assert code_digest(function) == before
    monkeypatch.setattr(f"{__name__}.LEVEL", changed_value)
    assert code_digest(function) != before


def test_the_digest_of_an_object_that_holds_itself_ends() -> None:
    holder = Holds(1.0)
    holder.number = holder  # type: ignore[assignment]
    assert code_digest(holder.added) == code_digest(holder.added)


TYPED = """
from dataclasses import dataclass
from typing import ClassVar

import torch

from brittle.noise import Transforming

LEVEL = {module}


class Base(Transforming):
    added_by_base = {base}


@dataclass(frozen=True)
class Typed(Base):
    name: ClassVar[str] = "define_typed"
    level = {attribute}

    @property
    def half(self):
        return {of_property}

    @staticmethod
    def third():
        return {static}

    def apply(self, x, generator):
        level = {method} + LEVEL + self.level + self.half + self.third() + self.added_by_base
        return x + level * torch.rand(1, generator=generator)
"""
PLACES = ("module", "base", "attribute", "of_property", "static", "method")


def define_typed(**numbers: float) -> type[Transforming]:
    """Define a family as in an interactive session: without a file, so that the class alone tells it from others."""
    session = ModuleType("typed_in_a_session")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, session.__name__, session)
        exec(TYPED.format(**dict.fromkeys(PLACES, 0.1) | numbers), vars(session))
    return session.Typed


@pytest.mark.parametrize("place", PLACES)
def test_the_digest_of_a_class_tells_it_from_others(place: str) -> None:
    assert code_digest(define_typed()) == code_digest(define_typed())
    assert code_digest(define_typed()) != code_digest(define_typed(**{place: 0.2}))


def test_two_functions_of_one_name_are_refused() -> None:
    scores = [MonteCarlo(noise=Transform(_adding(number), name="light"), draws=4, limit=None) for number in (1.0, 2.0)]
    with pytest.raises(ParameterError, match="two functions"):
        brittle.score(small_classifier(), inputs(6), scores)


@pytest.mark.parametrize(
    ("original", "changed", "field"),
    [
        (lambda: Transform(_adding(1.0), name="light"), lambda: Transform(_adding(2.0), name="light"), "code"),
        (lambda: define_typed()(0.5), lambda: define_typed(method=0.2)(0.5), r"code\.class Typed"),
    ],
    ids=["function", "class"],
)
def test_a_run_is_not_resumed_with_other_noise_of_the_same_name(original, changed, field: str, tmp_path: Path) -> None:
    def run(noise: Transforming) -> None:
        score = MonteCarlo(noise=noise, draws=4, limit=None)
        brittle.score(small_classifier(), inputs(6), [score], out=tmp_path / "run", resume=True)

    run(original())
    run(original())
    with pytest.raises(ResumeError, match=field):
        run(changed())
