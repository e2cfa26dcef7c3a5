"""Which inputs of a batch are numbers, and whether these lie in the declared bounds."""

from __future__ import annotations

import torch
from torch import Tensor

from brittle.data.points import Batch
from brittle.errors import DataError
from brittle.model.bounds import Bounds, BoundsLike

TABLE_ADVICE = (
    "take --bounds none (bounds='none') where features have no range of their own, or declare one that holds all "
    "features of all rows with --bounds LO HI (bounds=(LO, HI)); noise is of one size in all features: bring them to "
    "one scale first, or take --noise per-feature --sigma 0.1 (brittle.noise.PerFeature)"
)


def readable(batch: Batch) -> Tensor:
    """Whether each input was read and holds no NaN or infinite value, `[B]`."""
    read = torch.tensor([status.has_value for status in batch.status], dtype=torch.bool, device=batch.inputs.device)
    return read & batch.inputs.flatten(1).isfinite().all(dim=1)


def usable(batch: Batch) -> Tensor:
    """The inputs that were read and hold no NaN or infinite value, `[V, *shape]`."""
    return batch.inputs[readable(batch)]


def check_values(batch: Batch, bounds: BoundsLike) -> None:
    """Raise where an input lies outside the declared bounds."""
    inputs = usable(batch)
    if inputs.numel() == 0:
        return
    bounds = Bounds.of(bounds)
    bounds.check_shape(inputs.shape[1:])
    outside = ~bounds.contains(inputs)
    if not bool(outside.any()):
        return
    place = int(outside.nonzero()[0])
    row = int(torch.tensor(batch.rows)[readable(batch).cpu()][place])
    found = f"in {int(outside.sum())} of {len(inputs)} rows, the first of them row {row}"
    if bounds.pair is None:
        least, most = (torch.as_tensor(end).to(inputs).expand(inputs.shape[1:]) for end in bounds.allowed(inputs))
        feature = int(((inputs[place] < least) | (inputs[place] > most)).flatten().nonzero()[0])
        low, high = (
            float(torch.as_tensor(end).expand(inputs.shape[1:]).flatten()[feature])
            for end in (bounds.lower, bounds.upper)
        )
        raise DataError(
            "value_range",
            f"values outside the bounds of their feature {found}, which holds "
            f"{float(inputs[place].flatten()[feature]):.4g} at the feature in place {feature}, outside [{low:g}, "
            f"{high:g}]; give bounds that hold all rows, or none (--bounds none, bounds='none')",
        )
    low, high = bounds.pair
    smallest, largest = float(inputs.min()), float(inputs.max())
    table = batch.inputs.dim() == 2 and not bool((inputs == inputs.round()).all())
    advice = TABLE_ADVICE if table else _advice(smallest, largest, low, high)
    raise DataError(
        "value_range", f"values from {smallest:.4g} to {largest:.4g}, outside [{low:g}, {high:g}] {found}; {advice}"
    )


def _advice(smallest: float, largest: float, low: float, high: float) -> str:
    if smallest >= 0 and 16 < largest <= 255 and (low, high) == (0.0, 1.0):
        return "use --bounds 0 255 (bounds=(0, 255)) or divide by 255"
    if smallest < low and high - low <= 2:
        return "the data look normalised; give pixels and declare --mean and --std (mean=, std=) instead"
    return "declare the range with --bounds LO HI (bounds=)"
