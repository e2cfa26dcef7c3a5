"""What every noise family is: a sampler and, where there is one, a covariance action, scaled by `sigma`.

Noise is added to the input in the declared pixel units, before the model's own normalisation, and is not clipped to
the bounds. The linear scores use the covariance action `v -> K v` and a mean of zero, the sampled ones the sampler; a
family without the first serves the second. For families with independent coordinates other than the normal one the
linear scores hold in the limit of many input coordinates (Han, Srinivas, Lakkaraju 2024, lemma 2). Scores draw pairs
`(e, -e)` of symmetric families alone.
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

Action = Callable[[Tensor], Tensor]
"""`v -> K v` for each row of vectors `[..., n]`."""

_OWN: dict[str, Any] = {}
_FAMILIES = Registry("family", _OWN)
"""The families of brittle by their names, which no other family may take, because tables tell families by name."""


@dataclass(frozen=True)
class Noise(ABC):
    """A noise distribution; one that says its covariance `sigma^2 K` has mean zero.

    A family of your own is a frozen dataclass with a `name`, the method `draw`, and `covariance`, which is written
    beside `draw` and never inherited from another family. `docs/reference/noise.md` has an example.

    Attributes:
        sigma: root mean square of one coordinate where `K = I`, in the declared pixel units; a common factor elsewhere.

    Class attributes:
        name: what tables and the command line call it.
        normal: whether its draws are jointly normal, so that every linear function of them is; said beside `draw`.
        symmetric: whether `-e` is as likely as `e`, as of normal draws; said beside `draw`.
        fixed_length: whether every draw has the length `sigma sqrt(n)`; said beside `draw`.
        explanation: how it is distributed, in a few words that a report shows; where empty, the report shows its name.
        unit: of `sigma`, where that is not in pixel units.
        added: whether it is added to the input; see `brittle.noise.Transform`.

    Raises:
        ParameterError: `sigma` is not a positive finite number, or the family has no name of its own.
    """

    sigma: float

    name: ClassVar[str]
    normal: ClassVar[bool] = False
    symmetric: ClassVar[bool] = False
    fixed_length: ClassVar[bool] = False
    explanation: ClassVar[str] = ""
    unit: ClassVar[str] = ""
    added: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        """Nothing is believed of draws that nobody declared: what is said counts beside `draw`, or in a class below."""
        super().__init_subclass__()
        for what in ("covariance", "normal", "symmetric", "fixed_length"):
            # No issubclass: a class that is being made has the cache of its base's, in ABCMeta, and would spoil it.
            if _where(cls, "draw") not in _where(cls, what).__mro__:
                setattr(cls, what, getattr(Noise, what))
        if is_own(cls) and "name" in vars(cls):
            _OWN[cls.name] = cls

    def __post_init__(self) -> None:
        if not (isinstance(self.sigma, int | float) and math.isfinite(self.sigma) and self.sigma > 0):
            raise ParameterError(f"sigma must be a positive finite number in pixel units; found {self.sigma}")
        object.__setattr__(self, "sigma", float(self.sigma))
        family, name = type(self), getattr(self, "name", None)
        if not isinstance(name, str) or not name or (name in _FAMILIES and _FAMILIES[name] is not family):
            raise ParameterError(
                f"the noise family {family.__name__} is called {name!r}; it needs a name that none of brittle's own "
                f"has, such as name = 'speckle', because tables tell families by name",
            )

    @abstractmethod
    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        """One draw of the family at `sigma = 1`, `[size]`, float32, all of it from the generator, on its device."""

    def covariance(self, vectors: Tensor) -> Tensor:
        """`K v` for each row of `vectors`, `[..., n]`. Families with `K = I` write `covariance = identity`."""
        raise _no_covariance(self, "a linear estimate")

    def covariance_at(self, inputs: Tensor, varies: Tensor | None = None) -> Action:
        """The covariance action at the points `[B, *shape]`, whose vectors are `[B, ..., n]`."""
        return self.covariance

    def scales(self, inputs: Tensor, varies: Tensor | None = None) -> Tensor | None:
        """Factors of the draws at each of the points `[B, *shape]`, by the coordinates that vary, `[B]`; None for 1."""
        return None

    def moves(self, size: int, device: torch.device | str = "cpu") -> Tensor | None:
        """Which coordinates of an input it may change, `[size]`; None for all, and where no covariance says it."""
        if not self.added or self.alike or not self.has_covariance:
            return None
        generator = torch.Generator(device).manual_seed(0)
        if is_own(_where(type(self), "draw")):
            found = torch.stack([self.draw(generator, size) for _ in range(2)])
        else:  # of a row of K that is not 0 the products with both vectors are 0 with probability 0
            found = self.covariance(torch.randn(2, size, generator=generator, dtype=torch.float64, device=device))
        return (found != 0).any(dim=0).cpu()

    @property
    def has_covariance(self) -> bool:
        """Whether the family says its covariance."""
        return type(self).covariance is not Noise.covariance

    @property
    def is_symmetric(self) -> bool:
        """Whether a draw has a mirror image that is as likely."""
        return self.added and (self.normal or self.symmetric)

    @property
    def in_pixels(self) -> bool:
        """Whether `sigma` is in the declared pixel units."""
        return self.added and not self.unit

    @property
    def alike(self) -> bool:
        """Whether all coordinates are alike to it, so that some of them can be drawn as if there were no others.

        Uncorrelated coordinates of one variance need not be: it is so of brittle's own draws alone.
        """
        return is_own(_where(type(self), "draw")) and type(self).covariance is identity

    @property
    def shape(self) -> Noise | None:
        """What decides `K`: None for `K = I`, otherwise this family at `sigma = 1`.

        Two families of equal shape share one linearisation at the point.
        """
        if not self.has_covariance:
            raise _no_covariance(self, "a linear estimate")
        return None if type(self).covariance is identity else at_one(self)

    @property
    def parameters(self) -> Parameters:
        """The family as the table writes it: its name, `sigma`, and its other fields that decide equality.

        A field whose metadata has a name under `written` is called so.
        """
        unit = {"unit": self.unit} if self.unit else {}
        named = {} if self.name == "gaussian" else {"noise": self.name}
        own = {one.metadata.get("written", one.name): getattr(self, one.name) for one in fields(self) if one.compare}
        return {"sigma": self.sigma} | unit | named | own

    def check_serves(self, score: str, linear: bool, pairs: bool = False) -> None:
        """Raise unless a score that uses the covariance (`linear`), or draws `pairs`, can stand on this family."""
        if linear and not self.has_covariance:
            raise _no_covariance(self, score)
        if pairs and not self.is_symmetric:
            raise no_mirror(self, score)
        known = {one.name for one in fields(self)}
        if beside := sorted(name for name in vars(self) if name not in known and name[0] != "_"):
            raise ParameterError(
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


def is_own(family: type) -> bool:
    """Whether a class is one of brittle's, so that tests of brittle have looked at its draws."""
    return family.__module__.startswith(("brittle.noise.", f"{GROUP}."))


def _where(family: type[Noise], method: str) -> type:
    """The class in which a method or an attribute of `family` is written."""
    return next(one for one in family.__mro__ if method in vars(one))


def no_mirror(noise: Noise, what: str) -> ParameterError:
    """What is raised where `what` draws pairs `(e, -e)` of noise whose draws have no mirror image."""
    return ParameterError(
        f"{what} draws pairs (e, -e), and the noise family {noise.name} does not say that -e is as likely as e; write "
        f"symmetric: ClassVar[bool] = True beside {type(noise).__name__}.draw where it is, or use shrinkage, "
        f"monte_carlo, probability_change, or mmse with antithetic=False (--set mmse.antithetic=false)",
    )


def _no_covariance(noise: Noise, what: str) -> ParameterError:
    return ParameterError(
        f"{what} needs the covariance of the noise, and the family {noise.name} says none beside its draws; write "
        f"{type(noise).__name__}.covariance, which gives K v (covariance = brittle.noise.identity where K = I), or "
        f"use shrinkage, monte_carlo or probability_change",
    )
