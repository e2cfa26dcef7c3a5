"""Networks that `torch.compile` made, run as PyTorch alone."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class _Held:
    """What is switched while any thread is inside a block.

    Attributes:
        holders: how many threads are.
        stance: switches back what the first of them switched.
    """

    holders: int = 0
    stance: ExitStack = field(default_factory=ExitStack)


_lock = threading.Lock()
_held = _Held()


@contextmanager
def uncompiled() -> Iterator[None]:
    """Inside the block what was compiled runs as PyTorch alone, in all threads; the last one to leave switches back.

    The backward pass of a compiled network can be made once and cannot be differentiated, and it would be compiled
    again for every size of a batch. PyTorch holds this switch for the whole process.
    """
    if "torch._dynamo" not in sys.modules:  # nothing was compiled
        yield
        return
    with _lock:
        if not _held.holders:
            _held.stance.enter_context(torch.compiler.set_stance("force_eager"))
        _held.holders += 1
    try:
        yield
    finally:
        with _lock:
            _held.holders -= 1
            if not _held.holders:
                _held.stance.close()


def plain(model: nn.Module) -> nn.Module:
    """The module that `torch.compile` was given, where `model` is what it made; else `model`."""
    return getattr(model, "_orig_mod", model)
