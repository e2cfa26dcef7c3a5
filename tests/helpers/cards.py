"""A pretended graphics card: tensors that claim the device `meta` and hold numbers.

A tensor on it wraps a tensor of the processor. Inside `card()` every operation is intercepted. Where a tensor of the
processor, other than a single number, meets one of the card, the operation raises as on a real card; else the processor
computes it. So code that leaves a tensor behind, or calls `.numpy()` on one of the card, fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

DEVICE = torch.device("meta")
"""Name of the card."""


class OnCard(torch.Tensor):
    """A tensor on the card; `held` is the tensor of the processor with its numbers."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, held: torch.Tensor, requires_grad: bool = False) -> OnCard:
        wrapper = torch.Tensor._make_wrapper_subclass(
            cls, held.shape, held.stride(), held.storage_offset(), dtype=held.dtype, device=DEVICE,
            requires_grad=requires_grad,
        )  # fmt: skip
        wrapper.held = held
        return wrapper

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    def tolist(self) -> Any:
        """Return the numbers, as a tensor on a real card does."""
        return self.held.tolist()

    def __repr__(self, **options: Any) -> str:
        return f"OnCard({self.held})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(func, args, kwargs or {})


def _each(function: Callable[[torch.Tensor], Any], value: Any) -> Any:
    """Return `value` with `function` applied to each tensor in it."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, dict):
        return {name: _each(function, inner) for name, inner in value.items()}
    return type(value)(_each(function, inner) for inner in value) if type(value) in (tuple, list) else value


def _computed(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    tensors: list[torch.Tensor] = []
    _each(tensors.append, (args, kwargs))
    on_card = [tensor for tensor in tensors if isinstance(tensor, OnCard)]
    device = kwargs.get("device")
    moves = func in (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)
    if on_card and not moves:
        for tensor in tensors:
            if not isinstance(tensor, OnCard) and tensor.dim() and func not in INDEXED:
                raise RuntimeError(
                    f"{func}: expected all tensors to be on the card, found one of {tuple(tensor.shape)} beside it"
                )
    returns_card = bool(on_card) if device is None else torch.device(device) == DEVICE
    if func is torch.ops.aten.copy_.default:
        returns_card = isinstance(args[0], OnCard)
    if device is not None and torch.device(device) == DEVICE:
        kwargs = kwargs | {"device": torch.device("cpu")}
    plain = _each(lambda tensor: tensor.held if isinstance(tensor, OnCard) else tensor, (args, kwargs))
    outcome = func(*plain[0], **plain[1])
    if not returns_card:
        return outcome
    same = {id(tensor.held): tensor for tensor in on_card}

    def back(tensor: torch.Tensor) -> torch.Tensor:
        return same[id(tensor)] if id(tensor) in same else OnCard(tensor)

    return _each(back, outcome)


INDEXED = {torch.ops.aten.index.Tensor, torch.ops.aten.index_put_.default, torch.ops.aten.index_put.default}
"""Operations whose indices may be on the processor."""


class _Generator(torch.Generator):
    def __new__(cls, device: Any = "cpu") -> _Generator:
        return super().__new__(cls, "cpu")  # type: ignore[call-arg]


def _then_moved(make: Any) -> Any:
    def made(*sizes: Any, device: Any = None, **options: Any) -> torch.Tensor:
        tensor = make(*sizes, **options)
        return tensor if device is None else tensor.to(device)

    return made


class _Mode(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(func, args, kwargs or {})


@contextmanager
def card() -> Iterator[torch.device]:
    """Provide the card and its generators of random numbers inside the block."""
    with pytest.MonkeyPatch.context() as patch, _Mode():
        patch.setattr(torch, "Generator", _Generator)
        for name in ("tensor", "as_tensor"):  # they make their numbers below what a mode sees
            patch.setattr(torch, name, _then_moved(getattr(torch, name)))
        yield DEVICE
