"""A folder of images: one folder for each class, or all in one."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from brittle.data.arrays import RightAnswers
from brittle.data.encoded import EncodedImages
from brittle.data.files import changed_error, files_digest, path_text
from brittle.data.listed import ListedPoints
from brittle.data.npy import labels_provenance, read_answers
from brittle.data.options import ReadingOptions
from brittle.errors import DataError

IMAGE_SUFFIX = re.compile(
    r"\.(png|jpe?g|bmp|webp|gif|tiff?|eps|ps|svg|pdf|psd|ico|jp2|avif|heic|ppm|pgm|pbm|pnm)", re.IGNORECASE
)
"""Files that are points; those in a format that is not read get a status. Other files are counted in the record."""

SPLITS = frozenset({"train", "training", "val", "valid", "validation", "dev", "test", "testing"})
"""Folder names that are taken for splits, not for classes."""


def is_folder_of_classes(path: Path) -> bool:
    """Whether `path` is a folder that holds folders."""
    return path.is_dir() and bool(_folders(path))


def read_folder(path: Path, options: ReadingOptions) -> ListedPoints:
    """Points in `path/class/image.png`, or in `path/split/class/image.png` with a split.

    Classes are the sorted folder names. The id of a point is its path relative to the folder of the classes.

    Raises:
        DataError: there are no images, no such split, none can be read, or their sizes differ.
    """
    root = _root(path, options.split)
    classes = _folders(root)
    files, others = _images(root, classes)
    kept = files[: options.limit]
    names = tuple(path_text(one) for one in kept)
    index = {folder.name: number for number, folder in enumerate(classes)}
    images = EncodedImages.open(partial(_opened_from, kept, path_text(path)), names, options)
    return ListedPoints(
        ids=tuple(path_text(one.relative_to(root)) for one in kept),
        read=images.read,
        bounds=options.bounds,
        provenance={
            "format": "folder",
            "path": path_text(path),
            "split": options.split,
            "sha256": files_digest(root, kept),
            "points": len(kept),
            "limit": options.limit,
            "other_files": others,
            **options.of_images,
        },
        labels=tuple(index[one.relative_to(root).parts[0]] for one in kept),
        names=names,
        class_names=tuple(path_text(folder.name) for folder in classes),
    )


def is_flat_folder(path: Path) -> bool:
    """Whether `path` is a folder that holds images and no folders."""
    return path.is_dir() and not _folders(path) and any(map(_is_point, path.iterdir()))


def read_flat_folder(path: Path, options: ReadingOptions) -> ListedPoints:
    """Points in `path/image.png`, in the order of their names, which are their ids.

    They have no labels, unless `options.label_file` holds the class index of each.

    Raises:
        DataError: none can be read, their sizes differ, or the labels are not as many.
    """
    where = path_text(path)
    if options.split is not None:
        raise DataError("split", f"{where} is one folder of images and has no splits; leave out --split (split=)")
    found = sorted((one for one in path.iterdir() if one.is_file()), key=lambda one: one.name)
    files = [one for one in found if _is_point(one)]
    found_right = None if options.label_file is None else read_answers(options.label_file, len(files), options)
    right = (found_right or RightAnswers()).first(options.limit)
    kept = files[: options.limit]
    names = tuple(path_text(one) for one in kept)
    images = EncodedImages.open(partial(_opened_from, kept, where), names, options)
    return ListedPoints(
        ids=tuple(path_text(one.name) for one in kept),
        read=images.read,
        bounds=options.bounds,
        provenance={
            "format": "images",
            "path": where,
            "split": None,
            "sha256": files_digest(path, kept),
            "points": len(kept),
            "limit": options.limit,
            "other_files": len(found) - len(files),
            **options.of_images,
        }
        | labels_provenance(options.label_file)
        | ({} if right.targets is None else {"targets": right.targets.shape[1]}),
        labels=right.labels,
        targets=right.targets,
        names=names,
    )


def _is_point(path: Path) -> bool:
    return bool(IMAGE_SUFFIX.fullmatch(path.suffix)) and not path.name.startswith(".")


def _images(root: Path, classes: Sequence[Path]) -> tuple[list[Path], int]:
    """The images in the class folders, in the order of their paths, and how many other files there are.

    Raises:
        DataError: there are no images.
    """
    found = sorted((one for folder in classes for one in folder.rglob("*") if one.is_file()), key=_relative_to(root))
    files = [one for one in found if _is_point(one)]
    if not files:
        raise DataError(
            "empty_dataset",
            f"{path_text(root)} holds no images in its {len(classes)} class folders ({len(found)} other files); "
            f"expected images as {path_text(root)}/CLASS/NAME.png",
        )
    return files, len(found) - len(files)


def _root(path: Path, split: str | None) -> Path:
    """The folder that holds the class folders."""
    inside = [folder.name for folder in _folders(path)]
    if split is not None and split not in inside:
        raise DataError(
            "split", f"{path_text(path)} has no folder {split!r}; it has {', '.join(map(path_text, inside))}"
        )
    if split is None and inside and SPLITS.issuperset(inside):
        raise DataError(
            "split", f"{path_text(path)} holds the splits {', '.join(inside)}; name one with --split (split=)"
        )
    return path if split is None else path / split


def _folders(path: Path) -> list[Path]:
    inside = (one for one in path.iterdir() if one.is_dir() and not one.name.startswith("."))
    return sorted(inside, key=lambda one: one.name)


def _relative_to(root: Path) -> Callable[[Path], str]:
    return lambda path: path.relative_to(root).as_posix()


def _opened_from(files: Sequence[Path], data: str, start: int) -> Generator[BinaryIO, None, None]:
    return _opened(files[start:], data)


def _opened(files: Sequence[Path], data: str) -> Generator[BinaryIO, None, None]:
    for path in files:
        try:
            stream = path.open("rb")
        except OSError as error:
            raise changed_error(data, f"{path_text(path)} cannot be opened ({error.strerror or error})") from error
        with stream:
            yield stream
