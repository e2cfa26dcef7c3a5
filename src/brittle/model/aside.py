"""What a point has beside the input that varies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class Aside:
    """What a point has beside the input that varies: other tensors, coordinates that do not vary, what was decided.

    Attributes:
        decided: what `Decision.decide` kept of the model's output at the point, a row each; None where the decision is
            the predicted class, or is yet to be taken.
        tensors: the other tensors of the point by the names under which the model takes them, a row each.
        varies: which coordinates of the input vary, `[B, *shape]` or with axes of size 1 at the end, bool; None for
            all. A network sees the others as they are at the point, whatever is done to them, so that noise, gradients
            and attacks there have no effect.
        inputs: the inputs at the points, `[B, *shape]`, where some coordinates do not vary.
    """

    decided: Tensor | None = None
    tensors: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])
    varies: Tensor | None = None
    inputs: Tensor | None = None

    def only(self, rows: Tensor) -> Aside:
        """The rows `rows`, `[N]`; a row may stand there often, for the copies of a point."""
        decided, varies, inputs = (
            None if one is None else one[rows.to(one.device)] for one in (self.decided, self.varies, self.inputs)
        )
        tensors = {name: tensor[rows.to(tensor.device)] for name, tensor in self.tensors.items()}
        return Aside(decided, tensors, varies, inputs)

    def kept(self, inputs: Tensor) -> Tensor:
        """`inputs` `[B, *shape]` with the coordinates that do not vary as they are at the points."""
        if self.varies is None or self.inputs is None:
            return inputs
        return torch.where(self.varies.to(inputs.device), inputs, self.inputs.to(inputs))

    def to(self, device: torch.device) -> Aside:
        """The same on `device`."""
        decided, varies, inputs = (
            None if one is None else one.to(device) for one in (self.decided, self.varies, self.inputs)
        )
        return Aside(decided, {name: one.to(device) for name, one in self.tensors.items()}, varies, inputs)

    def around(self, inputs: Tensor) -> Aside:
        """The same with `inputs` `[B, *shape]` as those of the points."""
        return self if self.varies is None else replace(self, inputs=inputs)

    @staticmethod
    def joined(first: Aside, second: Aside) -> Aside:
        """The rows of both, those of `first` first."""
        tensors = {name: torch.cat((one, second.tensors[name])) for name, one in first.tensors.items()}
        pairs = ((getattr(first, name), getattr(second, name)) for name in ("decided", "varies", "inputs"))
        decided, varies, inputs = (None if one is None or two is None else torch.cat((one, two)) for one, two in pairs)
        return Aside(decided, tensors, varies, inputs)
