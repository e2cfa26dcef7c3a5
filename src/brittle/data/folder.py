"""A folder of images: one folder for each class, or all in one."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from brittle.data.encoded import IMAGE_SUFFIX, encoded_points
from brittle.data.files import changed_error, files_digest, path_text, refuse_split
from brittle.data.numpy_files import read_answers
from brittle.data.points import ListedPoints
from brittle.data.reading import Reading
from brittle.errors import DataError

SPLITS = frozenset({"train", "training", "val", "valid", "validation", "dev", "test", "testing"})
"""Folder names that are taken for splits, not for classes."""


def is_folder_of_classes(path: Path) -> bool:
    """Whether `path` is a folder that holds folders."""
    return path.is_dir() and bool(_folders(path))


def is_flat_folder(path: Path) -> bool:
    """Whether `path` is a folder that holds images and no folders."""
    return path.is_dir() and not _folders(path) and any(map(_is_point, path.iterdir()))


def read_folder(path: Path, reading: Reading) -> ListedPoints:
    """Points in `path/class/image.png`, or in `path/split/class/image.png` with a split.

    Classes are the sorted folder names. The id of a point is its path relative to the folder of the classes.
    """
    inside = [folder.name for folder in _folders(path)]
    if reading.split not in (None, *inside) or (reading.split is None and SPLITS.issuperset(inside)):
        there = ", ".join(map(path_text, inside))
        raise DataError("split", f"{path_text(path)} holds the folders {there}; name a split with --split (split=)")
    root = path if reading.split is None else path / reading.split
    classes = {folder.name: number for number, folder in enumerate(_folders(root))}
    files = [one for name in classes for one in (root / name).rglob("*") if one.is_file()]
    files.sort(key=lambda one: one.relative_to(root).as_posix())
    known = {
        "labels": [classes[one.relative_to(root).parts[0]] for one in files if _is_point(one)],
        "class_names": list(map(path_text, classes)),
    }
    return _image_points(path, root, files, reading, known)


def read_flat_folder(path: Path, reading: Reading) -> ListedPoints:
    """Points in `path/image.png`, in the order of their names, which are their ids.

    They have no labels, unless `reading.labels` holds the class index of each.
    """
    refuse_split(path, reading.split)
    files = sorted((one for one in path.iterdir() if one.is_file()), key=lambda one: one.name)
    return _image_points(path, path, files, reading, read_answers(reading, sum(map(_is_point, files))))


def _image_points(
    path: Path, root: Path, files: Sequence[Path], reading: Reading, known: dict[str, Any]
) -> ListedPoints:
    """The images among the files of a folder."""
    images = [one for one in files if _is_point(one)]
    others, kept = len(files) - len(images), images[: reading.limit]
    if not kept:
        raise DataError(
            "empty_dataset",
            f"{path_text(root)} holds no images ({others} other files); expected images as "
            f"{path_text(root)}/CLASS/NAME.png",
        )
    record = reading.record(path, files_digest(root, kept), other_files=others)
    names, ids = list(map(path_text, kept)), [path_text(one.relative_to(root)) for one in kept]
    return encoded_points(partial(_opened, kept, path_text(path)), names, ids, reading, record, **known)


def _is_point(path: Path) -> bool:
    return bool(IMAGE_SUFFIX.fullmatch(path.suffix)) and not path.name.startswith(".")


def _folders(path: Path) -> list[Path]:
    inside = (one for one in path.iterdir() if one.is_dir() and not one.name.startswith("."))
    return sorted(inside, key=lambda one: one.name)


def _opened(files: Sequence[Path], data: str, start: int) -> Generator[BinaryIO, None, None]:
    for path in files[start:]:
        try:
            stream = path.open("rb")
        except OSError as error:
            raise changed_error(data, f"{path_text(path)} cannot be opened ({error.strerror or error})") from error
        with stream:
            yield stream
