"""Corrupted copies of a data set, so that one model can be scored on clean and on corrupted images."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray

from brittle.data.corruptions import CHANNEL_COUNTS, choose, corrupt, generator_for
from brittle.data.images import from_levels
from brittle.data.points import Batch, Points
from brittle.data.values import check_values, readable
from brittle.errors import DataError, ParameterError, StorageError
from brittle.model.bounds import check_bounds
from brittle.store.writing import check_target, make_folder, replacing

ROWS = 256
"""Images held in memory at a time."""

Values = NDArray[np.float32]


@dataclass(frozen=True)
class WrittenCopies:
    """What was written.

    Attributes:
        paths: the files, by kind and then by severity.
        points: points in each.
        failed: points that could not be read or hold NaN; they are NaN in every copy.
    """

    paths: tuple[Path, ...]
    points: int
    failed: int


def write_copies(
    points: Points,
    folder: str | os.PathLike[str],
    kinds: Sequence[str],
    severities: Sequence[int],
    *,
    seed: int = 0,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> WrittenCopies:
    """Write `folder/KIND-SEVERITY.npz` for each kind and severity: all files or, where anything fails, none.

    A file holds `x` `[N, C, H, W]`, float32 in the bounds, so that it is scored with the options of the model alone;
    and `y`, `ids`, `names` and `class_names` of the points as far as they have them. The ids are those of the original,
    so runs on both can be compared point by point. `corruption` says in JSON how the file was made.

    Inputs are rounded to the 256 levels between the bounds before they are corrupted. The copy of a point depends on
    the point, its id, the kind, the severity and the seed, not on the other points or their order.

    Args:
        points: images `[1, H, W]` or `[3, H, W]`; read twice.
        folder: made if absent.
        kinds: some of `brittle.data.corruptions.CORRUPTIONS`.
        severities: some of 1 to 5.
        seed: seed of all draws.
        bounds: smallest and largest value of an input.

    Returns:
        what was written.

    Raises:
        UsageError: no corruption is called so.
        ParameterError: no kind or severity, a severity out of range, or bounds that are not finite and increasing.
        DataError: the points are no images, grey ones where only colours would change, or not within the bounds.
        StorageError: a file is there already, or cannot be written.
    """
    bounds = check_bounds(bounds)
    strengths = {(kind, severity): choose(kind, severity)[1] for kind in kinds for severity in severities}
    if not strengths:
        raise ParameterError("expected at least one kind and one severity of corruption, found none")
    paths = [Path(folder) / f"{kind}-{severity}.npz" for kind, severity in strengths]
    for path in paths:
        check_target(path)
        if path.exists():
            raise StorageError("exists", f"{path} is there already; choose another folder or remove it")
    shape, entries, failed = _survey(points, bounds)
    for kind, severity in strengths:  # refuses what cannot be corrupted so, before anything is written
        corrupt(np.zeros((8, 8, shape[1]), np.uint8), kind, severity, generator_for(seed, kind, severity, ""))
    make_folder(Path(folder))
    with ExitStack() as stack:  # files get their names when all went well, and are removed otherwise
        copies = []
        for ((kind, severity), strength), path in zip(strengths.items(), paths, strict=True):
            made = {"kind": kind, "severity": int(severity), "strength": strength, "seed": seed, "bounds": bounds}
            own = entries | {"corruption": np.array(json.dumps(made | {"data": points.provenance}))}
            file = stack.enter_context(replacing(path, "make room or choose another folder"))
            copies.append(stack.enter_context(_npz(file, own, shape)))
        for batch in points.batches(ROWS):
            levels, lost = _levels(batch, bounds), (~readable(batch)).cpu().numpy()
            for (kind, severity), copy in zip(strengths, copies, strict=True):
                images = [
                    corrupt(image, kind, severity, generator_for(seed, kind, severity, point))
                    for image, point in zip(levels, batch.ids, strict=True)
                ]
                copy.write(_values(np.stack(images), lost, bounds).tobytes())
    return WrittenCopies(tuple(paths), shape[0], failed)


def _survey(points: Points, bounds: tuple[float, float]) -> tuple[tuple[int, ...], dict[str, NDArray[Any]], int]:
    """The shape of all images, `[N, C, H, W]`, the other arrays of a file, and how many points could not be read.

    Points that cannot be corrupted are refused before anything is written.
    """
    shape, ids, names, failed = (), list[str](), list[str](), 0
    for batch in points.batches(ROWS):
        shape = tuple(batch.inputs.shape[1:])
        if len(shape) != 3 or shape[0] not in CHANNEL_COUNTS:
            raise DataError(
                "shape", f"the inputs have shape {shape}, which is no image; bring them to (1, H, W) or (3, H, W)"
            )
        check_values(batch, bounds)
        ids += batch.ids
        names += batch.names or ()
        failed += int((~readable(batch)).sum())
    entries = {"ids": np.array(ids)}
    if points.labels is not None:
        entries["y"] = np.array(tuple(points.labels), dtype=np.int64)
    if names:
        entries["names"] = np.array(names)
    if points.class_names is not None:
        entries["class_names"] = np.array(tuple(points.class_names), dtype=np.str_)
    return (len(ids), *shape), entries, failed


def _levels(batch: Batch, bounds: tuple[float, float]) -> NDArray[np.uint8]:
    """The nearest of the 256 levels between the bounds, `[B, H, W, C]`; 0 where there is no finite number."""
    low, high = bounds
    values = batch.inputs.double().cpu().numpy().transpose(0, 2, 3, 1)
    share = (np.where(np.isfinite(values), values, low) - low) / (high - low)
    return np.rint(255 * share).clip(0, 255).astype(np.uint8)


def _values(levels: NDArray[np.uint8], lost: NDArray[np.bool_], bounds: tuple[float, float]) -> Values:
    """Levels `[B, H, W, C]` as inputs `[B, C, H, W]`, NaN where the point was lost."""
    values = from_levels(torch.from_numpy(levels.transpose(0, 3, 1, 2).copy()), bounds).numpy().astype("<f4")
    values[lost] = np.nan
    return values


@contextmanager
def _npz(file: IO[bytes], entries: Mapping[str, NDArray[Any]], shape: tuple[int, ...]) -> Iterator[IO[bytes]]:
    """A `.npz` file with these arrays, and the place where the bytes of `x`, `shape` in float32, go batch by batch."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in entries.items():
            with archive.open(f"{name}.npy", "w") as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)
        with archive.open("x.npy", "w", force_zip64=True) as entry:
            header = {"descr": "<f4", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(entry, header)
            yield entry
