"""Noise that is not added: any random function of an input, such as a rotation."""

from __future__ import annotations

import hashlib
import random
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from brittle.decisions.function_code import code_digest
from brittle.errors import ParameterError
from brittle.estimate import Parameters
from brittle.noise.base import Noise


@dataclass(frozen=True)
class Transforming(Noise):
    """Noise that puts another input in the place of a point: `x' = f(x, randomness)`.

    It has no covariance, and no draw has a mirror image: copies are drawn singly, each from a generator of its own, and
    the sampled scores alone serve it. A family of your own has a `name`, a `unit` and the method `apply`.

    Attributes:
        sigma: how strong it is, in a unit of its own.
        of_rows: whether each row of an input, such as a token, is changed by itself: then rows that do not vary are not
            handed to it.
        of_characters: whether it is for texts whose points are the codes of their characters.
    """

    sigma: float = 1.0

    unit: ClassVar[str] = "own units"
    added: ClassVar[bool] = False
    of_rows: ClassVar[bool] = False
    of_characters: ClassVar[bool] = False

    @abstractmethod
    def apply(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """A noisy copy of one input.

        Args:
            x: the input in the declared units, `[*shape]`, on the CPU.
            generator: where all randomness comes from; no other copy of any point has one of this seed.
        """

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        raise ParameterError(f"{self._text} is not added to an input, so there is no noise to draw")

    def check_serves(self, score: str, linear: bool, pairs: bool = False) -> None:
        if linear or pairs:
            raise ParameterError(
                f"{score} needs noise that is added to the input, its covariance or pairs (e, -e), and {self._text} is "
                f"not added; use shrinkage, monte_carlo or probability_change",
            )
        super().check_serves(score, linear)

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)
        super().__post_init__()

    @property
    def _text(self) -> str:
        return f"the noise {self.parameters['noise']}"


@dataclass(frozen=True, init=False)
class Transform(Transforming):
    """A random function of yours: `x' = fn(x, generator)` for one input `x`.

    All randomness has to come from `generator`, or from the generators that PyTorch, NumPy and Python share
    (`torch.rand`, `numpy.random.rand`, `random.random`), which are seeded for each copy and put back as they were;
    their numbers and those of `generator` are independent. A
    function that is called twice with the same randomness must give the same numbers, which is checked at one input
    of every batch. A generator of NumPy is `numpy.random.default_rng(generator.initial_seed())`.

    Example:
        >>> import torch
        >>> from brittle.noise import Transform
        >>> from brittle.scores import MonteCarlo
        >>> lighter = Transform(lambda x, g: x + 0.2 * torch.rand(1, generator=g), name="lighter")
        >>> MonteCarlo(noise=lighter, draws=100).parameters["noise"]
        'lighter()'

    Attributes:
        sigma: 1; the function knows how strong it is.
        fn: takes one input, a tensor `[*shape]` on the CPU in the declared units, which it may change, and a
            `torch.Generator`; gives one of the same shape, a tensor or a NumPy array.
        called: its name.
        settings: what else tells it from others of that name, as one writes it: `degrees=10`.
        code: digest of the code of `fn` and of the values that it holds, so that no run goes on with another function.

    Raises:
        ParameterError: the name is not one word, or a parameter is no number or text.
    """

    fn: Callable[[Tensor, torch.Generator], Tensor | np.ndarray] = field(init=False, repr=False)
    called: str = field(init=False)
    settings: str = field(init=False)
    code: str = field(init=False)

    name: ClassVar[str] = "transform"
    explanation: ClassVar[str] = "A random function of the input"

    def __init__(
        self,
        fn: Callable[[Tensor, torch.Generator], Tensor | np.ndarray],
        *,
        name: str | None = None,
        parameters: Mapping[str, int | float | str] | None = None,
    ) -> None:
        """The function `fn` as noise, by its own name or `name`, with numbers and texts such as `{"degrees": 10}`."""
        called = getattr(fn, "__name__", type(fn).__name__) if name is None else name
        if not isinstance(called, str) or not (called.isascii() and called.isidentifier()):
            raise ParameterError(f"a transform needs a name of one word, such as name='rotate'; found {called!r:.60}")
        self._set(sigma=1.0, fn=fn, called=called, settings=_written(parameters or {}), code=code_digest(fn))

    def apply(self, x: Tensor, generator: torch.Generator) -> Tensor:
        try:
            found = self.fn(x, generator)
        except Exception as error:
            seen = f"{type(error).__name__}: {error}".removesuffix(": ")
            raise ParameterError(f"{self._text} failed at an input of shape {list(x.shape)}: {seen}") from error
        return torch.from_numpy(found) if isinstance(found, np.ndarray) else found

    @property
    def parameters(self) -> Parameters:
        return {"sigma": self.sigma, "noise": f"{self.called}({self.settings})", "code": self.code}


def transformed(noise: Transforming, x: Tensor, generators: list[torch.Generator]) -> Tensor:
    """Noisy copies of one input `[*shape]`, one for each generator on the CPU, `[len(generators), *shape]`."""
    own = x.detach().cpu()
    with shared_generators() as seed:
        return torch.stack([_copy(noise, own, one, seed) for one in generators]).to(x)


def check_keyed(noise: Transforming, x: Tensor, generator: Callable[[], torch.Generator]) -> None:
    """Raise unless two copies of `x` with the same randomness are alike: else no number could be repeated."""
    one, other = (transformed(noise, x, [generator()]) for _ in range(2))
    if not torch.equal(one, other):
        raise ParameterError(
            f"{noise._text} gives two results for one input and one generator; take all randomness from the "
            f"generator, as in torch.rand(1, generator=generator), and keep nothing between two calls",
        )


def _copy(noise: Transforming, x: Tensor, generator: torch.Generator, seed: Callable[[int], None]) -> Tensor:
    seed(generator.initial_seed())
    found = noise.apply(x.clone(), generator)
    if not isinstance(found, Tensor) or found.shape != x.shape or found.is_complex():
        seen = f"shape {list(found.shape)}" if isinstance(found, Tensor) else f"type {type(found).__name__}"
        raise ParameterError(f"{noise._text} must give one input of shape {list(x.shape)} again; found {seen}")
    if not bool(found.isfinite().all()):
        raise ParameterError(f"{noise._text} gives {int((~found.isfinite()).sum())} NaN or infinite numbers")
    return found.detach().to(x, copy=True)  # the function may write its next copy over this one


@contextmanager
def shared_generators() -> Iterator[Callable[[int], None]]:
    """A function that seeds the generators that PyTorch, NumPy and Python share; afterwards they are as before. Each
    gets a seed of its own, derived from the number: equal seeds of PyTorch and NumPy begin equal streams."""
    before = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002

    def seed(number: int) -> None:
        seeds = hashlib.blake2b(str(number).encode(), digest_size=24).digest()
        torch.default_generator.manual_seed(int.from_bytes(seeds[:8], "big") >> 1)
        np.random.seed(int.from_bytes(seeds[8:12], "big"))  # noqa: NPY002
        random.seed(seeds[12:])

    try:
        yield seed
    finally:
        torch.set_rng_state(before[0])
        np.random.set_state(before[1])  # noqa: NPY002
        random.setstate(before[2])


def _written(parameters: Mapping[str, Any]) -> str:
    """Parameters as one writes them, in the order of their names."""
    for name, value in parameters.items():
        if not isinstance(value, int | float | str) or not isinstance(name, str):
            raise ParameterError(f"a parameter of a transform is a number or a text; found {name!r:.40}: {value!r:.40}")
    return ", ".join(f"{name}={parameters[name]!r}" for name in sorted(parameters))


def check_share(share: object) -> None:
    """Raise unless `share` is a share of values to change."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0.0 < share <= 1.0:
        raise ParameterError(f"the share of values or tokens to change is above 0 and at most 1; found {share!r:.40}")
