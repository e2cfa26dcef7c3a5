"""Formats of data on disk, and the one door to points of every kind."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from brittle.data.arrays import array_points
from brittle.data.arrow import is_table
from brittle.data.datasets import dataset_points, is_list_of_images
from brittle.data.files import path_text
from brittle.data.folder import is_flat_folder, is_folder_of_classes, read_flat_folder, read_folder
from brittle.data.ids import choose_points, sample_points
from brittle.data.labels import name_classes
from brittle.data.numpy_files import is_idx_folder, read_idx, read_npy, read_npz
from brittle.data.points import Points
from brittle.data.reading import ARRAY_OPTIONS, IMAGE_OPTIONS, Format, Reading
from brittle.data.tables import read_frame, read_table
from brittle.errors import BrittleError, DataError, ParameterError
from brittle.model.arrays import Maite, names_itself
from brittle.model.bounds import BoundsLike
from brittle.registry import Registry
from brittle.store.places import is_stored, located
from brittle.store.writing import nearby
from brittle.user_code import unknown

if TYPE_CHECKING:
    import pandas as pd


def _ending(suffix: str) -> Callable[[Path], bool]:
    return lambda path: path.is_file() and path.suffix == suffix


_CORE = (
    Format("npz", "a .npz file with x and y, or images and labels", _ending(".npz"), read_npz, ARRAY_OPTIONS),
    Format("array", "a .npy file with one array", _ending(".npy"), read_npy, ARRAY_OPTIONS | {"labels"}),
    Format(
        "table", "a table of features or images, .csv, .tsv or .parquet", is_table, read_table,
        IMAGE_OPTIONS | {"label_column"}, in_parts=True,
    ),
    Format("idx", "a folder with PREFIX-images-idx3-ubyte[.gz]", is_idx_folder, read_idx, rank=2),
    Format(
        "folder", "a folder of images by class, CLASS/NAME.png", is_folder_of_classes, read_folder, IMAGE_OPTIONS,
        rank=4, in_parts=True,
    ),
    Format(
        "images", "a folder of images, NAME.png", is_flat_folder, read_flat_folder, IMAGE_OPTIONS | {"labels"},
        rank=4, in_parts=True,
    ),
)  # fmt: skip

FORMATS: Mapping[str, Format] = Registry("format", {entry.name: entry for entry in _CORE}, Format)  # by name
InMemory: TypeAlias = (  # data in memory
    "Points | tuple[Any, Any] | Tensor | list[Any] | pd.DataFrame | Dataset[Any] | DataLoader[Any] | Maite"
)

Data: TypeAlias = "InMemory | str | os.PathLike[str]"  # forms of data: in memory, or a path


def as_points(data: Data, bounds: BoundsLike, targets: bool = False, levels: bool = False, **words: Any) -> Points:
    """Points as `brittle.score` takes them: points, `(x, y)`, `x` alone, what `dataset_points` reads, a path as of
    `open_points`, or a frame of pandas, alone or as `x`, which is read as a table in a file.

    `targets`, `levels` and `words` are fields of `Reading`; the words are for a path, and `label_column` for a frame.

    Raises:
        DataError: they are of another form.
        ParameterError: a word is for other data.
    """
    reading = Reading(bounds=bounds, targets=targets, levels=levels, **words)
    if isinstance(data, str | os.PathLike):
        return open_points(data, reading)
    x, y = data if isinstance(data, tuple) and len(data) == 2 else (cast(Any, data), None)
    is_frame = type(x).__module__.partition(".")[0] == "pandas" and hasattr(x, "columns")
    for name in words.keys() - ({"label_column"} if is_frame else set[str]()):
        tables = "tables: a frame of pandas, or a path" if name == "label_column" else "data that are given as a path"
        raise ParameterError(f"{name}={words[name]!r:.60} is for {tables}; leave it out")
    if is_frame:
        return read_frame(x, y, reading)
    if isinstance(data, Points):
        return data
    if isinstance(data, Dataset | DataLoader) or is_list_of_images(data) or names_itself(data):
        return dataset_points(data, bounds=bounds, targets=targets)
    return array_points(x, y, bounds=bounds, targets=targets)


def open_points(path: str | os.PathLike[str], reading: Reading | None = None, **options: Any) -> Points:
    """Open data on disk; the format is found from the path (see `FORMATS`), unless one is given.

    Args:
        path: a file or a folder, on this machine or in a store (`s3://bucket/folder`), read in parts and never copied.
        reading: how they are read; as `Reading()` by default.
        options: fields of `Reading` that take the place of those of `reading`, such as `split="test"`.

    Raises:
        DataError: the data cannot be scored as they stand; the code says why.
        ParameterError: an option is not of its form, or is not for this format; an id is not there.
        UsageError: no format is called so.
    """
    reading, place = replace(reading or Reading(), **options), located(path)
    check_there(place)
    data_format = _format_of(place, reading)
    data_format.check_options(reading, place)
    if is_stored(place) and not data_format.in_parts:
        raise DataError(
            "unknown_format", f"{path_text(place)} is {data_format.form}, which is read from a disk alone; copy it"
        )
    points = data_format.read(place, replace(reading, format=data_format.name))
    points = points if reading.ids is None else choose_points(points, reading.ids)
    points = points if reading.sample is None else sample_points(points, reading.sample)
    return points if reading.class_names is None else name_classes(points, reading.class_names)


def check_there(place: Path) -> None:
    if not place.exists():
        meant = nearby(place, lambda file: file.suffix == place.suffix or file.stem == place.stem)
        raise DataError("no_such_path", f"{path_text(place)} does not exist{meant}")


def _named(name: str) -> Format:
    if name not in FORMATS:
        raise unknown("format", name, list(FORMATS))
    return FORMATS[name]


def reads_images(path: str | os.PathLike[str], format: str | None = None) -> bool:  # noqa: A002
    """Return whether `path` is read as encoded images, which can be brought to one size; False where it is not read."""
    try:
        data_format = _recognised(located(path)) if format is None else _named(format)
    except BrittleError:
        return False  # opening it says what is wrong
    return data_format.options >= IMAGE_OPTIONS


def _format_of(path: Path, reading: Reading) -> Format:
    """Return the format of a path, or the requested one; that of texts where the model reads texts, and only there."""
    requested, texts = reading.format, None if reading.texts is None else _named("texts")
    if requested is None:
        kind = texts if texts is not None and texts.recognise(path) else _recognised(path)
    else:
        kind = _named(requested)
        if not kind.recognise(path):
            raise DataError("unknown_format", f"expected {kind.form} (format {kind.name}), found {path_text(path)}")
    if texts is not None and kind is not texts:
        raise DataError("texts", f"the model reads texts; expected {texts.form}, found {path_text(path)}, {kind.form}")
    return kind


def _recognised(path: Path) -> Format:
    """Return the format of the lowest rank that recognises a path."""
    if any((path / name).is_file() for name in ("state.json", "dataset_dict.json")):
        raise DataError(
            "unknown_format",
            f"{path_text(path)} was written by save_to_disk, which is not read; write each split as Parquet: "
            "dataset.to_parquet('test.parquet')",
        )
    formats = sorted(FORMATS.values(), key=lambda data_format: data_format.rank)
    recognised = next((data_format for data_format in formats if data_format.recognise(path)), None)
    if recognised is None:
        forms = "; ".join(f"{data_format.name}: {data_format.form}" for data_format in formats)
        raise DataError("unknown_format", f"{path_text(path)} is none of the formats that are read ({forms})")
    return recognised
