"""Families of one's own: what they promise is looked at, and a broken promise is named."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from helpers import odd_noises
from helpers.laws import estimate
from helpers.noises import SIGMA, SIZE, draws, each, families
from helpers.problems import inputs, linear_network

import brittle
from brittle.errors import ParameterError
from brittle.noise import FAMILIES, Gaussian, Laplace, Noise, at_one, identity
from brittle.noise.stream import check_promise
from brittle.scores import CATALOGUE, MonteCarlo, NoiseScore


@dataclass(frozen=True)
class Half(Noise):
    """Every second coordinate moves: `K` is half the identity, and the family does not say so."""

    name: ClassVar[str] = "half"
    symmetric: ClassVar[bool] = True

    def draw(self, generator: torch.Generator, size: int) -> torch.Tensor:
        return torch.randn(size, generator=generator) * (torch.arange(size) % 2)


@dataclass(frozen=True)
class HalfSaid(Half):
    """The same, with its covariance."""

    name: ClassVar[str] = "half_said"

    def covariance(self, vectors: torch.Tensor) -> torch.Tensor:
        return vectors * (torch.arange(vectors.shape[-1]) % 2)


@dataclass(frozen=True)
class Inherited(Gaussian):
    """Other draws below the covariance of another family."""

    name: ClassVar[str] = "inherited"
    symmetric: ClassVar[bool] = True

    def draw(self, generator: torch.Generator, size: int) -> torch.Tensor:
        return torch.randn(size, generator=generator) * (torch.arange(size) % 2)


noise_scores = pytest.mark.parametrize(
    "kind", [kind for kind in CATALOGUE.values() if issubclass(kind, NoiseScore)], ids=lambda kind: kind.name
)


@noise_scores
@pytest.mark.parametrize("family", [Half, Inherited])
def test_a_score_needs_the_covariance_or_does_without(kind: type[NoiseScore], family: type[Noise]) -> None:
    """Whoever uses `K` refuses a family that does not say it; all others have the same numbers as if it did."""
    if kind.uses_covariance:
        with pytest.raises(ParameterError, match=f"{kind.name} needs the covariance .* {family.name} says") as caught:
            kind(noise=family(SIGMA))
        assert caught.value.code == "parameter"
        return
    classifier = brittle.Classifier(linear_network(3, SIZE))
    x = inputs(2, (SIZE,), dtype=torch.float64)
    silent, said = (estimate(classifier, x, kind(noise=one(SIGMA))) for one in (family, HalfSaid))
    assert torch.equal(silent.value, said.value)


def of_draws(draw: Callable[[torch.Generator, int], object], **said: object) -> Noise:
    """A family of its own with these draws, and what it says of them."""
    body = {"name": "mine", "draw": lambda self, generator, size: draw(generator, size)} | said
    return dataclass(frozen=True)(type("Mine", (Noise,), body))(SIGMA)


def normal(generator: torch.Generator, size: int) -> torch.Tensor:
    return torch.randn(size, generator=generator)


@pytest.mark.parametrize(
    ("draw", "found"),
    [
        (lambda g, n: normal(g, 1), r"expected a draw \[6\] .*found a tensor of shape \[1\]"),
        (lambda g, n: normal(g, n)[0], r"expected a draw \[6\] .*found a tensor of shape \[\]"),
        (lambda g, n: normal(g, n + 1), r"expected a draw \[6\] .*found a tensor of shape \[7\]"),
        (lambda g, n: normal(g, n).tolist(), "found list"),
        (lambda g, n: normal(g, n) * torch.nan, "6 of 6 numbers .* are NaN or infinite"),
    ],
    ids=["one", "scalar", "too many", "list", "NaN"],
)
def test_draws_that_are_no_noise(draw, found: str) -> None:
    with pytest.raises(ParameterError, match=found) as caught:
        draws(of_draws(draw), 1)
    assert caught.value.code == "parameter"


SYMMETRIC: dict[str, object] = {"symmetric": True}


@pytest.mark.parametrize(
    ("draw", "said", "seen"),
    [
        (lambda g, n: normal(g, n) + 0.5, {"covariance": identity}, "the mean of 1024 draws"),
        (lambda g, n: normal(g, n) * 0.7, {"covariance": identity}, "the variance of 1024 draws at sigma 1 is 0.[45]"),
        (lambda g, n: normal(g, 1).expand(n), {"covariance": lambda self, v: v}, "the variance of 1024 draws"),
        (lambda g, n: normal(g, n) + 0.5, SYMMETRIC, "mirror images are"),
        (lambda g, n: normal(g, n) + 0.5, {"normal": True}, "mirror images are"),
        (lambda g, n: -torch.rand(n, generator=g).log() - 1.0, SYMMETRIC, "mirror images are"),
        (odd_noises.three_values, SYMMETRIC, "mirror images are"),
        (odd_noises.product_of_signs, SYMMETRIC, "mirror images are"),
        (lambda g, n: odd_noises.one_exponential(g, n), SYMMETRIC, "mirror images are"),
        (odd_noises.of_torch, SYMMETRIC, "draw 0 differs in 6 of 6 numbers"),
        (odd_noises.of_numpy, {}, "draw 0 differs in 6 of 6 numbers"),
        (odd_noises.Spare(), {}, "draw 0 differs in 6 of 6 numbers"),
        (odd_noises.seeded_again, {}, "1024 draws from one generator are all the same"),
    ],
    ids=["shifted", "small", "dependent", "shifted, symmetric", "shifted, normal", "exponential", "three values",
         "product of signs", "one exponential", "torch's generator", "NumPy's generator", "spare", "one draw"],
)  # fmt: skip
def test_a_family_that_breaks_its_promise(draw, said: dict[str, object], seen: str) -> None:
    with pytest.raises(ParameterError, match=seen) as caught:
        draws(of_draws(draw, **said), 1)
    assert caught.value.code == "parameter"


def test_a_family_is_symmetric_where_that_is_said_beside_its_draws() -> None:
    class Other(Laplace):
        name = "other"

        def draw(self, generator: torch.Generator, size: int) -> torch.Tensor:
            return -torch.rand(size, generator=generator).log() - 1.0

    class Renamed(Laplace):
        name = "renamed"

    assert [of_draws(normal, **said).is_symmetric for said in ({}, SYMMETRIC, {"normal": True})] == [False, True, True]
    assert not Other(SIGMA).is_symmetric
    assert Renamed(SIGMA).is_symmetric
    assert all(noise.is_symmetric for noise in families())


@noise_scores
def test_a_score_that_draws_pairs_says_so_where_a_family_is_not_symmetric(kind: type[NoiseScore]) -> None:
    """It has a covariance, so that the pairs alone are missing."""
    noise = of_draws(odd_noises.three_values, covariance=identity)
    if kind.name not in ("moments", "mmse", "mmse_mvs"):
        assert not kind.uses_pairs
        return
    with pytest.raises(ParameterError, match=f"{kind.name} draws pairs") as caught:
        kind(noise=noise)
    assert caught.value.code == "parameter"


@each
@pytest.mark.parametrize("size", [SIZE, 600])
def test_a_family_that_keeps_its_promise(noise: Noise, size: int) -> None:
    """The draws are fixed, so this cannot fail by chance."""
    if size == SIZE or noise.name in FAMILIES:
        check_promise(at_one(noise), size, torch.device("cpu"))


def test_families_that_could_not_be_told_apart() -> None:
    class Nameless(Half):
        name = ""

    class Called(Half):
        name = "gaussian"

    class Beside(HalfSaid):
        name = "beside"

        def __init__(self, sigma: float, width: float) -> None:
            super().__init__(sigma)
            object.__setattr__(self, "width", width)

    for family in (Nameless, Called):
        with pytest.raises(ParameterError, match=family.__name__):
            family(SIGMA)
    with pytest.raises(ParameterError, match="keeps width beside its fields"):
        MonteCarlo(noise=Beside(SIGMA, 2.0))


def test_the_example_of_the_documentation() -> None:
    page = Path(__file__).parents[2].joinpath("docs", "estimators.md").read_text(encoding="utf-8")
    (example,) = (one for one in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL) if "class Stripes" in one)
    found: dict = {}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        exec(compile(example, "docs/estimators.md", "exec", dont_inherit=True), found)
    wide = found["table"].wide()
    taylor, moments = (
        wide[f"{name}.p_robust"]
        for name in (
            "taylor(noise=stripes, period=4, sigma=0.1)",
            "moments(draws=100, noise=stripes, period=4, sigma=0.1)",
        )
    )
    assert float((taylor - moments).abs().max()) < 0.05
