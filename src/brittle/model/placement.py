"""Where the parameters of a model are, and in which precision it computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from brittle.errors import ModelError


def place(model: Callable[[Tensor], Any], device: str | torch.device | None) -> tuple[torch.device, torch.dtype | None]:
    """Where the model is and in which precision it computes; moved if `device` names one."""
    if isinstance(model, nn.Module):
        _check_initialized(model)
    parameters = [*model.parameters(), *model.buffers()] if isinstance(model, nn.Module) else []
    if isinstance(model, nn.Module) and device is not None:
        try:
            model.to(device)
        except (RuntimeError, AssertionError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise ModelError("device", f"the model cannot be moved to {device}: {reason}") from error
        parameters = [*model.parameters(), *model.buffers()]
    devices = sorted({str(parameter.device) for parameter in parameters})
    if len(devices) > 1:
        raise ModelError("device", f"the weights are on several devices: {', '.join(devices)}; name one with device")
    floating = [parameter.dtype for parameter in parameters if parameter.is_floating_point()]
    found = devices[0] if devices else str(device or "cpu")
    return torch.device(found), floating[0] if floating else None


def _check_initialized(model: nn.Module) -> None:
    """Raise where a lazy layer does not know the shape of its weights yet."""
    lazy = [name for name, tensor in (*model.named_parameters(), *model.named_buffers()) if is_lazy(tensor)]
    if lazy:
        raise ModelError(
            "weights",
            f"{', '.join(lazy[:5])} of the model are still uninitialized, because its lazy layers have had no input "
            f"yet; call the model once on a batch of inputs, or load its weights, before it is scored",
        )
