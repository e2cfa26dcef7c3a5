"""WebDataset shards: `.tar` files in which the files of one name are one sample, an image and its class.

An archive is read in place: nothing of it is unpacked to the disk, no link is followed, and a compressed one is
refused, because it may unpack to any size.
"""

from __future__ import annotations

import re
import struct
import tarfile
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from brittle.data.encoded import IMAGE_SUFFIX, encoded_points
from brittle.data.files import changed_error, files_digest, path_text, split_files
from brittle.data.labels import LARGEST_LABEL, no_index
from brittle.data.points import ListedPoints
from brittle.data.reading import Reading
from brittle.errors import ArtefactError, DataError

LABEL_KIND = "cls"
"""Ending of a file that holds the class index of its sample, as text."""

MOST_BYTES, MOST_DIGITS = 1 << 28, 20
"""A larger image is not read; a label has no more digits."""

COMPRESSED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")

_CHUNK = 1 << 16
_ERRORS = (tarfile.TarError, OSError, EOFError, ValueError, OverflowError, RecursionError, LookupError, struct.error)
"""What `tarfile` raises on broken archives."""

_NAME = re.compile(r"(?P<split>.*?)[-_]?\d*\.tar")


@dataclass(frozen=True)
class _Image:
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
    number; other files are counted. Ids are `SHARD/KEY`.
    """
    if path.is_file() and path.suffix != ".tar":
        raise ArtefactError(
            "file_refused",
            f"{path_text(path)} is compressed, so it may unpack to any size; unpack it to a .tar file first",
        )
    files, split = split_files(path, _NAME, reading.split)
    images, others = [], 0
    for file in files:
        more, left_over = _images(file)
        images += more
        others += left_over
    if not images:
        raise DataError(
            "empty_dataset", f"{path_text(path)} holds no images ({others} other files); expected KEY.png and KEY.cls"
        )
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
    return encoded_points(partial(_opened, images, path_text(path)), names, ids, reading, record, labels=known)


def _images(file: Path) -> tuple[list[_Image], int]:
    """The images of an archive, in its order, and how many files belong to none."""
    size = file.stat().st_size
    images: dict[str, tarfile.TarInfo] = {}
    labels: dict[str, int] = {}
    others = 0
    try:
        with tarfile.open(file, "r:") as archive:
            for member in archive:
                if member.isdir():
                    continue
                _check_member(member, file, size)
                folder, slash, base = member.name.rpartition("/")
                stem, _, kind = base.partition(".")
                key, kind = f"{folder}{slash}{stem}", kind.lower()
                if key in (labels if kind == LABEL_KIND else images) and _belongs(kind):
                    raise DataError(
                        "corrupt",
                        f"the sample {key!r:.80} of {path_text(file)} has two images or two classes, the "
                        f"second {member.name!r:.80}; give each image a name of its own",
                    )
                if kind == LABEL_KIND:
                    labels[key] = _label(archive, member, file)
                elif _belongs(kind):
                    images[key] = member
                else:
                    others += 1
            _check_end(file, archive.offset)
    except _ERRORS as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise DataError("corrupt", f"{path_text(file)} is not a readable .tar file: {reason}") from error
    found = [_Image(file, key, one.name, one.offset_data, one.size, labels.get(key)) for key, one in images.items()]
    return found, others + len(labels.keys() - images.keys())


def _belongs(kind: str) -> bool:
    return kind == LABEL_KIND or bool(IMAGE_SUFFIX.fullmatch(f".{kind}"))


def _check_member(member: tarfile.TarInfo, file: Path, size: int) -> None:
    """Raise where a member is no plain file of a usual size inside the archive."""
    where, place = f"{member.name!r:.80} in {path_text(file)}", PurePosixPath(member.name)
    if not member.isreg() or member.issparse():
        raise ArtefactError("file_refused", f"{where} is a link, a device or a sparse file; only plain files are read")
    if place.is_absolute() or ".." in place.parts or "\0" in member.name:
        raise ArtefactError(
            "file_refused", f"{where} has a name that leads out of the archive; pack it with plain names"
        )
    if member.offset_data + member.size > size:
        raise DataError(
            "corrupt", f"{where} has {member.size:,} bytes and the archive of {size:,} bytes ends before; get it again"
        )
    if member.size > MOST_BYTES:
        raise ArtefactError("file_refused", f"{where} has {member.size:,} bytes; at most {MOST_BYTES:,} are read")


def _check_end(file: Path, end: int) -> None:
    """Raise unless nothing but zeros follow the byte `end`; `tarfile` takes a damaged header for the end."""
    with file.open("rb") as stream:
        stream.seek(end)
        mark = stream.read(tarfile.BLOCKSIZE)
        sound = len(mark) == tarfile.BLOCKSIZE and not any(mark)
        while sound and (rest := stream.read(_CHUNK)):
            sound = not any(rest)
    if not sound:
        raise DataError(
            "corrupt",
            f"{path_text(file)} is cut short, damaged at byte {end:,}, or several archives joined into one; get it "
            "again, or keep archives apart",
        )


def _label(archive: tarfile.TarFile, member: tarfile.TarInfo, file: Path) -> int:
    """The class index in a file of an archive."""
    stream = archive.extractfile(member)
    text, where = (
        b"" if stream is None else stream.read(MOST_DIGITS + 1).strip(),
        f"{member.name!r:.80} in {path_text(file)}",
    )
    if not re.fullmatch(rb"-?\d+", text) or len(text) > MOST_DIGITS:
        raise DataError("labels", f"{where} holds {text!r:.60}; a class index is a whole number, as text")
    if abs(int(text)) > LARGEST_LABEL:
        raise no_index(f"{where} holds", int(text))
    return int(text)


def _opened(images: Sequence[_Image], data: str, start: int) -> Generator[BinaryIO, None, None]:
    """The images from `start`, each as a file in memory; one archive is open at a time."""
    for file, own in groupby(images[start:], key=lambda image: image.file):
        try:
            with file.open("rb") as stream:
                for image in own:
                    stream.seek(image.start)
                    content = stream.read(image.size)
                    if len(content) < image.size:
                        raise changed_error(data, f"{path_text(file)} is shorter than it was")
                    yield BytesIO(content)
        except OSError as error:
            raise changed_error(data, f"{path_text(file)} cannot be read ({error.strerror or error})") from error
