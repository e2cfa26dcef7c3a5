"""A card that is not there: tensors that say they are on the device `meta`, and hold numbers.

What lies on it is a wrapper around a tensor of the processor. Inside `card()` every operation is looked at. Where a
tensor of the processor, other than a single number, meets one of the card, it raises as it would on a graphics card;
else the processor computes it. So code that leaves a tensor behind, or calls `.numpy()` on one of the card, fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

DEVICE = torch.device("meta")
"""What the card is called."""


class OnCard(torch.Tensor):
    """A tensor on the card; `held` is the one of the processor with its numbers."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, held: torch.Tensor, requires_grad: bool = False) -> OnCard:
        made = torch.Tensor._make_wrapper_subclass(
            cls, held.shape, held.stride(), held.storage_offset(), dtype=held.dtype, device=DEVICE,
            requires_grad=requires_grad,
        )  # fmt: skip
        made.held = held
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    def tolist(self) -> Any:
        """As on a card, it may be asked for its numbers."""
        return self.held.tolist()

    def __repr__(self, **options: Any) -> str:
        return f"OnCard({self.held})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(func, args, kwargs or {})


def _each(function: Callable[[torch.Tensor], Any], given: Any) -> Any:
    """What is given, with what `function` makes of each tensor in its place."""
    if isinstance(given, torch.Tensor):
        return function(given)
    if isinstance(given, dict):
        return {name: _each(function, one) for name, one in given.items()}
    return type(given)(_each(function, one) for one in given) if type(given) in (tuple, list) else given


def _computed(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    tensors: list[torch.Tensor] = []
    _each(tensors.append, (args, kwargs))
    on_card = [one for one in tensors if isinstance(one, OnCard)]
    device = kwargs.get("device")
    moves = func in (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)
    if on_card and not moves:
        for one in tensors:
            if not isinstance(one, OnCard) and one.dim() and func not in INDEXED:
                raise RuntimeError(
                    f"{func}: expected all tensors to be on the card, found one of {tuple(one.shape)} beside it"
                )
    there = bool(on_card) if device is None else torch.device(device) == DEVICE
    if func is torch.ops.aten.copy_.default:
        there = isinstance(args[0], OnCard)
    if device is not None and torch.device(device) == DEVICE:
        kwargs = kwargs | {"device": torch.device("cpu")}
    plain = _each(lambda one: one.held if isinstance(one, OnCard) else one, (args, kwargs))
    found = func(*plain[0], **plain[1])
    if not there:
        return found
    same = {id(one.held): one for one in on_card}

    def back(one: torch.Tensor) -> torch.Tensor:
        return same[id(one)] if id(one) in same else OnCard(one)

    return _each(back, found)


INDEXED = {torch.ops.aten.index.Tensor, torch.ops.aten.index_put_.default, torch.ops.aten.index_put.default}
"""Indices may be of the processor."""


class _Generator(torch.Generator):
    def __new__(cls, device: Any = "cpu") -> _Generator:
        return super().__new__(cls, "cpu")  # type: ignore[call-arg]


def _then_moved(make: Any) -> Any:
    def made(*given: Any, device: Any = None, **options: Any) -> torch.Tensor:
        found = make(*given, **options)
        return found if device is None else found.to(device)

    return made


class _Mode(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(func, args, kwargs or {})


@contextmanager
def card() -> Iterator[torch.device]:
    """Inside the block the card is there, and has generators of random numbers."""
    with pytest.MonkeyPatch.context() as patch, _Mode():
        patch.setattr(torch, "Generator", _Generator)
        for name in ("tensor", "as_tensor"):  # they make their numbers below what a mode sees
            patch.setattr(torch, name, _then_moved(getattr(torch, name)))
        yield DEVICE
