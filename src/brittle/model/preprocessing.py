"""What is subtracted from inputs, and what divides them, before a model gets them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from brittle.errors import ParameterError


def channel_numbers(name: str, numbers: float | Sequence[float] | None) -> tuple[float, ...] | None:
    """One number, or one for each channel, as a tuple; None for None.

    Raises:
        ParameterError: they are no finite numbers.
    """
    if numbers is None:
        return None
    values = (numbers,) if isinstance(numbers, int | float) else tuple(float(number) for number in numbers)
    if not values or not torch.tensor(values).isfinite().all():
        raise ParameterError(f"{name} must be finite numbers; found {list(values)}")
    return tuple(float(value) for value in values)


def normalise(inputs: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """`(inputs - mean) / std` in the precision of `inputs` `[B, *shape]`.

    Args:
        inputs: `[B, *shape]`.
        mean: `[1]`, or one for each channel (axis 1).
        std: likewise.
    """
    shape = (1, -1) + (1,) * (inputs.dim() - 2)
    return (inputs - mean.to(inputs.dtype).view(shape)) / std.to(inputs.dtype).view(shape)
