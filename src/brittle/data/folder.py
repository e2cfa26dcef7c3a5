"""Encoded images of one size, each decoded when it is read, and the folders that hold them."""

import re
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from brittle.data.files import changed_error, files_digest, path_text, refuse_split
from brittle.data.images import UnreadableImage, decode, from_levels
from brittle.data.numpy_files import read_answers
from brittle.data.points import InputRows, ListedPoints
from brittle.data.reading import Reading
from brittle.errors import DataError
from brittle.store.places import place_of

IMAGE_SUFFIX = re.compile(  # files that are points, if only with a status; others are counted
    r"\.(png|jpe?g|bmp|webp|gif|tiff?|eps|ps|svg|pdf|psd|ico|jp2|avif|heic|ppm|pgm|pbm|pnm)", re.IGNORECASE
)

SPLITS = frozenset({"train", "training", "val", "valid", "validation", "dev", "test", "testing"})  # not classes

Open = Callable[[int], BinaryIO]  # called with a row, gives its encoded image


def encoded_points(
    open_image: Open,
    names: Sequence[str],
    ids: Sequence[str],
    reading: Reading,
    record: dict[str, Any],
    *,
    has_names: bool = True,
    **answers: Any,
) -> ListedPoints:
    """Points that are encoded images, `names` what the source calls them, as the first that decodes.
    `has_names` says whether points have these names; `answers` are as `Reading.points` takes them."""
    if not names:
        raise DataError("empty_dataset", f"{record['path']} holds no images; expected at least 1")
    failures = list[str]()
    for row in range(min(1_000, len(names[: reading.limit]))):  # one of these must be decoded
        with warnings.catch_warnings(action="ignore"):
            decoded = _decoded(open_image, row, reading, reading.mode)
        if isinstance(decoded, Tensor):
            images = EncodedImages(open_image, names, reading, row, tuple(decoded.shape))
            return reading.points(record, ids, images.read, names=names if has_names else None, **answers)
        failures.append(f"{names[row]}: {decoded.reason}")
    raise DataError("corrupt", f"none of the first {len(failures)} images can be read; {failures[0]}")


@dataclass(frozen=True)
class EncodedImages:
    """Encoded images, of `names`, as inputs of the shape `[channels, height, width]` of row `first_row`."""

    open: Open
    names: Sequence[str]
    reading: Reading
    first_row: int
    shape: tuple[int, ...]

    def read(self, start: int, stop: int) -> InputRows:
        """Return some images, `[B, channels, height, width]`, and what failed; by as many threads as PyTorch has."""
        inputs = torch.zeros(stop - start, *self.shape, dtype=torch.float32)
        mode, threads = "L" if self.shape[0] == 1 else "RGB", min(torch.get_num_threads(), stop - start)

        def put(place: int) -> UnreadableImage | None:
            decoded = _decoded(self.open, start + place, self.reading, mode)
            if isinstance(decoded, UnreadableImage):
                return decoded
            self._check_size(start + place, decoded)
            inputs[place] = from_levels(decoded, self.reading.bounds)
            return None

        places = range(stop - start)
        # Pillow's own warnings are replaced by checks; they are switched off once for all threads, which share them.
        with warnings.catch_warnings(action="ignore"), ThreadPoolExecutor(threads) as pool:
            failed = list(pool.map(put, places) if threads > 1 else map(put, places))
        return InputRows(inputs, {place: failure for place, failure in enumerate(failed) if failure is not None})

    def _check_size(self, row: int, pixels: Tensor) -> None:
        if tuple(pixels.shape) != self.shape:
            (height, width), (high, wide) = pixels.shape[1:], self.shape[1:]
            raise DataError(
                "shape",
                f"{self.names[row]} has {width} x {height} pixels, {self.names[self.first_row]} {wide} x {high}; "
                "bring all to one size first, or use --resize H W or --center-crop H W (resize=, center_crop=)",
            )


def _decoded(open_image: Open, row: int, reading: Reading, mode: str | None) -> Tensor | UnreadableImage:
    with open_image(row) as stream:
        try:
            return decode(stream, mode, reading.steps)
        except UnreadableImage as error:
            return error


def is_folder_of_classes(path: Path) -> bool:
    """Return whether `path` is a folder that holds folders."""
    return path.is_dir() and bool(_folders(path))


def is_flat_folder(path: Path) -> bool:
    """Return whether `path` is a folder that holds images and no folders."""
    return path.is_dir() and not _folders(path) and any(map(_is_point, path.iterdir()))


def read_folder(path: Path, reading: Reading) -> ListedPoints:
    """Read points in `path/class/image.png`, or in `path/split/class/image.png`, classes sorted by name or by number.
    The id of a point is its path below the folder of the classes."""
    inside = [folder.name for folder in _folders(path)]
    if reading.split not in (None, *inside) or (reading.split is None and SPLITS.issuperset(inside)):
        contents = ", ".join(map(path_text, inside))
        raise DataError("split", f"{path_text(path)} holds the folders {contents}; name a split with --split (split=)")
    root = path if reading.split is None else path / reading.split
    classes = {folder.name: number for number, folder in enumerate(_folders(root))}
    files = [file for name in classes for file in (root / name).rglob("*") if file.is_file()]
    files.sort(key=lambda file: file.relative_to(root).as_posix())
    labels = [classes[file.relative_to(root).parts[0]] for file in files if _is_point(file)]
    return _image_points(path, root, files, reading, labels=labels, class_names=list(map(path_text, classes)))


def read_flat_folder(path: Path, reading: Reading) -> ListedPoints:
    """Read points in `path/image.png`, in the order of their names; `reading.labels` may have their classes."""
    refuse_split(path, reading.split)
    files = sorted((file for file in path.iterdir() if file.is_file()), key=lambda file: file.name)
    return _image_points(path, path, files, reading, **read_answers(reading, sum(map(_is_point, files))))


def _image_points(path: Path, root: Path, files: Sequence[Path], reading: Reading, **answers: Any) -> ListedPoints:
    images = [file for file in files if _is_point(file)]
    other_count, chosen = len(files) - len(images), images[: reading.limit]
    if not chosen:
        source = path_text(root)
        fault = f"{source} holds no images ({other_count} other files)"
        raise DataError("empty_dataset", f"{fault}; expected them as {source}/CLASS/NAME.png")
    record = reading.record(path, files_digest(root, chosen), other_files=other_count)
    names, ids = list(map(path_text, chosen)), [path_text(file.relative_to(root)) for file in chosen]
    return encoded_points(partial(_open, chosen, path_text(path)), names, ids, reading, record, **answers)


def _is_point(path: Path) -> bool:
    return bool(IMAGE_SUFFIX.fullmatch(path.suffix)) and not path.name.startswith(".")


def _folders(path: Path) -> list[Path]:
    """List the visible folders in `path`, sorted by name; 2 before 10 where all names are whole numbers."""
    folders = sorted(folder for folder in path.iterdir() if folder.is_dir() and not folder.name.startswith("."))
    are_numbers = all(re.fullmatch("-?[0-9]{1,18}", folder.name) for folder in folders)
    return sorted(folders, key=lambda folder: int(folder.name)) if are_numbers else folders


def _open(files: Sequence[Path], data: str, row: int) -> BinaryIO:
    try:
        return place_of(files[row]).open(files[row])
    except OSError as error:
        raise changed_error(data, f"{path_text(files[row])} cannot be opened ({error.strerror or error})") from error
