"""Inputs of a network: other tensors of a point, the steps before a pass, and the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from brittle.errors import ModelError, ParameterError, first_line


@dataclass(frozen=True)
class ExtraInputs:
    """Facts of a point beside the input: other tensors, coordinates that do not vary, the decision there."""

    decided: Tensor | None = None  # of `Decision.decide` at the point, a row each; None for the predicted class
    tensors: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])  # others by their arguments, a row each
    # which coordinates of the input vary, `[B, *shape]` or with axes of size 1 at the end, bool; None for all. A
    # network sees the others as they are at the point, so that noise, gradients and attacks there have no effect
    varies: Tensor | None = None
    inputs: Tensor | None = None  # those at the points, `[B, *shape]`, where some do not vary; NaN where one is missing

    def only(self, rows: Tensor) -> ExtraInputs:
        """Return the rows `rows`, `[N]`; a row may stand there often, for the copies of a point."""
        return self._each(lambda tensor: tensor[rows.to(tensor.device)])

    def to(self, device: torch.device) -> ExtraInputs:
        return self._each(lambda tensor: tensor.to(device))

    def _each(self, change: Callable[[Tensor], Tensor]) -> ExtraInputs:
        tensors = {name: change(tensor) for name, tensor in self.tensors.items()}
        decided, varies, inputs = (None if x is None else change(x) for x in (self.decided, self.varies, self.inputs))
        return ExtraInputs(decided, tensors, varies, inputs)

    def kept(self, inputs: Tensor) -> Tensor:
        """Return `inputs` `[B, *shape]` with the coordinates that do not vary as they are at the points."""
        if self.varies is None or self.inputs is None:
            return inputs
        return torch.where(self.varies.to(inputs.device), inputs, self.inputs.to(inputs))

    def around(self, inputs: Tensor) -> ExtraInputs:
        """Return the same with `inputs` `[B, *shape]` as those of the points, whose missing values stay missing."""
        if self.varies is None or self.inputs is None:
            return self if self.varies is None else replace(self, inputs=inputs)
        return replace(self, inputs=inputs.masked_fill(self.inputs.isnan(), torch.nan))

    @property
    def incomplete(self) -> Tensor | None:
        """Points with missing values, `[B]`, as booleans; None where there can be none."""
        return None if self.inputs is None else self.inputs.isnan().flatten(1).any(dim=1)

    @staticmethod
    def joined(front: ExtraInputs, back: ExtraInputs) -> ExtraInputs:
        tensors = {name: torch.cat((tensor, back.tensors[name])) for name, tensor in front.tensors.items()}
        pairs = ((getattr(front, name), getattr(back, name)) for name in ("decided", "varies", "inputs"))
        decided, varies, inputs = (None if a is None or b is None else torch.cat((a, b)) for a, b in pairs)
        return ExtraInputs(decided, tensors, varies, inputs)


def refuse_lazy(network: nn.Module) -> None:
    """Raise where a lazy layer has had no input yet, so that its weights have no shape."""
    lazy = [name for name, tensor in (*network.named_parameters(), *network.named_buffers()) if is_lazy(tensor)]
    if lazy:
        fault = f"{', '.join(lazy[:5])} of the model are still uninitialized, as its lazy layers have had no input yet"
        raise ModelError("weights", f"{fault}; call it once on a batch of inputs, or load its weights")


def place(model: Callable[[Tensor], Any], device: str | torch.device | None) -> tuple[torch.device, torch.dtype | None]:
    """Return the device of the model, moved to `device` unless that is None, and its precision or None."""
    if not isinstance(model, nn.Module):
        return torch.device(device or "cpu"), None
    refuse_lazy(model)
    if device is not None:
        try:
            model.to(device)
        except (RuntimeError, AssertionError) as error:
            raise ModelError("device", f"the model cannot be moved to {device}: {first_line(error)}") from error
    weights = [*model.parameters(), *model.buffers()]
    devices = sorted({str(tensor.device) for tensor in weights})
    if len(devices) > 1:
        raise ModelError("device", f"the weights are on several devices: {', '.join(devices)}; name one with device")
    precision = next((tensor.dtype for tensor in weights if tensor.is_floating_point()), None)
    return torch.device(devices[0] if devices else device or "cpu"), precision


def channel_numbers(name: str, numbers: float | Sequence[float] | None) -> tuple[float, ...] | None:
    """Return one number, or one for each channel, as a tuple; None for None."""
    if numbers is None:
        return None
    values = tuple(map(float, (numbers,) if isinstance(numbers, int | float) else numbers))
    if not values or not torch.tensor(values).isfinite().all():
        raise ParameterError(f"{name} must be finite numbers; found {list(values)}")
    return values


def as_seen(
    rows: Tensor, extra_inputs: ExtraInputs | None, mean: Sequence[float] | None, std: Sequence[float] | None
) -> Tensor:
    """Return rows `[B, *shape]` as the model sees them: what does not vary as at the point, normalised."""
    rows = rows if extra_inputs is None else extra_inputs.kept(rows)
    if not mean and not std:
        return rows.clone()  # a model that works in place cannot change the caller's data
    channels = rows.shape[1] if rows.dim() > 1 else 1
    for name, numbers in (("mean", mean), ("std", std)):
        if numbers is not None and len(numbers) not in (1, channels):
            raise ParameterError(
                f"{len(numbers)} numbers for {name}, inputs of shape {list(rows.shape)}; give 1, or 1 a channel"
            )
    return normalise(rows, rows.new_tensor(mean or (0.0,)), rows.new_tensor(std or (1.0,)))


def normalise(inputs: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """Return `(inputs - mean) / std` in the precision of `inputs` `[B, *shape]`; one number, or one a channel."""
    shape = (1, -1) + (1,) * (inputs.dim() - 2)
    return (inputs - mean.to(inputs.dtype).view(shape)) / std.to(inputs.dtype).view(shape)
