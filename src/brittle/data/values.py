"""Which inputs of a batch are numbers, and whether these lie in the declared bounds."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from brittle.data.points import Batch
from brittle.errors import DataError
from brittle.model.bounds import allowed_range


def readable(batch: Batch) -> Tensor:
    """Whether each input was read and holds no NaN or infinite value, `[B]`."""
    read = torch.tensor([status.has_value for status in batch.status], dtype=torch.bool, device=batch.inputs.device)
    return read & batch.inputs.flatten(1).isfinite().all(dim=1)


def usable(batch: Batch) -> Tensor:
    """The inputs that were read and hold no NaN or infinite value, `[V, *shape]`."""
    return batch.inputs[readable(batch)]


def check_values(batch: Batch, bounds: tuple[float, float]) -> None:
    """Raise where an input lies outside the declared bounds.

    Raises:
        DataError: it does, by more than rounding.
    """
    inputs = usable(batch).flatten(1)
    if inputs.numel() == 0:
        return
    low, high = bounds
    least, most = allowed_range(bounds)
    smallest, largest = float(inputs.min()), float(inputs.max())
    if smallest >= least and largest <= most:
        return
    outside = ((inputs < least) | (inputs > most)).any(dim=1)
    first = torch.tensor(batch.rows)[readable(batch).cpu()][outside.cpu()][0]
    rows = int(outside.sum())
    found = f"values from {smallest:.4g} to {largest:.4g}, outside [{low:g}, {high:g}] in {rows} of {len(inputs)} rows"
    table = batch.inputs.dim() == 2 and not bool((inputs == inputs.round()).all())
    advice = _table_advice(smallest, largest) if table else _advice(smallest, largest, (low, high))
    raise DataError("value_range", f"{found}, the first of them row {int(first)}; {advice}")


def _advice(smallest: float, largest: float, bounds: tuple[float, float]) -> str:
    """What to do about values from `smallest` to `largest` that lie outside `bounds`."""
    low, high = bounds
    if smallest >= 0 and 16 < largest <= 255 and bounds == (0.0, 1.0):
        return "use --bounds 0 255 (bounds=(0, 255)) or divide by 255"
    if smallest < low and (high - low) <= 2:
        return "the data look normalised; give pixels and declare --mean and --std (mean=, std=) instead"
    return "declare the range with --bounds LO HI (bounds=)"


def _table_advice(smallest: float, largest: float) -> str:
    """What to do about the features of a table, from `smallest` to `largest`; the range that is named has room beside.

    Later rows may reach further: a quarter of the range on either side, but not below 0 where no value is.
    """
    room = (largest - smallest) / 4.0
    step = 10.0 ** (math.floor(math.log10(max(room, abs(largest) / 4.0, 1e-30))) - 1)
    ends = (math.floor((smallest - room * (smallest < 0)) / step), math.ceil((largest + room) / step))
    low, high = (f"{end * step:.12g}" for end in ends)
    return (
        f"declare a range that holds all features of all rows with --bounds LO HI (bounds=(LO, HI)), such as --bounds "
        f"{low} {high}; noise is of one size in all features: bring them to one scale first, such as a standard "
        "deviation of 1, or take --noise per-feature --sigma 0.1 (brittle.noise.PerFeature), of a tenth of each "
        "feature's deviation"
    )
