"""Where a model lies, and what is done to inputs before it gets them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from brittle.errors import ModelError, ParameterError
from brittle.model.aside import Aside


def place(model: Callable[[Tensor], Any], device: str | torch.device | None) -> tuple[torch.device, torch.dtype | None]:
    """Where the model is and in which precision it computes, None where it has no weights; moved where `device` is one.

    Raises:
        ModelError: its weights are on several devices, cannot be moved, or have no shape yet (lazy layers).
    """
    if not isinstance(model, nn.Module):
        return torch.device(device or "cpu"), None
    lazy = [name for name, one in (*model.named_parameters(), *model.named_buffers()) if is_lazy(one)]
    if lazy:
        raise ModelError(
            "weights",
            f"{', '.join(lazy[:5])} of the model are still uninitialized, because its lazy layers have had no input "
            f"yet; call the model once on a batch of inputs, or load its weights, before it is scored",
        )
    if device is not None:
        try:
            model.to(device)
        except (RuntimeError, AssertionError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise ModelError("device", f"the model cannot be moved to {device}: {reason}") from error
    weights = [*model.parameters(), *model.buffers()]
    devices = sorted({str(one.device) for one in weights})
    if len(devices) > 1:
        raise ModelError("device", f"the weights are on several devices: {', '.join(devices)}; name one with device")
    precision = next((one.dtype for one in weights if one.is_floating_point()), None)
    return torch.device(devices[0] if devices else device or "cpu"), precision


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


def as_seen(rows: Tensor, aside: Aside | None, mean: Sequence[float] | None, std: Sequence[float] | None) -> Tensor:
    """Rows `[B, *shape]` as the model sees them: what does not vary is the point's own, and all is normalised.

    Args:
        rows: where the model lies, and in its precision.
        aside: what each has beside its input.
        mean: subtracted, one number or one per channel (axis 1).
        std: what the difference is divided by, likewise.

    Raises:
        ParameterError: the numbers of `mean` or `std` are neither one nor one a channel.
    """
    kept = rows if aside is None else aside.kept(rows)
    if not mean and not std:
        return kept.clone()  # a model that works in place cannot change the caller's data
    channels = kept.shape[1] if kept.dim() > 1 else 1
    for name, numbers in (("mean", mean), ("std", std)):
        if numbers is not None and len(numbers) not in (1, channels):
            raise ParameterError(
                f"{len(numbers)} numbers for {name}, inputs of shape {list(kept.shape)}; give 1 or one a channel",
            )
    return normalise(kept, kept.new_tensor(mean or (0.0,)), kept.new_tensor(std or (1.0,)))


def normalise(inputs: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """`(inputs - mean) / std` in the precision of `inputs` `[B, *shape]`.

    Args:
        inputs: `[B, *shape]`.
        mean: `[1]`, or one for each channel (axis 1).
        std: likewise.
    """
    shape = (1, -1) + (1,) * (inputs.dim() - 2)
    return (inputs - mean.to(inputs.dtype).view(shape)) / std.to(inputs.dtype).view(shape)
