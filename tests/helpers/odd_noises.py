"""Odd noises, and networks that need odd noise; the truth of each comes from a plain loop with that noise."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from helpers.odd_parts import OddNetwork, small, two_classes
from torch import Tensor, nn
from torch.nn import functional

from brittle.model.bounds import BoundsLike
from brittle.noise import DiagonalGaussian, FactorGaussian, Gaussian, Noise, PerFeature, Swap, Transform

KINDS = 12
"""Categories of a column."""

NUMBERS = torch.tensor([1.0, 1.0, 0.0, 0.0])
"""1 for the columns of numbers of a table, 0 for those of categories."""

VALUES, CHANCES = (-1.0, 0.5, 2.0), (1 / 2, 1 / 3, 1 / 6)
"""Draws of mean 0 that are as often negative as positive, and are not symmetric."""

Copies = Callable[[np.random.Generator, Tensor, float, int], np.ndarray]
"""Function that draws a number of noisy copies of an input at a sigma, by NumPy."""


@dataclass(frozen=True, kw_only=True)
class OddNoise(OddNetwork):
    """A network with its noise.

    Attributes:
        noise: the noise at a sigma for these inputs.
        copies: its noisy copies of an input, drawn without `brittle`.
        bounds: bounds of the inputs.
    """

    noise: Callable[[float, Tensor], Noise]
    copies: Copies
    bounds: BoundsLike = "none"
    family: str = "noise"


# Functions of the input, whose numbers come from several generators.


def _by_both(name: str, draws: Callable[[Tensor, torch.Generator], Tensor]) -> tuple[str, Any, Copies]:
    """Return noise that adds standard normal numbers of two generators: variance 2 where these are independent."""

    def noise(sigma: float, inputs: Tensor) -> Noise:
        return Transform(lambda x, g: x + sigma * draws(x, g), name="both", parameters={"sigma": sigma})

    def copies(rng: np.random.Generator, x: Tensor, sigma: float, count: int) -> np.ndarray:
        return x.numpy() + sigma * np.sqrt(2.0) * rng.standard_normal((count, *x.shape))

    return name, noise, copies


def _numpy(x: Tensor) -> Tensor:
    return torch.from_numpy(np.random.standard_normal(x.shape)).float()  # noqa: NPY002


def _python(x: Tensor) -> Tensor:
    return torch.tensor([random.gauss(0, 1) for _ in range(x.numel())]).view_as(x)


def _of_uniform(u: Tensor) -> Tensor:
    """Turn uniform numbers into standard normal ones."""
    return torch.special.ndtri(u.double().clamp(1e-12, 1 - 1e-12)).float()


def _own(x: Tensor, g: torch.Generator) -> Tensor:
    return torch.randn(x.shape, generator=g)


STREAMS = [
    _by_both("own and torch's", lambda x, g: _own(x, g) + torch.randn(x.shape)),
    _by_both("own less torch's", lambda x, g: _own(x, g) - torch.randn(x.shape)),
    _by_both("own less NumPy's", lambda x, g: _own(x, g) - _numpy(x)),
    _by_both("own less Python's", lambda x, g: _own(x, g) - _python(x)),
    _by_both("torch's less NumPy's", lambda x, g: torch.randn(x.shape) - _numpy(x)),
    _by_both("torch's less NumPy's, uniform",
             lambda x, g: _of_uniform(torch.rand(x.shape, dtype=torch.float64))
             - _of_uniform(torch.from_numpy(np.random.random_sample(x.shape)))),  # noqa: NPY002
    _by_both("NumPy's less Python's", lambda x, g: _numpy(x) - _python(x)),
]  # fmt: skip


# Families that are added.


def family(draw: Callable[[torch.Generator, int], Tensor], **fields: object) -> Callable[[float, Tensor], Noise]:
    """Return a family of noise with these draws at sigma 1 and these `fields`."""
    body = {"name": "odd", "draw": lambda self, generator, size: draw(generator, size)} | fields
    kind = dataclass(frozen=True)(type("Odd", (Noise,), body))
    return lambda sigma, inputs: kind(sigma)


def _scaled(draws: Callable[[np.random.Generator, int, int], np.ndarray]) -> Copies:
    return lambda rng, x, sigma, count: x.numpy() + sigma * draws(rng, count, x.numel())


def three_values(generator: torch.Generator, size: int) -> Tensor:
    """Draw `VALUES` with their chances, independently in each coordinate."""
    places = torch.multinomial(torch.tensor(CHANCES), size, replacement=True, generator=generator)
    return torch.tensor(VALUES)[places]


def one_exponential(generator: torch.Generator, size: int) -> Tensor:
    """Draw one exponential number, less its mean, for all coordinates."""
    return (-torch.rand(1, generator=generator).clamp_min(1e-12).log() - 1.0).expand(size)


def beside_zero(generator: torch.Generator, size: int) -> Tensor:
    """Draw normal numbers of mean 1."""
    return 1.0 + torch.randn(size, generator=generator)


def product_of_signs(generator: torch.Generator, size: int) -> Tensor:
    """Draw two signs and their product: each alone and each two are symmetric, and all three are not."""
    signs = torch.randint(0, 2, (2,), generator=generator) * 2.0 - 1.0
    return torch.cat((signs, signs.prod(dim=0, keepdim=True), torch.zeros(size - 3)))


def of_torch(generator: torch.Generator, size: int) -> Tensor:
    """Draw from the global generator of PyTorch."""
    return torch.randn(size)


def of_numpy(generator: torch.Generator, size: int) -> Tensor:
    """Draw from the global generator of NumPy."""
    return torch.from_numpy(np.random.standard_normal(size)).float()  # noqa: NPY002


def seeded_again(generator: torch.Generator, size: int) -> Tensor:
    """Return the same draw in every call."""
    return torch.randn(size, generator=torch.Generator().manual_seed(generator.initial_seed()))


class Spare:
    """Draws in pairs, as those of Box and Muller: every second one was kept from the call before."""

    def __init__(self) -> None:
        self.rest: Tensor | None = None

    def __call__(self, generator: torch.Generator, size: int) -> Tensor:
        if self.rest is not None:
            draw, self.rest = self.rest, None
            return draw
        draw, self.rest = torch.randn(2, size, generator=generator)
        return draw


def _chosen(rng: np.random.Generator, count: int, size: int) -> np.ndarray:
    return rng.choice(VALUES, (count, size), p=CHANCES)


def _one_exponential(rng: np.random.Generator, count: int, size: int) -> np.ndarray:
    return np.repeat(rng.exponential(size=(count, 1)) - 1.0, size, axis=1)


def _normal(rng: np.random.Generator, count: int, size: int) -> np.ndarray:
    return rng.standard_normal((count, size))


SYMMETRIC: dict[str, object] = {"symmetric": True}
ADDED: dict[str, tuple[Callable[[float, Tensor], Noise], Copies, tuple[str, ...]]] = {
    "three values": (family(three_values), _scaled(_chosen), ()),
    "three values, their covariance said": (
        family(three_values, covariance=lambda self, v: 1.25 * v), _scaled(_chosen), ()),
    "one exponential number": (family(one_exponential), _scaled(_one_exponential), ()),
    "one exponential number, said to be symmetric": (
        family(one_exponential, **SYMMETRIC), _scaled(_one_exponential), ("parameter",)),
    "mean 1": (family(beside_zero), _scaled(lambda *sizes: 1.0 + _normal(*sizes)), ()),
    "normal, and silent": (family(lambda g, n: torch.randn(n, generator=g)), _scaled(_normal), ()),
    "from NumPy's generator": (family(of_numpy, **SYMMETRIC), _scaled(_normal), ("parameter",)),
}  # fmt: skip
"""Noise, its copies, and the codes that may refuse it, by name."""


# Networks that look categories up.


class Embedded(nn.Module):
    """A network on two columns of numbers, and two of categories that it looks up.

    Attributes:
        look_up: function from a column of categories and its table `[KINDS, 3]` to vectors.
    """

    def __init__(self, look_up: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.look_up = look_up
        self.tables = nn.Parameter(torch.randn(2, KINDS, 3) * 0.7)
        self.head = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3))

    def forward(self, x: Tensor) -> Tensor:
        vectors = [self.look_up(x[:, 2 + number], table) for number, table in enumerate(self.tables)]
        return self.head(torch.cat((2 * x[:, :2], *vectors), dim=1))


def embedding(column: Tensor, table: Tensor) -> Tensor:
    """Look up by `Embedding`, which refuses numbers beyond its table."""
    return functional.embedding(column.long(), table)


def whole(column: Tensor, table: Tensor) -> Tensor:
    """Look up whole numbers alone by `Embedding`."""
    if bool((column != column.round()).any()):
        raise ValueError("a category is a whole number")
    return functional.embedding(column.long(), table)


def embedded(look_up: Callable[[Tensor, Tensor], Tensor]) -> Callable[[], nn.Module]:
    """Return a builder of a network that looks up categories by this function."""

    def build() -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(4)
            return Embedded(look_up).eval()

    return build


def with_categories(x: Tensor) -> Tensor:
    """Turn uniform numbers into rows `[N, 4]`: two columns of numbers, two of categories."""
    return torch.where(NUMBERS > 0, x, ((x + 1) / 2 * KINDS).floor().clamp(0, KINDS - 1))


def _numbers(rng: np.random.Generator, x: Tensor, sigma: float, count: int) -> np.ndarray:
    return x.numpy() + sigma * NUMBERS.numpy() * rng.standard_normal((count, 4))


def _swapped(rng: np.random.Generator, x: Tensor, sigma: float, count: int) -> np.ndarray:
    rows = NOISES["categories swapped"].inputs().numpy()
    swapped = rows[rng.integers(len(rows), size=(count, 4)), np.arange(4)]
    return np.where(rng.random((count, 4)) < sigma, swapped, x.numpy())


def another_kind(x: Tensor, g: torch.Generator) -> Tensor:
    """Move the numbers, and draw one column of categories anew."""
    x[2] = float(torch.randint(KINDS, (1,), generator=g))
    x[:2] += 0.3 * torch.randn(2, generator=g)
    return x


def _another_kind(rng: np.random.Generator, x: Tensor, sigma: float, count: int) -> np.ndarray:
    changed = _numbers(rng, x, 0.3, count)
    changed[:, 2] = rng.integers(KINDS, size=count)
    return changed


TABLES: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Callable[[float, Tensor], Noise], Copies]] = {
    "embedded categories": (embedding, lambda s, x: PerFeature(s, NUMBERS), _numbers),
    "categories in one_hot": (
        lambda column, table: functional.one_hot(column.long(), KINDS).to(table) @ table,
        lambda s, x: PerFeature(s, NUMBERS),
        _numbers,
    ),
    "categories that are whole": (whole, lambda s, x: PerFeature(s, NUMBERS), _numbers),
    "categories beside scales": (whole, lambda s, x: DiagonalGaussian(s, NUMBERS), _numbers),
    "categories beside a factor": (whole, lambda s, x: FactorGaussian(s, torch.diag(NUMBERS)[:, :2]), _numbers),
    "categories swapped": (whole, lambda s, x: Swap(s, x), _swapped),
    "categories by a function": (whole, lambda s, x: Transform(another_kind), _another_kind),
}
"""Look-up of categories, noise and its copies, by name."""


NOISES: dict[str, OddNoise] = {odd.name: odd for odd in [
    *(OddNoise(f"noise of two generators: {name}", build=small, noise=noise, copies=copies)
      for name, noise, copies in STREAMS),
    *(OddNoise(f"noise: {name}", build=small, refused=refused, noise=noise, copies=copies, sigma=0.6)
      for name, (noise, copies, refused) in ADDED.items()),
    OddNoise("noise: three values along one coordinate", build=two_classes(lambda x: 0.6 - x[:, 0]), shape=(1,),
             noise=family(three_values), copies=_scaled(_chosen), sigma=0.6),
    *(OddNoise(name, build=embedded(look_up), place=with_categories, noise=noise, copies=copies)
      for name, (look_up, noise, copies) in TABLES.items()),
    OddNoise("categories under normal noise", build=embedded(whole), place=with_categories, refused=("model_failed",),
             noise=lambda s, x: Gaussian(s), copies=_scaled(_normal)),
]}  # fmt: skip
"""All odd noises by name."""
