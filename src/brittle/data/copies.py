"""Corrupted copies of a data set, so that one model can be scored on clean and on corrupted images."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray

from brittle.data.corruptions import CHANNEL_COUNTS, check_channels, choose, corrupt, generator_for
from brittle.data.images import from_levels
from brittle.data.points import Batch, Points
from brittle.data.values import check_values, readable
from brittle.errors import DataError, ParameterError, StorageError
from brittle.model.bounds import check_bounds
from brittle.store.files.writing import check_target, make_folder, replacing

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
    chosen = [(kind, severity) for kind in dict.fromkeys(kinds) for severity in dict.fromkeys(severities)]
    if not chosen:
        raise ParameterError("expected at least one kind and one severity of corruption, found none")
    strengths = {one: choose(*one)[1] for one in chosen}
    paths = {(kind, severity): Path(folder) / f"{kind}-{severity}.npz" for kind, severity in chosen}
    _check_absent(paths.values())
    survey = _survey(points, bounds)
    for kind, severity in chosen:
        check_channels(choose(kind, severity)[0], survey.shape[0])

    with _committed(paths.values()) as files, ExitStack() as stack:
        copies = {}
        for (one, strength), file in zip(strengths.items(), files, strict=True):
            made = {"kind": one[0], "severity": int(one[1]), "strength": strength, "seed": seed, "bounds": bounds}
            entries = survey.entries(points) | {"corruption": np.array(json.dumps(made | {"data": points.provenance}))}
            shape = (len(survey.ids), *survey.shape)
            copies[one] = stack.enter_context(_npz(file, entries, shape))
        for batch in points.batches(ROWS):
            levels, lost = _levels(batch, bounds), (~readable(batch)).cpu().numpy()
            for (kind, severity), copy in copies.items():
                images = [
                    corrupt(image, kind, severity, generator_for(seed, kind, severity, point))
                    for image, point in zip(levels, batch.ids, strict=True)
                ]
                copy.write(_values(np.stack(images), lost, bounds).tobytes())
    return WrittenCopies(tuple(paths.values()), len(survey.ids), survey.failed)


@dataclass(frozen=True)
class _Survey:
    """What is known of all points once they were read.

    Attributes:
        shape: of an image, `(channels, height, width)`.
        ids: of all points, `[N]`.
        names: of all points, `[N]`, or empty where there are none.
        failed: how many could not be read.
    """

    shape: tuple[int, ...]
    ids: tuple[str, ...]
    names: tuple[str, ...]
    failed: int

    def entries(self, points: Points) -> dict[str, NDArray[Any]]:
        """The arrays of a file, but for the images."""
        known = {
            "y": None if points.labels is None else np.array(tuple(points.labels), dtype=np.int64),
            "ids": np.array(self.ids),
            "names": np.array(self.names) if self.names else None,
            "class_names": None if points.class_names is None else np.array(tuple(points.class_names), dtype=np.str_),
        }
        return {name: array for name, array in known.items() if array is not None}


def _survey(points: Points, bounds: tuple[float, float]) -> _Survey:
    """Read all points once, so that points that cannot be corrupted are refused before anything is written."""
    shape, ids, names, failed = (), [], [], 0
    for batch in points.batches(ROWS):
        shape = _image_shape(batch)
        check_values(batch, bounds)
        ids += batch.ids
        names += batch.names or ()
        failed += int((~readable(batch)).sum())
    return _Survey(shape, tuple(ids), tuple(names), failed)


def _image_shape(batch: Batch) -> tuple[int, ...]:
    shape = tuple(batch.inputs.shape[1:])
    if len(shape) != 3 or shape[0] not in CHANNEL_COUNTS:
        raise DataError(
            "shape",
            f"the inputs have shape {shape}, which is no image; bring them to (1, H, W) or (3, H, W) to corrupt them",
        )
    return shape


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


def _check_absent(paths: Iterable[Path]) -> None:
    for path in paths:
        check_target(path)
        if path.exists():
            raise StorageError("exists", f"{path} is there already; choose another folder or remove it")


@contextmanager
def _committed(paths: Iterable[Path]) -> Iterator[list[IO[bytes]]]:
    """Files that get these names when all went well, and are removed otherwise."""
    paths = list(paths)
    for folder in {path.parent for path in paths}:
        make_folder(folder)
    with ExitStack() as stack:
        yield [stack.enter_context(replacing(path, "make room or choose another folder")) for path in paths]


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
