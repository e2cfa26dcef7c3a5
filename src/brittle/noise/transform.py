"""Noise that is not added: any random function of an input, such as a rotation."""

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
    """Noise that replaces a point by another input: `x' = f(x, randomness)`.

    It has no covariance, and no draw has a mirror image: copies are drawn singly, each with its own generator, and the
    sampled scores alone apply to it. A custom family has a `name`, the `unit` of `sigma`, and the method `apply`.
    """

    sigma: float = 1.0

    unit: ClassVar[str] = "own units"
    added: ClassVar[bool] = False
    of_rows: ClassVar[bool] = False  # each row of an input, such as a token, by itself: `apply` gets the varying rows
    of_characters: ClassVar[bool] = False  # for texts whose points are codes of characters

    @abstractmethod
    def apply(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Return a noisy copy of one input.

        Args:
            x: the input in the declared units, `[*shape]`, on the CPU.
            generator: source of all randomness; no other copy of any point shares its seed.
        """

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        raise ParameterError(f"{self._text} is not added to an input, so there is no noise to draw")

    def check_supports(self, score: str, linear: bool, pairs: bool = False) -> None:
        if linear or pairs:
            advice = f"and {self._text} is not added; use shrinkage, monte_carlo or probability_change"
            raise ParameterError(f"{score} needs noise that is added, its covariance or pairs (e, -e), {advice}")
        super().check_supports(score, linear)

    def _set(self, **values: object) -> None:
        vars(self).update(values)
        super().__post_init__()

    @property
    def _text(self) -> str:
        return f"the noise {self.parameters['noise']}"


@dataclass(frozen=True, init=False)
class Transform(Transforming):
    """A custom random function: `x' = fn(x, generator)` for one input `x`.

    All randomness must come from `generator`, or from the shared generators of PyTorch, NumPy and Python (`torch.rand`,
    `numpy.random.rand`, `random.random`), which are seeded for each copy and restored afterwards; their numbers and
    those of `generator` are independent. Two calls with the same randomness must give the same numbers, which is
    checked at one input of every batch. A generator of NumPy is `numpy.random.default_rng(generator.initial_seed())`.

    Example:
        >>> import torch
        >>> from brittle.noise import Transform
        >>> from brittle.scores import MonteCarlo
        >>> lighter = Transform(lambda x, g: x + 0.2 * torch.rand(1, generator=g), name="lighter")
        >>> MonteCarlo(noise=lighter, draws=100).parameters["noise"]
        'lighter()'

    Attributes:
        sigma: 1; the function sets the strength.
        fn: takes one input, a tensor `[*shape]` on the CPU in the declared units, which it may change, and a
            `torch.Generator`; returns an input of the same shape, a tensor or a NumPy array.

    Raises:
        ParameterError: the name is not one word, or a parameter is neither a number nor a text.
    """

    fn: Callable[[Tensor, torch.Generator], Tensor | np.ndarray] = field(init=False, repr=False)
    called: str = field(init=False)  # its name
    settings: str = field(init=False)  # parameters that tell it from others of that name, as text: `degrees=10`
    code: str = field(init=False)  # digest of the code of `fn` and of what it holds: no run goes on with another

    name: ClassVar[str] = "transform"
    explanation: ClassVar[str] = "A random function of the input"

    def __init__(
        self,
        fn: Callable[[Tensor, torch.Generator], Tensor | np.ndarray],
        *,
        name: str | None = None,
        parameters: Mapping[str, int | float | str] | None = None,
    ) -> None:
        """Use `fn` as noise, under its own name or `name`, with parameters such as `{"degrees": 10}`."""
        called = getattr(fn, "__name__", type(fn).__name__) if name is None else name
        if not isinstance(called, str) or not (called.isascii() and called.isidentifier()):
            raise ParameterError(f"a transform needs a name of one word, such as name='rotate'; found {called!r:.60}")
        self._set(sigma=1.0, fn=fn, called=called, settings=_written(parameters or {}), code=code_digest(fn))

    def apply(self, x: Tensor, generator: torch.Generator) -> Tensor:
        try:
            copy = self.fn(x, generator)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".removesuffix(": ")
            raise ParameterError(f"{self._text} failed at an input of shape {list(x.shape)}: {reason}") from error
        return torch.from_numpy(copy) if isinstance(copy, np.ndarray) else copy

    @property
    def parameters(self) -> Parameters:
        return {"sigma": self.sigma, "noise": f"{self.called}({self.settings})", "code": self.code}


def transform_copies(noise: Transforming, x: Tensor, generators: list[torch.Generator]) -> Tensor:
    """Return noisy copies of one input `[*shape]`, one for each generator on the CPU, `[len(generators), *shape]`."""
    point = x.detach().cpu()
    with shared_generators() as seed:
        return torch.stack([_copy(noise, point, generator, seed) for generator in generators]).to(x)


def check_keyed(noise: Transforming, x: Tensor, generator: Callable[[], torch.Generator]) -> None:
    """Raise unless two copies of `x` with the same randomness are equal."""
    copy, repeated = (transform_copies(noise, x, [generator()]) for _ in range(2))
    if not torch.equal(copy, repeated):
        advice = "take all randomness from it, as in torch.rand(1, generator=generator), and keep nothing"
        raise ParameterError(f"{noise._text} gives two results for one input and one generator; {advice}")


def _copy(noise: Transforming, x: Tensor, generator: torch.Generator, seed: Callable[[int], None]) -> Tensor:
    seed(generator.initial_seed())
    copy = noise.apply(x.clone(), generator)
    if not isinstance(copy, Tensor) or copy.shape != x.shape or copy.is_complex():
        description = f"shape {list(copy.shape)}" if isinstance(copy, Tensor) else f"type {type(copy).__name__}"
        raise ParameterError(f"{noise._text} must return an input of shape {list(x.shape)}; found {description}")
    if not bool(copy.isfinite().all()):
        raise ParameterError(f"{noise._text} gives {int((~copy.isfinite()).sum())} NaN or infinite numbers")
    return copy.detach().to(x, copy=True)  # the function may write its next copy over this one


@contextmanager
def shared_generators() -> Iterator[Callable[[int], None]]:
    """Yield a function that seeds the shared generators of PyTorch, NumPy and Python; restore them afterwards. Each
    gets another seed, derived from the number: equal seeds of PyTorch and NumPy begin equal streams."""
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
    for name, value in parameters.items():
        if not isinstance(value, int | float | str) or not isinstance(name, str):
            raise ParameterError(f"a parameter of a transform is a number or a text; found {name!r:.40}: {value!r:.40}")
    return ", ".join(f"{name}={parameters[name]!r}" for name in sorted(parameters))


def check_share(share: object) -> None:
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0.0 < share <= 1.0:
        raise ParameterError(f"the share of values or tokens to change is above 0 and at most 1; found {share!r:.40}")
