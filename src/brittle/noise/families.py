"""The noise families of brittle; `brittle.noise.base.Noise` defines a family."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.noise.base import Noise, identity


@dataclass(frozen=True)
class Gaussian(Noise):
    """Isotropic normal noise, `e ~ N(0, sigma^2 I)`."""

    name: ClassVar[str] = "gaussian"
    explanation: ClassVar[str] = "Normal, drawn for every input value independently"
    normal: ClassVar[bool] = True
    covariance = identity

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        return _normal(size, generator)


@dataclass(frozen=True)
class Uniform(Noise):
    """Independent coordinates, uniform on `[-sqrt(3) sigma, sqrt(3) sigma]`."""

    name: ClassVar[str] = "uniform"
    explanation: ClassVar[str] = "Uniform, drawn for every input value independently"
    symmetric: ClassVar[bool] = True
    covariance = identity

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        uniform = torch.rand(size, generator=generator, dtype=torch.float32, device=generator.device)
        return (2.0 * uniform - 1.0) * math.sqrt(3.0)


@dataclass(frozen=True)
class Laplace(Noise):
    """Independent double-exponential coordinates of scale `sigma / sqrt(2)`."""

    name: ClassVar[str] = "laplace"
    explanation: ClassVar[str] = "Laplace, drawn for every input value independently"
    symmetric: ClassVar[bool] = True
    covariance = identity

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        # The difference of two exponential variables of rate sqrt(2) has variance one.
        pair = torch.empty(2, size, dtype=torch.float32, device=generator.device)
        pair.exponential_(math.sqrt(2.0), generator=generator)
        return pair[0] - pair[1]


@dataclass(frozen=True)
class Sphere(Noise):
    """Uniform on the sphere of radius `sigma sqrt(n)`, where it meets normal noise of the same `sigma`."""

    name: ClassVar[str] = "sphere"
    explanation: ClassVar[str] = "Uniform on a sphere around the point"
    fixed_length: ClassVar[bool] = True
    symmetric: ClassVar[bool] = True
    covariance = identity

    @classmethod
    def of_radius(cls, radius: float, dimension: int) -> Sphere:
        """Return the sphere of radius `radius`, in pixel units, for inputs of `dimension` coordinates."""
        return cls(radius / math.sqrt(dimension))

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        normal = _normal(size, generator)
        return normal * (math.sqrt(size) / normal.norm())


@dataclass(frozen=True)
class Ball(Noise):
    """Uniform in the ball of radius `sigma sqrt(n + 2)`, whose coordinates have variance `sigma^2`."""

    name: ClassVar[str] = "ball"
    explanation: ClassVar[str] = "Uniform in a ball around the point"
    symmetric: ClassVar[bool] = True
    covariance = identity

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        """Draw the first `n` coordinates of a uniform point on the sphere in `n + 2` dimensions."""
        normal = _normal(size + 2, generator)
        return normal[:size] * (math.sqrt(size + 2) / normal.norm())


@dataclass(frozen=True)
class DiagonalGaussian(Noise):
    """Independent normal coordinates, each with its scale: `K = diag(scale^2)`.

    Attributes:
        sigma: common factor.
        scale: standard deviation of each coordinate at `sigma = 1`, of the input's shape or flat, `[n]`.

    Raises:
        ParameterError: `sigma` is not positive, or a scale is negative or not finite.
    """

    scale: Tensor = field(repr=False, compare=False)
    digest: str = field(init=False, repr=False, metadata={"written": "scale"})

    name: ClassVar[str] = "diagonal_gaussian"
    explanation: ClassVar[str] = "Normal, drawn for every input value independently, each with its own scale"
    normal: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not bool(((self.scale >= 0) & self.scale.isfinite()).all()):
            span = f"{self.scale.min():g} to {self.scale.max():g}"
            raise ParameterError(f"every scale must be finite and at least 0; found {span}")
        object.__setattr__(self, "scale", self.scale.detach().flatten().clone())
        object.__setattr__(self, "digest", digest_of_tensors(self.scale))

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        _check_size(self.scale.numel(), size, "scale")
        normal = _normal(size, generator)
        return normal * self.scale.to(normal)

    def covariance(self, vectors: Tensor) -> Tensor:
        _check_size(self.scale.numel(), vectors.shape[-1], "scale")
        return vectors * self.scale.to(vectors).square()


@dataclass(frozen=True)
class FactorGaussian(Noise):
    """Normal noise with full covariance by a factor: `K = A A^T`.

    Attributes:
        sigma: common factor.
        factor: `A`, `[n, k]`.
    """

    factor: Tensor = field(repr=False, compare=False)
    digest: str = field(init=False, repr=False, metadata={"written": "factor"})

    name: ClassVar[str] = "factor_gaussian"
    explanation: ClassVar[str] = "Normal, with a covariance given by a factor"
    normal: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.factor.dim() != 2 or not bool(self.factor.isfinite().all()):
            raise ParameterError(f"the factor must be finite, [n, k]; found shape {list(self.factor.shape)}")
        object.__setattr__(self, "factor", self.factor.detach().clone())
        object.__setattr__(self, "digest", digest_of_tensors(self.factor))

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        _check_size(self.factor.shape[0], size, "factor")
        normal = _normal(self.factor.shape[1], generator)
        return self.factor.to(normal) @ normal

    def covariance(self, vectors: Tensor) -> Tensor:
        _check_size(self.factor.shape[0], vectors.shape[-1], "factor")
        factor = self.factor.to(vectors)
        return (vectors @ factor) @ factor.T


FAMILIES: dict[str, type[Noise]] = {family.name: family for family in (Gaussian, Uniform, Laplace, Sphere, Ball)}


def _normal(size: int, generator: torch.Generator) -> Tensor:
    """Draw standard normal numbers, `[size]`, in single precision under every default dtype."""
    return torch.randn(size, generator=generator, dtype=torch.float32, device=generator.device)


def digest_of_tensors(*tensors: Tensor) -> str:
    """Return a digest of some tensors; masks count as bytes, numbers in double precision."""
    content = [tensor.detach().to("cpu", None if tensor.dtype is torch.bool else torch.float64) for tensor in tensors]
    return hashlib.sha256(b"".join(tensor.contiguous().numpy().tobytes() for tensor in content)).hexdigest()[:16]


def _check_size(count: int, size: int, name: str) -> None:
    if count != size:
        raise ParameterError(f"the {name} has {count} coordinates, the input {size}")
