"""Families of one's own: what they promise is looked at, and a broken promise is named."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from helpers.laws import estimate
from helpers.noises import SIGMA, SIZE, draws, each
from helpers.problems import inputs, linear_network

import brittle
from brittle.errors import ParameterError
from brittle.noise import FAMILIES, Gaussian, Noise, Stream, at_one, identity
from brittle.noise.promise import check_promise
from brittle.scores import CATALOGUE, MonteCarlo, NoiseScore, Taylor


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
        assert caught.value.code == "noise_covariance"
        return
    classifier = brittle.Classifier(linear_network(3, SIZE))
    x = inputs(2, (SIZE,), dtype=torch.float64)
    silent, said = (estimate(classifier, x, kind(noise=one(SIGMA))) for one in (family, HalfSaid))
    assert torch.equal(silent.value, said.value)


def test_scores_that_do_without_a_covariance() -> None:
    assert {kind.name for kind in CATALOGUE.values() if issubclass(kind, NoiseScore) and not kind.uses_covariance} == {
        "monte_carlo", "moments", "probability_change", "shrinkage",
    }  # fmt: skip


def test_taylor_with_a_covariance_that_is_said() -> None:
    """A linear model: the margin is normal, and every second weight adds to its variance."""
    network = linear_network(2, SIZE)
    x = inputs(4, (SIZE,), dtype=torch.float64)
    found = estimate(brittle.Classifier(network), x, Taylor(noise=HalfSaid(2.0))).value
    logits, weights = network(x), network.weight[0] - network.weight[1]
    margin = (logits[:, 0] - logits[:, 1]).abs()
    assert torch.allclose(found, torch.special.ndtr(-margin / (2.0 * weights[1::2].norm())), atol=1e-6)
    assert not torch.allclose(found, estimate(brittle.Classifier(network), x, Taylor(2.0)).value, atol=1e-2)


def test_no_measurement_takes_a_covariance_that_is_not_said() -> None:
    classifier = brittle.Classifier(linear_network(3, SIZE))
    for family in (Half(SIGMA), Inherited(SIGMA)):
        with pytest.raises(ParameterError, match="says none beside its draws"):
            brittle.linearize(classifier, torch.zeros(1, SIZE, dtype=torch.float64), noise=family, draws=4)
        assert classifier.passes == 0
    with pytest.raises(ParameterError, match=r"write Half\.covariance"):
        Half(SIGMA).covariance(torch.ones(SIZE))
    assert HalfSaid(0.1).shape == HalfSaid(0.2).shape == HalfSaid(1.0)


def of_draws(draw: Callable[[torch.Generator, int], object], covariance: object = identity) -> Noise:
    """A family of its own with these draws."""
    body = {"name": "mine", "draw": lambda self, generator, size: draw(generator, size), "covariance": covariance}
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
    assert caught.value.code == "noise_draw"


def test_a_draw_that_turns_bad_later() -> None:
    calls: list[int] = []

    def draw(generator: torch.Generator, size: int) -> torch.Tensor:
        calls.append(size)
        return normal(generator, size) * (torch.nan if len(calls) > 600 else 1.0)

    stream = Stream(of_draws(draw), torch.zeros(1, SIZE), ("a",), 0, "test")
    with pytest.raises(ParameterError, match="NaN or infinite"):
        stream.draw(200)


@pytest.mark.parametrize(
    ("draw", "covariance", "seen"),
    [
        (lambda g, n: normal(g, n) + 0.5, identity, "the mean of 512 draws"),
        (lambda g, n: -torch.rand(n, generator=g).log() - 1.0, identity, "the mean sign of a coordinate"),
        (lambda g, n: normal(g, n) * 0.7, identity, "the variance of 512 draws at sigma 1 is 0.[45]"),
        (lambda g, n: normal(g, 1).expand(n), lambda self, v: v, "the variance of 512 draws"),
    ],
    ids=["shifted", "skew", "small", "dependent"],
)
def test_a_family_that_breaks_its_promise(draw, covariance, seen: str) -> None:
    with pytest.raises(ParameterError, match=seen) as caught:
        draws(of_draws(draw, covariance), 1)
    assert caught.value.code == "noise_promise"


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

    for family, code in ((Nameless, "noise_name"), (Called, "noise_name")):
        with pytest.raises(ParameterError) as caught:
            family(SIGMA)
        assert caught.value.code == code
    with pytest.raises(ParameterError, match="keeps width beside its fields"):
        MonteCarlo(noise=Beside(SIGMA, 2.0))


def test_fields_of_a_family_are_written() -> None:
    @dataclass(frozen=True)
    class Wide(HalfSaid):
        width: float = 1.0

        name: ClassVar[str] = "wide"

    assert Wide(0.1, 2.0).parameters == {"sigma": 0.1, "noise": "wide", "width": 2.0}
    assert Wide(0.1, 2.0) != Wide(0.1, 3.0)
    assert at_one(Wide(0.1, 2.0)) == Wide(1.0, 2.0)


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
