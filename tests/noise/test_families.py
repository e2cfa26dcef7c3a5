"""Noise families: draws have the declared covariance, depend on the point alone, and keep their promises."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from helpers import odd_noises
from helpers.laws import estimate
from helpers.problems import inputs, linear_network
from torch import Tensor

import brittle
from brittle.errors import ParameterError
from brittle.noise import DiagonalGaussian, FactorGaussian, Gaussian, Laplace, Noise, Sphere, Stream, Swap
from brittle.noise.base import identity
from brittle.noise.families import FAMILIES
from brittle.noise.stream import check_promise
from brittle.scores import MonteCarlo, NoiseScore
from brittle.scores.catalogue import CATALOGUE

SIZE, DRAWS, SIGMA = 6, 20000, 0.3
ROOT = torch.randn(SIZE, SIZE, generator=torch.Generator().manual_seed(5)) * 0.5
KINDS: list[Noise] = [
    *(family(SIGMA) for family in FAMILIES.values()),
    DiagonalGaussian(SIGMA, torch.linspace(0.0, 2.0, SIZE)),
    FactorGaussian(SIGMA, ROOT[:, :3]),
]
all_kinds = pytest.mark.parametrize("noise", KINDS, ids=lambda noise: noise.name)
noise_scores = pytest.mark.parametrize(
    "kind", [kind for kind in CATALOGUE.values() if issubclass(kind, NoiseScore)], ids=lambda kind: kind.name
)


def stream(noise: Noise, *ids: str, size: int = SIZE, seed: int = 0) -> Stream:
    return Stream(noise, torch.zeros(len(ids), size, dtype=torch.float32), ids, seed, "test")


def draws(noise: Noise, count: int) -> Tensor:
    return stream(noise, "a").draw(count)[0]


@pytest.mark.every_other
@all_kinds
def test_sampler_has_the_covariance_of_the_action(noise: Noise) -> None:
    """An entry is off by more than 6 standard errors of 20,000 draws once in 1e7 runs; the seed is fixed."""
    sample = draws(noise, DRAWS).double()
    expected = noise.sigma**2 * noise.covariance(torch.eye(SIZE, dtype=torch.float64))
    largest = float(expected.diagonal().max())
    assert torch.allclose(sample.mean(0), torch.zeros(SIZE, dtype=torch.float64), atol=6 * (largest / DRAWS) ** 0.5)
    assert torch.allclose(sample.T @ sample / DRAWS, expected, atol=6 * largest * (6.0 / DRAWS) ** 0.5)


@pytest.mark.parametrize(
    ("noise", "size"),
    [(noise, size) for noise in KINDS for size in ((40, 48) if noise.name in FAMILIES else (SIZE,))],
    ids=lambda value: getattr(value, "name", str(value)),
)  # below 16 numbers both dtypes draw the same numbers
def test_draws_depend_on_the_point_and_their_number_alone(noise: Noise, size: int) -> None:
    """Not on the batch, the number of draws at a time, earlier draws, or the default dtype."""
    together = stream(noise, "a", "b", size=size).draw(6)
    assert not torch.equal(together[0], together[1])
    assert not torch.equal(stream(noise, "a", size=size, seed=1).draw(6)[0], together[0])
    torch.set_default_dtype(torch.float64)
    try:
        alone = stream(noise, "b", size=size)
        assert torch.equal(torch.cat([alone.draw(count) for count in (1, 3, 2)], dim=1)[0], together[1])
    finally:
        torch.set_default_dtype(torch.float32)
    later = stream(noise, "a", "b", size=size)
    later.draw(3)
    assert torch.equal(later.draw(2), together[:, 3:5])
    later.keep([1])
    assert torch.equal(later.draw(1)[0], together[1, 5:])


@pytest.mark.parametrize("size", [40, 48])
def test_normal_draws_are_those_of_double_precision(size: int) -> None:
    """Single precision writes whole blocks of 16 numbers in place, another path to the same draws."""
    kinds = (torch.float32, torch.float64)
    single, double = (Stream(Gaussian(SIGMA), torch.zeros(1, size, dtype=kind), ["a"], 0, "test") for kind in kinds)
    for count in (2, 3):
        assert torch.allclose(single.draw(count), double.draw(count).float(), rtol=1e-6, atol=0)


def test_sphere_and_ball_are_uniform_in_radius() -> None:
    """The share inside half the radius is 2^-n; with 20,000 draws 6 standard errors are 0.0053."""
    assert torch.allclose(draws(Sphere(SIGMA), 9).norm(dim=-1), torch.tensor(SIGMA * SIZE**0.5))
    radius = draws(FAMILIES["ball"](SIGMA), DRAWS).norm(dim=-1) / (SIGMA * (SIZE + 2) ** 0.5)
    assert float(radius.max()) <= 1.0 + 1e-6
    assert float((radius < 0.5).double().mean()) == pytest.approx(2.0**-SIZE, abs=0.0053)


def test_a_wrong_size_is_an_error() -> None:
    with pytest.raises(ParameterError, match="the scale has 3 coordinates, the input 6"):
        draws(DiagonalGaussian(SIGMA, torch.ones(3)), 1)


# Custom families: their promises are checked, and a broken promise is named.


@dataclass(frozen=True)
class Inherited(Gaussian):
    """Other draws under the covariance of another family: `K` is half the identity, which it does not declare."""

    name: ClassVar[str] = "inherited"
    symmetric: ClassVar[bool] = True

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        return torch.randn(size, generator=generator) * (torch.arange(size) % 2)


@dataclass(frozen=True)
class Stated(Inherited):
    """The same draws with their covariance."""

    name: ClassVar[str] = "stated"

    def covariance(self, vectors: Tensor) -> Tensor:
        return vectors * (torch.arange(vectors.shape[-1]) % 2)


def make_family(draw, **declared: object) -> Noise:
    """Make a custom family with these draws and declarations."""
    body = {"name": "mine", "draw": lambda self, generator, size: draw(generator, size)} | declared
    return dataclass(frozen=True)(type("Mine", (Noise,), body))(SIGMA)


@noise_scores
def test_a_score_needs_covariance_and_pairs_or_does_without(kind: type[NoiseScore]) -> None:
    """Scores that use `K` refuse a family that does not declare it; all others have the numbers of one that does."""
    skew = make_family(odd_noises.three_values, covariance=identity)
    if kind.name in ("moments", "mmse", "mmse_mvs"):
        with pytest.raises(ParameterError, match=f"{kind.name} draws pairs"):
            kind(noise=skew)
    else:
        assert not kind.uses_pairs
    if kind.uses_covariance:
        with pytest.raises(ParameterError, match=f"{kind.name} needs the covariance .* inherited declares"):
            kind(noise=Inherited(SIGMA))
        return
    classifier = brittle.Classifier(linear_network(3, SIZE))
    x = inputs(2, (SIZE,), dtype=torch.float64)
    silent, stated = (estimate(classifier, x, kind(noise=family(SIGMA))) for family in (Inherited, Stated))
    assert torch.equal(silent.value, stated.value)


def normal(generator: torch.Generator, size: int) -> Tensor:
    return torch.randn(size, generator=generator)


SYMMETRIC: dict[str, object] = {"symmetric": True}
BROKEN = {
    "one": (lambda g, n: normal(g, 1), {}, r"expected a draw \[6\] .*found a tensor of shape \[1\]"),
    "list": (lambda g, n: normal(g, n).tolist(), {}, "found list"),
    "NaN": (lambda g, n: normal(g, n) * torch.nan, {}, "6 of 6 numbers .* are NaN or infinite"),
    "shifted": (lambda g, n: normal(g, n) + 0.5, {"covariance": identity}, "the mean of 1024 draws"),
    "small": (lambda g, n: normal(g, n) * 0.7, {"covariance": identity}, "the variance of 1024 draws at .* is 0.[45]"),
    "dependent": (lambda g, n: normal(g, 1).expand(n), {"covariance": lambda self, v: v}, "the variance of 1024 draws"),
    "shifted, symmetric": (lambda g, n: normal(g, n) + 0.5, SYMMETRIC, "mirror images are"),
    "shifted, normal": (lambda g, n: normal(g, n) + 0.5, {"normal": True}, "mirror images are"),
    "three values": (odd_noises.three_values, SYMMETRIC, "mirror images are"),
    "product of signs": (odd_noises.product_of_signs, SYMMETRIC, "mirror images are"),
    "torch's generator": (odd_noises.of_torch, SYMMETRIC, "draw 0 differs in 6 of 6 numbers"),
    "spare": (odd_noises.Spare(), {}, "draw 0 differs in 6 of 6 numbers"),
    "one draw": (odd_noises.seeded_again, {}, "1024 draws from one generator are all the same"),
}  # fmt: skip


@pytest.mark.every_other
@pytest.mark.parametrize("name", BROKEN)
def test_a_family_that_breaks_its_promise_is_refused(name: str) -> None:
    draw, declared, message = BROKEN[name]
    with pytest.raises(ParameterError, match=message) as caught:
        draws(make_family(draw, **declared), 1)
    assert caught.value.code == "parameter"


@pytest.mark.every_other
@all_kinds
@pytest.mark.parametrize("size", [SIZE, 600])
def test_a_family_that_keeps_its_promise_passes(noise: Noise, size: int) -> None:
    """The draws are fixed, so this cannot fail by chance."""
    if size == SIZE or noise.name in FAMILIES:
        check_promise(noise, size, torch.device("cpu"))


def test_a_family_is_symmetric_where_its_draws_declare_it() -> None:
    class Other(Laplace):
        name = "other"

        def draw(self, generator: torch.Generator, size: int) -> Tensor:
            return -torch.rand(size, generator=generator).log() - 1.0

    class Renamed(Laplace):
        name = "renamed"

    assert not make_family(normal).is_symmetric
    assert all(make_family(normal, **declared).is_symmetric for declared in (SYMMETRIC, {"normal": True}))
    assert not Other(SIGMA).is_symmetric
    assert Renamed(SIGMA).is_symmetric
    assert not Inherited(SIGMA).normal
    assert all(noise.is_symmetric for noise in KINDS)


def test_indistinguishable_families_are_refused() -> None:
    class Nameless(Inherited):
        name = ""

    class Called(Inherited):
        name = "gaussian"

    class Beside(Stated):
        name = "beside"

        def __init__(self, sigma: float, width: float) -> None:
            super().__init__(sigma)
            object.__setattr__(self, "width", width)

    for family in (Nameless, Called):
        with pytest.raises(ParameterError, match=family.__name__):
            family(SIGMA)
    with pytest.raises(ParameterError, match="keeps width beside its fields"):
        MonteCarlo(noise=Beside(SIGMA, 2.0), limit=None)


# A subclass of a family of brittle does not inherit the properties of its draws.

POINTS, COPIES = 30, 100


def count_covered(noise: Noise, x: Any, truth: float) -> int:
    """Count the points whose interval covers `truth`, the probability that the second number, 0.5, changes its sign."""
    network = torch.nn.Linear(2, 2).eval()
    with torch.no_grad():
        network.weight.copy_(torch.tensor([[0.0, 1.0], [0.0, -1.0]]))
        network.bias.zero_()
    classifier = brittle.Classifier(network, bounds="none")
    column = brittle.score(classifier, x, [MonteCarlo(noise=noise, draws=COPIES, limit=None)])["monte_carlo"]
    return int(((column.low <= truth) & (column.high >= truth)).sum())


@dataclass(frozen=True)
class Mixed(Gaussian):
    """Uncorrelated coordinates of variance 1: the first is 10 or -10 in 1% of the draws, else 0, the others 1 or -1."""

    name: ClassVar[str] = "mixed"
    symmetric: ClassVar[bool] = True
    covariance = identity

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        drawn = torch.randint(0, 2, (size,), generator=generator) * 2.0 - 1.0
        drawn[0] *= 10.0 * (torch.rand(1, generator=generator) < 0.01).float().item()
        return drawn


def test_unlike_coordinates_keep_their_places_where_some_stay() -> None:
    """More than five of 30 intervals at 99% miss once in 2e5."""
    points = brittle.data.array_points(torch.full((POINTS, 2), 0.5), mask=torch.tensor([[0, 1]]).expand(POINTS, 2))
    assert count_covered(Mixed(1.0), points, 0.5) >= POINTS - 5


@dataclass(frozen=True, init=False)
class SwapAndShake(Swap):
    name: ClassVar[str] = "swap_and_shake"

    def apply(self, x: Tensor, generator: torch.Generator) -> Tensor:
        return super().apply(x, generator) + torch.randn(x.shape, generator=generator)


def test_a_subclass_of_swap_may_move_more_than_the_columns() -> None:
    x = torch.full((POINTS, 2), 0.5) + 1e-4 * torch.rand(POINTS, 2)
    assert count_covered(SwapAndShake(0.2, x, torch.tensor([True, False])), x, 0.3085) >= POINTS - 5


def test_the_example_of_the_documentation() -> None:
    page = Path(__file__).parents[2].joinpath("docs", "reference", "noise.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    (example,) = (block for block in blocks if "class Stripes" in block)
    namespace: dict = {}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        exec(compile(example, "docs/reference/noise.md", "exec", dont_inherit=True), namespace)
    setting = "noise=stripes, period=4, sigma=0.1)"
    taylor, moments = (
        namespace["table"].frame(whole=True)[f"{name}{setting}.p_robust"] for name in ("taylor(", "moments(draws=100, ")
    )
    assert float((taylor - moments).abs().max()) < 0.05
