"""Noise families: each is a covariance action and a sampler, scaled by `sigma`.

Noise is added to the input in the declared pixel units, before the model's own normalisation, and is not clipped to
the bounds. Every family has mean zero and covariance `sigma^2 K`; `K = I` unless said. The linear scores use the
covariance action `v -> K v`, the sampled ones the sampler. For families with independent coordinates other than the
normal one the linear scores hold in the limit of many input coordinates (Han, Srinivas, Lakkaraju 2024, lemma 2).

The draws of a point come from a generator keyed by (seed, purpose, point id), one draw after another, so they do not
depend on the batch, the order or the number of draws that are asked for later.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from brittle.errors import ParameterError


@dataclass(frozen=True)
class Noise(ABC):
    """A noise distribution with mean zero and covariance `sigma^2 K`.

    Attributes:
        sigma: root mean square of one coordinate, in the declared pixel units.

    Raises:
        ParameterError: `sigma` is not a positive finite number.
    """

    sigma: float

    name: ClassVar[str]

    def __post_init__(self) -> None:
        if not (isinstance(self.sigma, int | float) and math.isfinite(self.sigma) and self.sigma > 0):
            raise ParameterError("sigma", f"sigma must be a positive finite number in pixel units; found {self.sigma}")

    @abstractmethod
    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        """One draw of the family at `sigma = 1`, `[size]`, float32, on the generator's device."""

    def covariance(self, vectors: Tensor) -> Tensor:
        """`K v` for each row of `vectors`, `[..., n]`."""
        return vectors

    @property
    def shape(self) -> Noise | None:
        """What decides `K`: None for `K = I`, otherwise this family at `sigma = 1`.

        Two families of equal shape share one linearisation at the point.
        """
        return None

    @property
    def parameters(self) -> dict[str, Any]:
        """The family as the table writes it."""
        return {"sigma": self.sigma} | ({} if self.name == "gaussian" else {"noise": self.name})


@dataclass(frozen=True)
class Gaussian(Noise):
    """Isotropic normal noise, `e ~ N(0, sigma^2 I)`."""

    name: ClassVar[str] = "gaussian"

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        """Standard normal coordinates."""
        return torch.randn(size, generator=generator, device=generator.device)


@dataclass(frozen=True)
class Uniform(Noise):
    """Independent coordinates, uniform on `[-sqrt(3) sigma, sqrt(3) sigma]`."""

    name: ClassVar[str] = "uniform"

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        """Uniform coordinates of variance one."""
        return (2.0 * torch.rand(size, generator=generator, device=generator.device) - 1.0) * math.sqrt(3.0)


@dataclass(frozen=True)
class Laplace(Noise):
    """Independent double-exponential coordinates of scale `sigma / sqrt(2)`."""

    name: ClassVar[str] = "laplace"

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        """The difference of two exponential variables of rate sqrt(2) has variance one."""
        both = torch.empty(2, size, device=generator.device).exponential_(math.sqrt(2.0), generator=generator)
        return both[0] - both[1]


@dataclass(frozen=True)
class Sphere(Noise):
    """Uniform on the sphere of radius `sigma sqrt(n)`, where it meets normal noise of the same `sigma`.

    For a given radius `r` in `n` dimensions `sigma = r / sqrt(n)`, see `of_radius`.
    """

    name: ClassVar[str] = "sphere"

    @classmethod
    def of_radius(cls, radius: float, dimension: int) -> Sphere:
        """The sphere of radius `radius`, in pixel units, for inputs of `dimension` coordinates.

        Raises:
            ParameterError: the radius is not a positive finite number.
        """
        return cls(radius / math.sqrt(dimension))

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        """A normal vector brought to length sqrt(n)."""
        normal = torch.randn(size, generator=generator, device=generator.device)
        return normal * (math.sqrt(size) / normal.norm())


@dataclass(frozen=True)
class Ball(Noise):
    """Uniform in the ball of radius `sigma sqrt(n + 2)`, whose coordinates have variance `sigma^2`.

    For a given radius `r` in `n` dimensions put `sigma = r / sqrt(n + 2)`.
    """

    name: ClassVar[str] = "ball"

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        """The first `n` coordinates of a uniform point on the sphere in `n + 2` dimensions are uniform in the ball."""
        normal = torch.randn(size + 2, generator=generator, device=generator.device)
        return normal[:size] * (math.sqrt(size + 2) / normal.norm())


@dataclass(frozen=True)
class DiagonalGaussian(Noise):
    """Independent normal coordinates of their own scale: `K = diag(scale^2)`.

    Attributes:
        sigma: common factor.
        scale: standard deviation of each coordinate at `sigma = 1`, of the input's shape or flat, `[n]`.

    Raises:
        ParameterError: `sigma` is not positive, or a scale is negative or not finite.
    """

    scale: Tensor = field(repr=False, compare=False)
    digest: str = field(init=False, repr=False)

    name: ClassVar[str] = "diagonal_gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not bool(((self.scale >= 0) & self.scale.isfinite()).all()):
            raise ParameterError("scale", "every scale must be finite and at least 0")
        object.__setattr__(self, "scale", self.scale.detach().flatten())
        object.__setattr__(self, "digest", _digest(self.scale))

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        """Normal coordinates, each times its scale."""
        _check_size(self.scale.numel(), size, "scale")
        normal = torch.randn(size, generator=generator, device=generator.device)
        return normal * self.scale.to(normal)

    def covariance(self, vectors: Tensor) -> Tensor:
        """`scale^2 v`."""
        _check_size(self.scale.numel(), vectors.shape[-1], "scale")
        return vectors * self.scale.to(vectors).square()

    @property
    def shape(self) -> Noise:
        """This family at `sigma = 1`."""
        return replace(self, sigma=1.0)

    @property
    def parameters(self) -> dict[str, Any]:
        """The family as the table writes it, the scales by their digest."""
        return super().parameters | {"scale": self.digest}


@dataclass(frozen=True)
class FactorGaussian(Noise):
    """Normal noise with full covariance by a factor: `K = A A^T`.

    Attributes:
        sigma: common factor.
        factor: `A`, `[n, k]`.
    """

    factor: Tensor = field(repr=False, compare=False)
    digest: str = field(init=False, repr=False)

    name: ClassVar[str] = "factor_gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.factor.dim() != 2 or not bool(self.factor.isfinite().all()):
            raise ParameterError("factor", f"the factor must be finite, [n, k]; found shape {list(self.factor.shape)}")
        object.__setattr__(self, "digest", _digest(self.factor))

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        """`A u` with `u` standard normal."""
        _check_size(self.factor.shape[0], size, "factor")
        normal = torch.randn(self.factor.shape[1], generator=generator, device=generator.device)
        return self.factor.to(normal) @ normal

    def covariance(self, vectors: Tensor) -> Tensor:
        """`A A^T v`."""
        _check_size(self.factor.shape[0], vectors.shape[-1], "factor")
        factor = self.factor.to(vectors)
        return (vectors @ factor) @ factor.T

    @property
    def shape(self) -> Noise:
        """This family at `sigma = 1`."""
        return replace(self, sigma=1.0)

    @property
    def parameters(self) -> dict[str, Any]:
        """The family as the table writes it, the factor by its digest."""
        return super().parameters | {"factor": self.digest}


@dataclass(frozen=True)
class FunctionGaussian(Noise):
    """Normal noise with full covariance by functions, for covariances too large to write down.

    Attributes:
        sigma: common factor.
        action: `v -> K v` for each row of `[..., n]`.
        root: `u -> A u` with `A A^T = K`, applied to a standard normal vector `[n]`. Only the sampled scores need it.
    """

    action: Callable[[Tensor], Tensor]
    root: Callable[[Tensor], Tensor] | None = None

    name: ClassVar[str] = "function_gaussian"

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        """`root(u)` with `u` standard normal."""
        if self.root is None:
            raise ParameterError(
                "noise_root", "sampled scores need `root`, a function u -> A u with A A^T = K; only `action` was given"
            )
        return self.root(torch.randn(size, generator=generator, device=generator.device))

    def covariance(self, vectors: Tensor) -> Tensor:
        """`K v`."""
        return self.action(vectors)

    @property
    def shape(self) -> Noise:
        """This family at `sigma = 1`."""
        return replace(self, sigma=1.0)

    @property
    def parameters(self) -> dict[str, Any]:
        """The family as the table writes it, the function by its name."""
        name = getattr(self.action, "__qualname__", type(self.action).__qualname__)
        return super().parameters | {"action": name}


FAMILIES: dict[str, type[Noise]] = {family.name: family for family in (Gaussian, Uniform, Laplace, Sphere, Ball)}
"""The families that `sigma` alone describes, by the name that the command line takes."""


class Stream:
    """The noise of a batch of points, one draw after another, each point from a generator of its own."""

    def __init__(self, noise: Noise, like: Tensor, ids: Sequence[str], seed: int, purpose: str) -> None:
        """Start the streams of the points `like`, `[B, *shape]`, with the ids `ids`."""
        self._noise = noise
        self._like = like
        self._generators = [_generator(seed, purpose, point, like.device) for point in ids]

    def draw(self, count: int) -> Tensor:
        """The next `count` draws of each point, `[B, count, *shape]`, in the dtype of the inputs."""
        shape = self._like.shape[1:]
        size = shape.numel()
        draws = torch.empty(len(self._generators), count, size, dtype=self._like.dtype, device=self._like.device)
        for point, generator in enumerate(self._generators):
            for number in range(count):
                draws[point, number] = self._noise.draw(generator, size)
        return draws.mul_(self._noise.sigma).view(len(self._generators), count, *shape)


def _generator(seed: int, purpose: str, point: str, device: torch.device) -> torch.Generator:
    key = hashlib.blake2b(f"{seed}\n{purpose}\n{point}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return torch.Generator(device).manual_seed(int.from_bytes(key, "big") >> 1)


def _digest(tensor: Tensor) -> str:
    content = tensor.detach().to("cpu", torch.float64).contiguous().numpy().tobytes()
    return hashlib.sha256(content).hexdigest()[:16]


def _check_size(found: int, size: int, what: str) -> None:
    if found != size:
        raise ParameterError("noise_size", f"the {what} has {found} coordinates, the input {size}")
