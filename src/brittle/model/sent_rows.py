"""How rows are sent through a model: as it sees them, with what they have beside them, and counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from brittle.errors import ParameterError
from brittle.model.aside import Aside
from brittle.model.preprocessing import normalise


@dataclass
class SentRows:
    """Rows that were sent through a model, counted for all that share this count.

    Attributes:
        forward: sent forward.
        backward: sent backward.
    """

    forward: int = 0
    backward: int = 0


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
    # A copy, so that a model that works in place cannot change the caller's data.
    return _normalised(kept, mean, std) if mean or std else kept.clone()


def called(call: Callable[..., Any], rows: Tensor, aside: Aside | None, perturb: str | None) -> Any:
    """The output for rows as the model sees them, with the other tensors of each; `perturb` names their argument.

    Those are copies, too: a model may write over its mask.
    """
    others = {} if aside is None else {name: one.to(rows.device, copy=True) for name, one in aside.tensors.items()}
    return call(rows, **others) if perturb is None else call(**{perturb: rows}, **others)


def _normalised(inputs: Tensor, mean: Sequence[float] | None, std: Sequence[float] | None) -> Tensor:
    channels = inputs.shape[1] if inputs.dim() > 1 else 1
    for name, numbers in (("mean", mean), ("std", std)):
        if numbers is not None and len(numbers) not in (1, channels):
            raise ParameterError(
                f"{len(numbers)} numbers for {name}, inputs of shape {list(inputs.shape)}; give 1 or one a channel",
            )
    return normalise(inputs, inputs.new_tensor(mean or (0.0,)), inputs.new_tensor(std or (1.0,)))
