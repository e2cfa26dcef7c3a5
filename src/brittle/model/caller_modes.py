"""What a caller may have switched for its thread, and what is computed with instead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch


@contextmanager
def standard_modes(device: torch.device) -> Iterator[None]:
    """Gradients can be taken inside the block, and nothing is computed in another precision than its own.

    `torch.no_grad`, `torch.inference_mode` and `torch.autocast` of the caller hold for its thread. The first two would
    take away the derivatives, the last decides numbers without being part of the model. (Within the model's own
    `forward` all three do what they do.)
    """
    with ExitStack() as modes:
        modes.enter_context(torch.inference_mode(False))
        modes.enter_context(torch.enable_grad())
        for kind in dict.fromkeys(("cpu", device.type)):
            if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):
                modes.enter_context(torch.autocast(kind, enabled=False))
        yield
