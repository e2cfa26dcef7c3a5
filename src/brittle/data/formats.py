"""Data as points: files and arrays of many kinds behind one interface."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from brittle.data.arrays import array_points
from brittle.data.files import path_text
from brittle.data.folder import is_folder_of_classes, read_folder
from brittle.data.idx import is_idx_folder, read_idx
from brittle.data.npz import read_npz
from brittle.data.options import ReadingOptions
from brittle.data.parquet import is_parquet, read_parquet
from brittle.data.points import Points
from brittle.errors import DataError, ParameterError


class Format(NamedTuple):
    """A kind of data on disk.

    Attributes:
        name: what the record calls it.
        form: what it looks like, in words.
        recognise: whether a path is of this kind.
        read: opens it.
        encoded: whether it holds encoded images, which may carry EXIF data.
    """

    name: str
    form: str
    recognise: Callable[[Path], bool]
    read: Callable[[Path, ReadingOptions], Points]
    encoded: bool = False


def _is_npz(path: Path) -> bool:
    return path.is_file() and path.suffix == ".npz"


FORMATS = (
    Format("npz", "a .npz file with x and y, or images and labels", _is_npz, read_npz),
    Format("parquet", "a Hugging Face image .parquet file, or a folder of them", is_parquet, read_parquet, True),
    Format("idx", "a folder with PREFIX-images-idx3-ubyte[.gz]", is_idx_folder, read_idx),
    Format("folder", "a folder of images by class, CLASS/NAME.png", is_folder_of_classes, read_folder, True),
)
"""All formats; the first that recognises a path reads it."""


def as_points(data: Points | tuple[Any, Any] | Tensor, bounds: tuple[float, float]) -> Points:
    """Points as `brittle.score` takes them: `(x, y)`, where `y` may be None, or `x` alone, or points themselves.

    Raises:
        DataError: the arrays are not of the form that `array_points` takes.
    """
    if isinstance(data, Points):
        return data
    x, y = data if isinstance(data, tuple) and len(data) == 2 else (data, None)
    return array_points(x, y, bounds=bounds)


def open_points(
    path: str | os.PathLike[str],
    *,
    split: str | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
    limit: int | None = None,
    layout: str | None = None,
    scale_uint8: bool = False,
    exif: str = "ignore",
) -> Points:
    """Open data on disk; the format is found from the path (see `FORMATS`).

    Image files and IDX hold whole numbers 0..255, which are mapped to the bounds, float32; floating point arrays are
    taken as they are.

    Args:
        path: a file or a folder.
        split: part of the data, such as `test`; needed where there are several.
        bounds: smallest and largest value of an input.
        limit: keep the first so many points.
        layout: `nchw` or `nhwc`, axis order of image arrays in `.npz` files.
        scale_uint8: map whole numbers 0..255 in `.npz` files to the bounds.
        exif: `apply` turns encoded images (folders, Parquet) as the orientation in their EXIF data says, before
            anything else is done with them; `ignore` leaves them as their pixels lie, as torchvision does.

    Returns:
        the points, in the order of the data.

    Raises:
        DataError: the data cannot be scored as they stand; the code says why.
        ParameterError: `limit`, `bounds`, `layout` or `exif` are not of this form, or are not for this format.
    """
    options = ReadingOptions(split, bounds, limit, layout, scale_uint8, exif)
    place = Path(path)
    if not place.exists():
        raise DataError("no_such_path", f"{path_text(place)} does not exist")
    for known in FORMATS:
        if known.recognise(place):
            if layout is not None and known.read is not read_npz:
                raise ParameterError(
                    "layout", f"a layout is for arrays in .npz files, {path_text(place)} is {known.form}"
                )
            if exif != "ignore" and not known.encoded:
                raise ParameterError(
                    "exif", f"only encoded images are turned (exif), {path_text(place)} is {known.form}"
                )
            return known.read(place, options)
    forms = "; ".join(f"{known.name}: {known.form}" for known in FORMATS)
    raise DataError("unknown_format", f"{path_text(place)} is none of the formats that are read ({forms})")
