"""Encoded images of one size, decoded chunk by chunk: in folders, in WebDataset shards, and as tables have them."""

from __future__ import annotations

import re
import struct
import tarfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple

import torch

from brittle.data.files import changed_error, files_digest, path_text, refuse_split, split_files
from brittle.data.images import CHANNELS, Failure, Look, Picture, UnreadableImage, decode, from_levels, look_at
from brittle.data.labels import LARGEST_LABEL
from brittle.data.numpy_files import read_answers
from brittle.data.points import InputChunk, ListedPoints, RowIds
from brittle.data.reading import Reading
from brittle.errors import ArtefactError, DataError
from brittle.estimate import Status

SCANNED = 10_000
"""Images whose size is compared when a data set is opened; later ones are compared when they are read."""

IMAGE_SUFFIX = re.compile(
    r"\.(png|jpe?g|bmp|webp|gif|tiff?|eps|ps|svg|pdf|psd|ico|jp2|avif|heic|ppm|pgm|pbm|pnm)", re.IGNORECASE
)
"""Files that are points; those in a format that is not read get a status. Other files are counted in the record."""

SPLITS = frozenset({"train", "training", "val", "valid", "validation", "dev", "test", "testing"})
"""Folder names that are taken for splits, not for classes."""

LABEL_KIND = "cls"
"""Ending of a file in a shard that holds the class index of its sample, as text."""

COMPRESSED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")

MOST_BYTES, MOST_DIGITS = 1 << 28, 20
"""A larger image in a shard is not read; a label has no more digits."""

_SHARD = re.compile(r"(?P<split>.*?)[-_]?\d*\.tar")
_TAR_ERRORS = (
    tarfile.TarError,
    OSError,
    EOFError,
    ValueError,
    OverflowError,
    RecursionError,
    LookupError,
    struct.error,
)
"""What `tarfile` raises on broken archives."""

Files = Callable[[int], Generator[BinaryIO, None, None]]
"""Called with a row, gives the encoded images from that row on, each at its beginning."""


def encoded_points(
    files: Files,
    names: Sequence[str],
    ids: Sequence[str] | RowIds,
    reading: Reading,
    record: dict[str, Any],
    *,
    named: bool = True,
    **known: Any,
) -> ListedPoints:
    """Points that are encoded images, the first `reading.limit` of them.

    Args:
        files: called with a row, gives the encoded images from that row on.
        names: what the source calls each image, `[N]`.
        ids: of each point.
        reading: how they are read.
        record: where they come from.
        named: whether points are called by these names.
        known: labels, targets and names of classes, as `Reading.points` takes them.
    """
    if not names:
        raise DataError("empty_dataset", f"{record['path']} holds no images; expected at least 1")
    images = _scan(files, names[: reading.limit], reading)
    return reading.points({**record, "exif": reading.exif}, ids, images.read, names=names if named else None, **known)


@dataclass(frozen=True)
class EncodedImages:
    """Inputs that are encoded images of one size.

    Attributes:
        files: called with a row, gives the encoded images from that row on.
        names: what the source calls each image, `[N]`.
        reading: how they are read.
        look: mode and size of all: those of the first image that can be decoded.
        first: the row of that image.
    """

    files: Files
    names: Sequence[str]
    reading: Reading
    look: Look
    first: int

    def read(self, size: int, start: int) -> Iterator[InputChunk]:
        """The images from row `start`, `size` at a time: `[B, channels, height, width]` and what failed."""
        shape = (CHANNELS[self.look.mode], self.look.size[1], self.look.size[0])
        with closing(self.files(start)) as streams:
            files = enumerate(islice(streams, len(self.names) - start), start)
            while chunk := [self._decoded(*one) for one in islice(files, size)]:
                pictures = {position: one for position, one in enumerate(chunk) if isinstance(one, Picture)}
                inputs = torch.zeros(len(chunk), *shape, dtype=torch.float32)
                if pictures:
                    levels = torch.stack([one.pixels for one in pictures.values()])
                    inputs[list(pictures)] = from_levels(levels, self.reading.bounds)
                failures = {position: one for position, one in enumerate(chunk) if isinstance(one, Failure)}
                yield InputChunk(inputs, failures, frozenset(at for at, one in pictures.items() if one.turned))

    def check_size(self, row: int, size: tuple[int, int]) -> None:
        """Raise where image `row` does not have the size of the data set."""
        if size != self.look.size:
            width, height = self.look.size
            turned = " (they were turned as their EXIF data say)" if self.reading.exif == "apply" else ""
            raise DataError(
                "shape",
                f"{self.names[row]} has {size[0]} x {size[1]} pixels, {self.names[self.first]} {width} x {height}; "
                f"bring all images to one size first, or use --resize H W or --center-crop H W (resize=, center_crop=)"
                f"{turned}",
            )

    def _decoded(self, row: int, stream: BinaryIO) -> Picture | Failure:
        turn, fitting = self.reading.exif == "apply", self.reading.fitting
        try:
            picture = decode(stream, self.look.mode, turn=turn, fitting=fitting)
        except UnreadableImage as error:
            return error.failure
        self.check_size(row, (picture.pixels.shape[2], picture.pixels.shape[1]))
        return picture


def _scan(files: Files, names: Sequence[str], reading: Reading) -> EncodedImages:
    """The images with the mode and the size of all of them; the sizes of the first `SCANNED` are compared."""
    fitting, failures = reading.fitting, list[str]()
    images: EncodedImages | None = None
    with closing(files(0)) as streams:
        for row, stream in enumerate(islice(streams, min(SCANNED, len(names)))):
            try:
                if images is None:
                    decode(stream)
                    stream.seek(0)
                look = look_at(stream, turn=reading.exif == "apply")
            except UnreadableImage as error:  # its row gets a status when it is read
                failures.append(f"{names[row]}: {error.failure.reason}")
                continue
            try:
                fitting.check(look.size)
            except UnreadableImage as error:
                if error.failure.status is Status.DECODE_ERROR:
                    raise DataError(
                        "shape", f"{names[row]} has {error.failure.reason}; use another --resize or --center-crop"
                    ) from error
            size = fitting.size(look.size)
            if images is None:
                images = EncodedImages(files, names, reading, Look(reading.mode or look.mode, size), row)
            images.check_size(row, size)
    if images is None:
        raise DataError("corrupt", f"none of the first {len(failures)} images can be read; {failures[0]}")
    return images


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


class _Member(NamedTuple):
    """An image in an archive: its key, which is its path and name up to the first dot, and where its bytes lie."""

    file: Path
    key: str
    name: str
    start: int
    size: int
    label: int | None


def is_webdataset(path: Path) -> bool:
    """Whether `path` is a `.tar` file, compressed or not, or a folder with `.tar` files."""
    if path.is_file():
        return path.suffix == ".tar" or path.name.endswith(COMPRESSED)
    return any(file.is_file() for file in path.glob("*.tar"))


def read_webdataset(path: Path, reading: Reading) -> ListedPoints:
    """Points in a `.tar` file, or in those of one split in a folder (`test-000000.tar`), in their order.

    A sample is an image `KEY.png` (or another ending of an image) and, where there are labels, `KEY.cls`, a whole
    number; other files are counted. Ids are `SHARD/KEY`. An archive is read where it lies: nothing is unpacked, no link
    is followed, and a compressed one is refused, because it may unpack to any size.
    """
    if path.is_file() and path.suffix != ".tar":
        raise ArtefactError(
            "file_refused",
            f"{path_text(path)} is compressed, so it may unpack to any size; unpack it to a .tar file first",
        )
    files, split = split_files(path, _SHARD, reading.split)
    images, others = [], 0
    for file in files:
        more, left_over = _members(file)
        images += more
        others += left_over
    images = images[: reading.limit]
    labels = [one.label for one in images]
    if None in labels and any(label is not None for label in labels):
        first = images[labels.index(None)]
        raise DataError(
            "labels",
            f"{first.name!r:.80} in {path_text(first.file)} has no file of its class ({LABEL_KIND}) and others have "
            "one; label all or none",
        )
    names = [f"{path_text(one.file)}:{path_text(one.name)}" for one in images]
    ids = [f"{path_text(one.file.stem)}/{path_text(one.key)}" for one in images]
    there = [path_text(one.name) for one in files]
    record = reading.record(path, files_digest(path, files), split=split, files=there, other_files=others)
    known = None if None in labels else labels
    return encoded_points(partial(_unpacked, images, path_text(path)), names, ids, reading, record, labels=known)


def _members(file: Path) -> tuple[list[_Member], int]:
    """The images of an archive, in its order, and how many files belong to none."""
    where = path_text(file)
    images: dict[str, tarfile.TarInfo] = {}
    labels: dict[str, int] = {}
    others = 0
    try:
        with tarfile.open(file, "r:") as archive:
            for member in archive:
                if member.isdir():
                    continue
                _check_member(member, file)
                folder, slash, base = member.name.rpartition("/")
                stem, dot, kind = base.partition(".")
                key, found = f"{folder}{slash}{stem}", labels if kind.lower() == LABEL_KIND else images
                if found is images and not IMAGE_SUFFIX.fullmatch(dot + kind):
                    others += 1
                elif key in found:
                    raise DataError(
                        "corrupt",
                        f"the sample {key!r:.80} of {where} has two images or two classes, the second "
                        f"{member.name!r:.80}; give each image a name of its own",
                    )
                elif found is images:
                    images[key] = member
                else:
                    labels[key] = _label(archive, member, where)
            end = archive.offset
        with file.open("rb") as stream:  # because `tarfile` takes a damaged header for the end
            stream.seek(end)
            if len(mark := stream.read(tarfile.BLOCKSIZE)) < tarfile.BLOCKSIZE or any(mark) or _has_more(stream):
                raise EOFError(f"it is cut short, damaged at byte {end:,}, or several archives joined into one")
    except _TAR_ERRORS as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise DataError("corrupt", f"{where} is not a readable .tar file: {reason}") from error
    kept = [_Member(file, key, one.name, one.offset_data, one.size, labels.get(key)) for key, one in images.items()]
    return kept, others + len(labels.keys() - images.keys())


def _check_member(member: tarfile.TarInfo, file: Path) -> None:
    """Raise where a member is no plain file of a usual size inside the archive."""
    where, place, size = f"{member.name!r:.80} in {path_text(file)}", PurePosixPath(member.name), file.stat().st_size
    if not member.isreg() or member.issparse():
        raise ArtefactError("file_refused", f"{where} is a link, a device or a sparse file; only plain files are read")
    if place.is_absolute() or ".." in place.parts or "\0" in member.name:
        raise ArtefactError(
            "file_refused", f"{where} has a name that leads out of the archive; pack it with plain names"
        )
    if member.offset_data + member.size > size:
        raise EOFError(f"{member.name!r:.80} has {member.size:,} bytes and the archive of {size:,} bytes ends before")
    if member.size > MOST_BYTES:
        raise ArtefactError("file_refused", f"{where} has {member.size:,} bytes; at most {MOST_BYTES:,} are read")


def _has_more(stream: BinaryIO) -> bool:
    """Whether anything but zeros follows."""
    return any(any(part) for part in iter(lambda: stream.read(1 << 16), b""))


def _label(archive: tarfile.TarFile, member: tarfile.TarInfo, where: str) -> int:
    """The class index in a file of an archive."""
    stream = archive.extractfile(member)
    text = b"" if stream is None else stream.read(MOST_DIGITS + 1).strip()
    if not re.fullmatch(rb"-?\d{1,19}", text) or abs(int(text)) > LARGEST_LABEL:
        raise DataError(
            "labels",
            f"{member.name!r:.80} in {where} holds {text!r:.60}; a class index is a whole number up to "
            f"{LARGEST_LABEL:,.0f}, as text",
        )
    return int(text)


def _unpacked(images: Sequence[_Member], data: str, start: int) -> Generator[BinaryIO, None, None]:
    """The images from `start`, each as a file in memory."""
    for image in images[start:]:
        try:
            with image.file.open("rb") as stream:
                stream.seek(image.start)
                content = stream.read(image.size)
        except OSError as error:
            raise changed_error(data, f"{path_text(image.file)} cannot be read ({error.strerror or error})") from error
        if len(content) < image.size:
            raise changed_error(data, f"{path_text(image.file)} is shorter than it was")
        yield BytesIO(content)
