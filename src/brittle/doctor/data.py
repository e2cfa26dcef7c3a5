"""Are the data what was declared, and the same whenever they are read?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from brittle.data.files import changed_error, file_digest
from brittle.data.points import Batch, Points
from brittle.data.values import check_values
from brittle.doctor.finding import Finding
from brittle.doctor.subject import LOOKED_AT, Subject
from brittle.errors import DataError

NARROW = 0.05
"""Share of the declared range below which the values are noted."""


def check_range(subject: Subject) -> Iterator[Finding | str]:
    """The values lie in the declared range, and use more than a sliver of it."""
    bounds = subject.classifier.bounds
    try:
        check_values(subject.batch, bounds)
    except DataError as error:
        subject.check_columns(error)
        raise
    inputs = subject.inputs
    smallest, largest = float(inputs.min()), float(inputs.max())
    if bounds.pair is None:
        yield f"{smallest:.4g} to {largest:.4g} in {len(inputs)} rows, declared bounds: {bounds}"
        return
    low, high = bounds.pair
    if largest - smallest < NARROW * (high - low):
        yield Finding(
            "narrow_range",
            f"the first {len(inputs)} rows hold values from {smallest:.4g} to {largest:.4g}, the declared range is "
            f"[{low:g}, {high:g}]; sigma and the bounds are in the units of the data (--bounds, bounds=)",
        )
    yield f"{smallest:.4g} to {largest:.4g} in {len(inputs)} rows, declared [{low:g}, {high:g}]"


def check_repeatable(subject: Subject) -> Iterator[Finding | str]:
    """The first points are the same when they are read again."""
    if subject.points is None:
        yield "the data are at hand once only"
        return
    again = next(iter(subject.points.batches(len(subject.batch))))
    if again.ids != subject.batch.ids or again.inputs.shape != subject.batch.inputs.shape:
        raise DataError(
            "nondeterministic_data",
            f"the first {len(subject.batch)} points came in another order or shape when read again; the data must give "
            f"the same points every time",
        )
    row, difference = _first_difference(subject.batch.inputs, again.inputs)
    if row is not None:
        raise DataError(
            "nondeterministic_data",
            f"row {subject.batch.rows[row]} read twice, max difference {difference:.3g}; leave random transforms "
            f"(crops, flips, noise) out of the data",
        )
    yield f"{len(again)} rows read twice are the same"


def about_orientation(turned: int, points: int, *, applied: bool) -> Iterator[Finding]:
    """A finding where images say in their EXIF data that they are turned.

    Args:
        turned: images that say so.
        points: all images.
        applied: whether they were turned as they say.
    """
    if not turned:
        return
    ignored = "the tag was ignored, as torchvision does (--exif apply, exif='apply', turns them)"
    yield Finding(
        "exif_orientation",
        f"{turned:,} of {points:,} images say in their EXIF data that they are turned or mirrored; "
        f"{'they were turned upright' if applied else ignored}",
    )


def digest(batch: Batch) -> str:
    """The sha256 over ids and inputs of the first `LOOKED_AT` points."""
    found = hashlib.sha256(repr((batch.ids[:LOOKED_AT], tuple(batch.inputs.shape[1:]))).encode())
    found.update(batch.inputs[:LOOKED_AT].contiguous().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def check_unchanged(points: Points, before: str) -> None:
    """Raise where the data are not what they were at the first look.

    The first points are read again; data in one file are also compared by the digest of that file, but for those of a
    format from outside, whose digest may be of anything.

    Args:
        points: the data.
        before: the `digest` of the first points at the first look.

    Raises:
        DataError: they changed.
    """
    path = points.provenance.get("path")
    first = next(iter(points.batches(LOOKED_AT)))
    if digest(first) != before:
        raise changed_error(path or "the data", f"the first {min(len(first), LOOKED_AT)} points hold other values")
    file = None if path is None else Path(path)
    if file is not None and file.is_file() and points.provenance.get("code") is None:
        now, then = file_digest(file), points.provenance["sha256"]
        if now != then:
            raise changed_error(path, f"sha256 {now[:16]}… instead of {then[:16]}…")


def _first_difference(one: Tensor, other: Tensor) -> tuple[int | None, float]:
    """The first row that differs, and by how much at most in all rows; NaN equals NaN."""
    different = ((one != other) & ~(one.isnan() & other.isnan())).flatten(1).any(dim=1)
    if not bool(different.any()):
        return None, 0.0
    return int(different.nonzero()[0]), float((one - other).abs().nan_to_num(nan=torch.inf).max())
