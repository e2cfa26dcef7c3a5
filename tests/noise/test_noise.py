"""Noise families: sampler and covariance action agree, and draws are keyed by point."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from helpers.laws import estimate
from helpers.problems import inputs, linear_network

import brittle
from brittle.errors import ParameterError
from brittle.noise import (
    FAMILIES,
    DiagonalGaussian,
    FactorGaussian,
    FunctionGaussian,
    Gaussian,
    Noise,
    Sphere,
    Stream,
    at_one,
    identity,
)
from brittle.noise.promise import check_promise
from brittle.scores import CATALOGUE, MonteCarlo, NoiseScore, Taylor

SIZE, DRAWS, SIGMA = 6, 20000, 0.3


def root() -> torch.Tensor:
    return torch.randn(SIZE, SIZE, generator=torch.Generator().manual_seed(5)) * 0.5


def families() -> list[Noise]:
    a = root()
    return [
        *(family(SIGMA) for family in FAMILIES.values()),
        DiagonalGaussian(SIGMA, torch.linspace(0.0, 2.0, SIZE)),
        FactorGaussian(SIGMA, a[:, :3]),
        FunctionGaussian(SIGMA, lambda v: v @ (a @ a.T).to(v), lambda u: a @ u),
    ]


each = pytest.mark.parametrize("noise", families(), ids=lambda noise: noise.name)


def draws(noise: Noise, count: int, ids: tuple[str, ...] = ("a",), seed: int = 0) -> torch.Tensor:
    return Stream(noise, torch.zeros(len(ids), SIZE, dtype=torch.float32), ids, seed, "test").draw(count)


@each
def test_sampler_has_the_covariance_of_the_action(noise: Noise) -> None:
    """With 20,000 draws an entry is off by more than 6 standard errors once in 1e7 runs; the seed is fixed."""
    found = draws(noise, DRAWS)[0].double()
    expected = noise.sigma**2 * noise.covariance(torch.eye(SIZE, dtype=torch.float64))
    largest = float(expected.diagonal().max())
    assert torch.allclose(found.mean(0), torch.zeros(SIZE, dtype=torch.float64), atol=6 * (largest / DRAWS) ** 0.5)
    assert torch.allclose(found.T @ found / DRAWS, expected, atol=6 * largest * (6.0 / DRAWS) ** 0.5)


@each
def test_draws_depend_on_the_point_alone(noise: Noise) -> None:
    together = draws(noise, 5, ("a", "b", "c"))
    assert torch.equal(draws(noise, 5, ("b",))[0], together[1])
    assert not torch.equal(together[0], together[1])
    assert not torch.equal(draws(noise, 5, ("a",), seed=1)[0], together[0])


@each
def test_more_draws_begin_with_the_fewer(noise: Noise) -> None:
    stream = Stream(noise, torch.zeros(1, SIZE), ("a",), 0, "test")
    pieces = torch.cat([stream.draw(count) for count in (1, 3, 2)], dim=1)
    assert torch.equal(pieces, draws(noise, 6))


def test_one_stream_at_all_sigma() -> None:
    assert torch.allclose(draws(Gaussian(0.2), 4), 2 * draws(Gaussian(0.1), 4))


def test_sphere_has_its_radius() -> None:
    assert torch.allclose(draws(Sphere(SIGMA), 9).norm(dim=-1), torch.tensor(SIGMA * SIZE**0.5))


def test_ball_is_uniform_in_radius() -> None:
    """The share inside half the radius is 2^-n; with 20,000 draws 6 standard errors are 0.0053."""
    radius = draws(FAMILIES["ball"](SIGMA), DRAWS)[0].norm(dim=-1) / (SIGMA * (SIZE + 2) ** 0.5)
    assert float(radius.max()) <= 1.0 + 1e-6
    assert float((radius < 0.5).double().mean()) == pytest.approx(2.0**-SIZE, abs=0.0053)


def test_isotropic_families_share_one_shape() -> None:
    assert {family(SIGMA).shape for family in FAMILIES.values()} == {None}
    scales = torch.ones(SIZE)
    assert DiagonalGaussian(0.1, scales).shape == DiagonalGaussian(0.2, scales.clone()).shape
    assert DiagonalGaussian(0.1, scales).shape != DiagonalGaussian(0.1, 2 * scales).shape


@each
def test_the_default_dtype_changes_no_draw(noise: Noise) -> None:
    # Fewer than 16 numbers at a time are drawn alike in both.
    like = torch.zeros(1, 40 if noise.name in FAMILIES else SIZE, dtype=torch.float32)
    expected = Stream(noise, like, ("a",), 0, "test").draw(3)
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.equal(Stream(noise, like, ("a",), 0, "test").draw(3), expected)
    finally:
        torch.set_default_dtype(torch.float32)


def test_wrong_sizes_are_said() -> None:
    with pytest.raises(ParameterError, match="the scale has 3 coordinates, the input 6"):
        draws(DiagonalGaussian(SIGMA, torch.ones(3)), 1)
    with pytest.raises(ParameterError, match="sampled scores need `root`"):
        draws(FunctionGaussian(SIGMA, lambda v: v), 1)


@dataclass(frozen=True)
class Half(Noise):
    """Every second coordinate moves: `K` is half the identity, and the family does not say so."""

    name: ClassVar[str] = "half"

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
        "monte_carlo", "moments", "probability_change",
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
    ("draw", "seen"),
    [
        (lambda g, n: normal(g, 1), r"a tensor of shape \[1\]; \[6\]"),
        (lambda g, n: normal(g, n)[0], r"a tensor of shape \[\]; \[6\]"),
        (lambda g, n: normal(g, n + 1), r"a tensor of shape \[7\]; \[6\]"),
        (lambda g, n: normal(g, n).tolist(), "is list"),
        (lambda g, n: normal(g, n) * torch.nan, "6 of 6 numbers .* are NaN or infinite"),
    ],
    ids=["one", "scalar", "too many", "list", "NaN"],
)
def test_draws_that_are_no_noise(draw, seen: str) -> None:
    with pytest.raises(ParameterError, match=seen) as caught:
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
    (example,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
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
