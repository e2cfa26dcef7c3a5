"""Base class of noise families: a sampler and, where there is one, a covariance action, scaled by `sigma`.

Noise is added to the input in the declared pixel units, before the model's own normalisation, and is not clipped. The
linear scores use the covariance action `v -> K v` and a mean of zero, the sampled scores the sampler. For families with
independent coordinates that are not normal the linear scores hold in the limit of many input coordinates (Han,
Srinivas, Lakkaraju 2024, lemma 2). Scores draw pairs `(e, -e)` of symmetric families alone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.estimate import Parameters
from brittle.registry import GROUP, Registry

Action = Callable[[Tensor], Tensor]  # `v -> K v` for each row of vectors `[..., n]`

_CORE_FAMILIES: dict[str, Any] = {}
_FAMILIES = Registry("family", _CORE_FAMILIES)  # by name, which no other family may take, as tables tell them by it


@dataclass(frozen=True)
class Noise(ABC):
    """A noise distribution; a family with a covariance, `sigma^2 K`, has mean zero.

    A custom family is a frozen dataclass with a `name`, the method `draw`, and `covariance`, which is written beside
    `draw` and never inherited from another family. `docs/reference/noise.md` has an example.

    Attributes:
        sigma: root mean square of one coordinate where `K = I`, in the declared pixel units; a common factor elsewhere.

    Raises:
        ParameterError: `sigma` is not a positive finite number, or the family has no name or one of brittle's.
    """

    sigma: float

    name: ClassVar[str]  # in tables and on the command line
    normal: ClassVar[bool] = False  # jointly, so that every linear function is; this and two more stand beside `draw`
    symmetric: ClassVar[bool] = False  # whether `-e` is as likely as `e`, as in normal draws
    fixed_length: ClassVar[bool] = False  # whether every draw has the length `sigma sqrt(n)`
    explanation: ClassVar[str] = ""  # the distribution in a few words, for a report; by default the name
    unit: ClassVar[str] = ""  # of `sigma`, where that is not the pixel unit
    added: ClassVar[bool] = True  # to the input; see `brittle.noise.Transform`

    def __init_subclass__(cls) -> None:
        """Reset properties that were declared for other draws: they count beside `draw`, or in a subclass, alone."""
        super().__init_subclass__()
        for attribute in ("covariance", "normal", "symmetric", "fixed_length"):
            # Not issubclass: during class creation ABCMeta shares the cache of the base, which the call would spoil.
            if _defining_class(cls, "draw") not in _defining_class(cls, attribute).__mro__:
                setattr(cls, attribute, getattr(Noise, attribute))
        if is_builtin(cls) and "name" in vars(cls):
            _CORE_FAMILIES[cls.name] = cls

    def __post_init__(self) -> None:
        if not (isinstance(self.sigma, int | float) and math.isfinite(self.sigma) and self.sigma > 0):
            raise ParameterError(f"sigma must be a positive finite number in pixel units; found {self.sigma}")
        object.__setattr__(self, "sigma", float(self.sigma))
        family, name = type(self), getattr(self, "name", None)
        if not isinstance(name, str) or not name or (name in _FAMILIES and _FAMILIES[name] is not family):
            advice = "it needs a name that none of brittle's own has, such as name = 'speckle'"
            raise ParameterError(f"the noise family {family.__name__} is called {name!r}; {advice}")

    @abstractmethod
    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        """Draw from the family at `sigma = 1`, `[size]`, float32, with the generator alone, on its device."""

    def covariance(self, vectors: Tensor) -> Tensor:
        """Return `K v` for each row of `vectors`, `[..., n]`. Families with `K = I` write `covariance = identity`."""
        raise _no_covariance(self, "a linear estimate")

    def covariance_at(self, inputs: Tensor, varies: Tensor | None = None) -> Action:
        """Return the covariance action at the points `[B, *shape]`, for vectors `[B, ..., n]`."""
        return self.covariance

    def scales(self, inputs: Tensor, varies: Tensor | None = None) -> Tensor | None:
        """Return a factor of the draws for each point `[B, *shape]`, from its varying coordinates, `[B]`; None: 1."""
        return None

    def moves(self, size: int, device: torch.device | str = "cpu") -> Tensor | None:
        """Return the mask of the coordinates that may change, `[size]`; None for all, or where no covariance tells."""
        if not self.added or self.is_exchangeable or not self.has_covariance:
            return None
        generator = torch.Generator(device).manual_seed(0)
        if is_builtin(_defining_class(type(self), "draw")):
            samples = torch.stack([self.draw(generator, size) for _ in range(2)])
        else:  # both products with a row of K that is not 0 are 0 with probability 0
            samples = self.covariance(torch.randn(2, size, generator=generator, dtype=torch.float64, device=device))
        return (samples != 0).any(dim=0).cpu()

    @property
    def has_covariance(self) -> bool:
        return type(self).covariance is not Noise.covariance

    @property
    def is_symmetric(self) -> bool:
        return self.added and (self.normal or self.symmetric)

    @property
    def in_pixels(self) -> bool:
        return self.added and not self.unit

    @property
    def is_exchangeable(self) -> bool:
        """True where all coordinates are alike, so that some of them can be drawn as if there were no others.

        Uncorrelated coordinates of one variance need not be exchangeable: brittle's own draws alone are trusted.
        """
        return is_builtin(_defining_class(type(self), "draw")) and type(self).covariance is identity

    @property
    def shape(self) -> Noise | None:
        """The part that determines `K`, shared by linearisations: None for `K = I`, else this family at `sigma = 1`."""
        if not self.has_covariance:
            raise _no_covariance(self, "a linear estimate")
        return None if type(self).covariance is identity else at_one(self)

    @property
    def parameters(self) -> Parameters:
        """The name, `sigma`, and other fields that decide equality, perhaps renamed by their metadata `written`."""
        unit = {"unit": self.unit} if self.unit else {}
        name_field = {} if self.name == "gaussian" else {"noise": self.name}
        values = {f.metadata.get("written", f.name): getattr(self, f.name) for f in fields(self) if f.compare}
        return {"sigma": self.sigma} | unit | name_field | values

    def check_supports(self, score: str, linear: bool, pairs: bool = False) -> None:
        """Raise unless the family supports a score that uses the covariance (`linear`), or draws `pairs`."""
        if linear and not self.has_covariance:
            raise _no_covariance(self, score)
        if pairs and not self.is_symmetric:
            raise no_mirror(self, score)
        field_names = {field.name for field in fields(self)}
        if extra_attributes := sorted(name for name in vars(self) if name not in field_names and name[0] != "_"):
            advice = "beside its fields, by which no table tells two apart; write a field for each"
            raise ParameterError(f"the noise family {self.name} keeps {', '.join(extra_attributes)} {advice}")


def identity(self: Noise, vectors: Tensor) -> Tensor:
    """Return the vectors, `K = I`: the `covariance` of families with uncorrelated coordinates of variance `sigma^2`."""
    return vectors


def at_one(noise: Noise) -> Noise:
    unit_noise = copy(noise)
    object.__setattr__(unit_noise, "sigma", 1.0)
    return unit_noise


def is_builtin(family: type) -> bool:
    """Return whether a class is one of brittle's, whose draws its tests check."""
    return family.__module__.startswith(("brittle.noise.", f"{GROUP}."))


def _defining_class(family: type[Noise], method: str) -> type:
    return next(base for base in family.__mro__ if method in vars(base))


def no_mirror(noise: Noise, method: str) -> ParameterError:
    scores = "or use shrinkage, monte_carlo, or mmse with antithetic=False (--set mmse.antithetic=false)"
    advice = f"write symmetric: ClassVar[bool] = True beside {type(noise).__name__}.draw where it is, {scores}"
    return ParameterError(
        f"{method} draws pairs (e, -e), which the noise family {noise.name} does not declare; {advice}"
    )


def _no_covariance(noise: Noise, method: str) -> ParameterError:
    gives = "which gives K v (covariance = brittle.noise.identity where K = I), or use shrinkage or monte_carlo"
    advice = f"write {type(noise).__name__}.covariance, {gives}"
    return ParameterError(f"{method} needs the covariance of noise, and {noise.name} declares none; {advice}")
