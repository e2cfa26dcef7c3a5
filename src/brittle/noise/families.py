"""Noise families: each is a covariance action and a sampler, scaled by `sigma`.

Noise is added to the input in the declared pixel units, before the model's own normalisation, and is not clipped to
the bounds. Every family is symmetric, `-e` as likely as `e`, so its mean is zero, and has covariance `sigma^2 K`. The
linear scores use the covariance action `v -> K v`, the sampled ones the sampler; a family without the first serves
the second. For families with independent coordinates other than the normal one the linear scores hold in the limit of
many input coordinates (Han, Srinivas, Lakkaraju 2024, lemma 2).

The draws of a point come from a generator keyed by (seed, purpose, point id), one draw after another, so they do not
depend on the batch, the order or the number of draws that are asked for later.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.noise.promise import check_draw, check_finite, check_promise


@dataclass(frozen=True)
class Noise(ABC):
    """A symmetric noise distribution with covariance `sigma^2 K`.

    A family of your own is a frozen dataclass with a `name`, the method `draw`, and `covariance`, which is written
    beside `draw` and never inherited from another family. `docs/estimators.md` has an example.

    Attributes:
        sigma: root mean square of one coordinate where `K = I`, in the declared pixel units; a common factor elsewhere.

    Class attributes:
        name: what tables and the command line call it.
        normal: whether its draws are jointly normal, so that every linear function of them is; said beside `draw`.

    Raises:
        ParameterError: `sigma` is not a positive finite number, or the family has no name of its own.
    """

    sigma: float

    name: ClassVar[str]
    normal: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (isinstance(self.sigma, int | float) and math.isfinite(self.sigma) and self.sigma > 0):
            raise ParameterError("sigma", f"sigma must be a positive finite number in pixel units; found {self.sigma}")
        _check_name(type(self))

    @abstractmethod
    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        """One draw of the family at `sigma = 1`, `[size]`, float32, on the generator's device.

        `-e` must be as likely as `e`: scores draw in pairs `(e, -e)`.
        """

    def covariance(self, vectors: Tensor) -> Tensor:
        """`K v` for each row of `vectors`, `[..., n]`. Families with `K = I` write `covariance = identity`.

        Raises:
            ParameterError: the family does not say its covariance.
        """
        raise _no_covariance(self, "a linear estimate")

    @property
    def has_covariance(self) -> bool:
        """Whether the family says its covariance: `covariance` stands in the class of `draw`, or in one below it."""
        said, drawn = (_where(type(self), method) for method in ("covariance", "draw"))
        return said is not Noise and issubclass(said, drawn)

    @property
    def is_normal(self) -> bool:
        """Whether linear functions of the noise are normal: `normal` stands in the class of `draw`, or below it."""
        return self.normal and issubclass(_where(type(self), "normal"), _where(type(self), "draw"))

    @property
    def shape(self) -> Noise | None:
        """What decides `K`: None for `K = I`, otherwise this family at `sigma = 1`.

        Two families of equal shape share one linearisation at the point.

        Raises:
            ParameterError: the family does not say its covariance.
        """
        if not self.has_covariance:
            raise _no_covariance(self, "a linear estimate")
        return None if type(self).covariance is identity else at_one(self)

    @property
    def parameters(self) -> dict[str, Any]:
        """The family as the table writes it: its name, `sigma`, and its other fields that decide equality."""
        own = [one.name for one in fields(self) if one.compare and one.name != "sigma"]
        return self._family | {name: getattr(self, name) for name in own}

    @property
    def _family(self) -> dict[str, Any]:
        return {"sigma": self.sigma} | ({} if self.name == "gaussian" else {"noise": self.name})

    def check_serves(self, score: str, linear: bool) -> None:
        """Raise unless a score can stand on this family.

        Args:
            score: its name, for the message.
            linear: whether it uses the covariance.

        Raises:
            ParameterError: the family does not say its covariance and the score needs it, or two families that differ
                would be taken for one.
        """
        if linear and not self.has_covariance:
            raise _no_covariance(self, score)
        beside = sorted(
            name for name in vars(self) if name not in {one.name for one in fields(self)} and name[0] != "_"
        )
        if beside:
            raise ParameterError(
                "noise_fields",
                f"the noise family {self.name} keeps {', '.join(beside)} beside its fields, so two that differ there "
                f"would be taken for one; make it a frozen dataclass with a field for each",
            )


def identity(self: Noise, vectors: Tensor) -> Tensor:
    """`K = I`: the method `covariance` of families whose coordinates are uncorrelated, each of variance `sigma^2`."""
    return vectors


def at_one(noise: Noise) -> Noise:
    """The family at `sigma = 1`."""
    other = copy(noise)
    object.__setattr__(other, "sigma", 1.0)
    return other


@dataclass(frozen=True)
class Gaussian(Noise):
    """Isotropic normal noise, `e ~ N(0, sigma^2 I)`."""

    name: ClassVar[str] = "gaussian"
    normal: ClassVar[bool] = True
    covariance = identity

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        """Standard normal coordinates."""
        return _normal(size, generator)


@dataclass(frozen=True)
class Uniform(Noise):
    """Independent coordinates, uniform on `[-sqrt(3) sigma, sqrt(3) sigma]`."""

    name: ClassVar[str] = "uniform"
    covariance = identity

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        """Uniform coordinates of variance one."""
        uniform = torch.rand(size, generator=generator, dtype=torch.float32, device=generator.device)
        return (2.0 * uniform - 1.0) * math.sqrt(3.0)


@dataclass(frozen=True)
class Laplace(Noise):
    """Independent double-exponential coordinates of scale `sigma / sqrt(2)`."""

    name: ClassVar[str] = "laplace"
    covariance = identity

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        """The difference of two exponential variables of rate sqrt(2) has variance one."""
        both = torch.empty(2, size, dtype=torch.float32, device=generator.device)
        one, other = both.exponential_(math.sqrt(2.0), generator=generator)
        return one - other


@dataclass(frozen=True)
class Sphere(Noise):
    """Uniform on the sphere of radius `sigma sqrt(n)`, where it meets normal noise of the same `sigma`.

    For a given radius `r` in `n` dimensions `sigma = r / sqrt(n)`, see `of_radius`.
    """

    name: ClassVar[str] = "sphere"
    covariance = identity

    @classmethod
    def of_radius(cls, radius: float, dimension: int) -> Sphere:
        """The sphere of radius `radius`, in pixel units, for inputs of `dimension` coordinates.

        Raises:
            ParameterError: the radius is not a positive finite number.
        """
        return cls(radius / math.sqrt(dimension))

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        """A normal vector brought to length sqrt(n)."""
        normal = _normal(size, generator)
        return normal * (math.sqrt(size) / normal.norm())


@dataclass(frozen=True)
class Ball(Noise):
    """Uniform in the ball of radius `sigma sqrt(n + 2)`, whose coordinates have variance `sigma^2`.

    For a given radius `r` in `n` dimensions put `sigma = r / sqrt(n + 2)`.
    """

    name: ClassVar[str] = "ball"
    covariance = identity

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        """The first `n` coordinates of a uniform point on the sphere in `n + 2` dimensions are uniform in the ball."""
        normal = _normal(size + 2, generator)
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
    normal: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not bool(((self.scale >= 0) & self.scale.isfinite()).all()):
            raise ParameterError("scale", "every scale must be finite and at least 0")
        object.__setattr__(self, "scale", self.scale.detach().flatten())
        object.__setattr__(self, "digest", _digest(self.scale))

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        """Normal coordinates, each times its scale."""
        _check_size(self.scale.numel(), size, "scale")
        normal = _normal(size, generator)
        return normal * self.scale.to(normal)

    def covariance(self, vectors: Tensor) -> Tensor:
        """`scale^2 v`."""
        _check_size(self.scale.numel(), vectors.shape[-1], "scale")
        return vectors * self.scale.to(vectors).square()

    @property
    def parameters(self) -> dict[str, Any]:
        """The family as the table writes it, the scales by their digest."""
        return self._family | {"scale": self.digest}


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
    normal: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.factor.dim() != 2 or not bool(self.factor.isfinite().all()):
            raise ParameterError("factor", f"the factor must be finite, [n, k]; found shape {list(self.factor.shape)}")
        object.__setattr__(self, "digest", _digest(self.factor))

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        """`A u` with `u` standard normal."""
        _check_size(self.factor.shape[0], size, "factor")
        normal = _normal(self.factor.shape[1], generator)
        return self.factor.to(normal) @ normal

    def covariance(self, vectors: Tensor) -> Tensor:
        """`A A^T v`."""
        _check_size(self.factor.shape[0], vectors.shape[-1], "factor")
        factor = self.factor.to(vectors)
        return (vectors @ factor) @ factor.T

    @property
    def parameters(self) -> dict[str, Any]:
        """The family as the table writes it, the factor by its digest."""
        return self._family | {"factor": self.digest}


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
    normal: ClassVar[bool] = True

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        """`root(u)` with `u` standard normal."""
        if self.root is None:
            raise ParameterError(
                "noise_root", "sampled scores need `root`, a function u -> A u with A A^T = K; only `action` was given"
            )
        return self.root(_normal(size, generator))

    def covariance(self, vectors: Tensor) -> Tensor:
        """`K v`."""
        return self.action(vectors)

    @property
    def parameters(self) -> dict[str, Any]:
        """The family as the table writes it, the function by its name."""
        name = getattr(self.action, "__qualname__", type(self.action).__qualname__)
        return self._family | {"action": name}


FAMILIES: dict[str, type[Noise]] = {family.name: family for family in (Gaussian, Uniform, Laplace, Sphere, Ball)}
"""The families that `sigma` alone describes, by the name that the command line takes."""

OWN = (*FAMILIES.values(), DiagonalGaussian, FactorGaussian, FunctionGaussian)
"""The families of this file, whose draws its tests check; those of others are checked when they are used."""


class Stream:
    """The noise of a batch of points, one draw after another, each point from a generator of its own."""

    def __init__(self, noise: Noise, like: Tensor, ids: Sequence[str], seed: int, purpose: str) -> None:
        """Start the streams of the points `like`, `[B, *shape]`, with the ids `ids`.

        Raises:
            ParameterError: the draws of a family that is not of this file are not what a family promises.
        """
        if type(noise) not in OWN:
            check_promise(at_one(noise), like[0].numel(), like.device)
        self._noise = noise
        self._like = like
        self._generators = [_generator(seed, purpose, point, like.device) for point in ids]

    def draw(self, count: int) -> Tensor:
        """The next `count` draws of each point, `[B, count, *shape]`, in the dtype of the inputs.

        Raises:
            ParameterError: a draw has another size than the inputs, or holds NaN or infinite values.
        """
        shape = self._like.shape[1:]
        size = shape.numel()
        draws = torch.empty(len(self._generators), count, size, dtype=self._like.dtype, device=self._like.device)
        for point, generator in enumerate(self._generators):
            for number in range(count):
                draws[point, number] = check_draw(self._noise, self._noise.draw(generator, size), size)
        check_finite(self._noise, draws)
        return draws.mul_(self._noise.sigma).view(len(self._generators), count, *shape)


def _normal(size: int, generator: torch.Generator) -> Tensor:
    """Standard normal numbers, `[size]`, the same ones whatever the caller's default dtype is."""
    return torch.randn(size, generator=generator, dtype=torch.float32, device=generator.device)


def _generator(seed: int, purpose: str, point: str, device: torch.device) -> torch.Generator:
    key = hashlib.blake2b(f"{seed}\n{purpose}\n{point}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return torch.Generator(device).manual_seed(int.from_bytes(key, "big") >> 1)


def _digest(tensor: Tensor) -> str:
    content = tensor.detach().to("cpu", torch.float64).contiguous().numpy().tobytes()
    return hashlib.sha256(content).hexdigest()[:16]


def _check_size(found: int, size: int, what: str) -> None:
    if found != size:
        raise ParameterError("noise_size", f"the {what} has {found} coordinates, the input {size}")


def _check_name(family: type[Noise]) -> None:
    """Raise unless `family` has a name, and one that is no other family's in this file."""
    name = getattr(family, "name", None)
    if not isinstance(name, str) or not name:
        raise ParameterError("noise_name", f"the noise family {family.__name__} needs a name, such as name = 'speckle'")
    if family not in OWN and name in {own.name for own in OWN}:
        raise ParameterError(
            "noise_name",
            f"the noise family {family.__name__} is called {name!r} like one of brittle's own, and tables could not "
            f"tell them apart; give it another name",
        )


def _where(family: type[Noise], method: str) -> type:
    """The class in which a method or an attribute of `family` is written."""
    return next(one for one in family.__mro__ if method in vars(one))


def _no_covariance(noise: Noise, what: str) -> ParameterError:
    family = type(noise).__name__
    return ParameterError(
        "noise_covariance",
        f"{what} needs the covariance of the noise, and the family {noise.name} says none beside its draws; write "
        f"{family}.covariance, which gives K v (covariance = brittle.noise.identity where K = I), or use monte_carlo, "
        f"moments or probability_change",
    )
