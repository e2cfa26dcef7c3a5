"""The interface of a way of training."""

from __future__ import annotations

from typing import ClassVar, Protocol

from torch import Tensor, nn


class Way(Protocol):
    """A loss to be minimised. A frozen dataclass, whose fields are what can be chosen of it.

    Attributes:
        name: in the names of networks.
    """

    name: ClassVar[str]

    @property
    def strength(self) -> float | None:
        """The number that says how strongly it differs from plain training; None for plain training."""
        ...

    def loss(self, network: nn.Module, x: Tensor, y: Tensor, grown: float = 1.0) -> Tensor:
        """Return the mean loss of images `[B, C, H, W]` of the classes `[B]`, differentiable in the weights.

        Args:
            network: in training mode.
            grown: share of the strength that is in force, in [0, 1]: it may grow while the network starts to learn.
        """
        ...


def number_text(value: float) -> str:
    """Return a strength in the name of a network: `8-255`, `1e-3`, `0.15`, `6`."""
    if value == 8 / 255:
        return "8-255"
    return f"{value:.0e}".replace("e-0", "e-") if value <= 0.01 else f"{value:g}"
