"""WebDataset shards: encoded images in `.tar` archives, read where they lie, of which nothing is unpacked."""

from __future__ import annotations

import re
import struct
import tarfile
from collections.abc import Iterator, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple

import numpy as np

from brittle.data.files import changed_error, files_digest, path_text, split_files
from brittle.data.folder import IMAGE_SUFFIX, encoded_points
from brittle.data.labels import check_labels
from brittle.data.points import ListedPoints
from brittle.data.reading import IMAGE_OPTIONS, Format, Reading
from brittle.errors import ArtefactError, DataError
from brittle.store.places import place_of

MOST_BYTES, CHUNK = 1 << 28, 1 << 20
"""A larger file in a shard is not read; and bytes that are read at a time."""

_SHARD = re.compile(r"(?P<split>.*?)[-_]?\d*\.tar")
_ERRORS = (tarfile.TarError, OSError, EOFError, ValueError, OverflowError, RecursionError, LookupError, struct.error)
"""What `tarfile` raises on broken archives."""


class _Member(NamedTuple):
    """A file in an archive, and where its bytes lie."""

    file: Path
    name: str
    start: int
    size: int


def read_webdataset(path: Path, reading: Reading) -> ListedPoints:
    """Points in a `.tar` file, or in those of one split in a folder (`test-000000.tar`), in their order.

    A sample is an image `KEY.png` (or another ending of an image) and, where there are labels, `KEY.cls`, a whole
    number; other files are counted. A key ends at the first dot of a file's name, as in WebDataset. Ids are
    `SHARD/KEY`. No link is followed.
    """
    where = path_text(path)
    files, split = split_files(path, _SHARD, reading.split)
    images, classes, others, dotted = dict[str, _Member](), dict[str, _Member](), 0, ""
    for member in (member for file in files for member in _members(file)):
        folder, slash, base = member.name.rpartition("/")
        stem, dot, kind = base.partition(".")
        is_class = kind.lower() == "cls"
        if not is_class and not IMAGE_SUFFIX.fullmatch(dot + kind):
            others += 1
            dotted = dotted or (base if IMAGE_SUFFIX.fullmatch(Path(kind).suffix) else "")
            continue
        found, key = classes if is_class else images, path_text(f"{member.file.stem}/{folder}{slash}{stem}")
        if key in found:
            raise DataError("corrupt", f"{where} has two images or two classes of {key!r:.80}: {member.name!r:.80}")
        found[key] = member
    if dotted and not images:
        stem, _, kind = dotted.partition(".")
        raise DataError(
            "empty_dataset",
            f"{where} holds no images under their keys: WebDataset ends a key at the first dot of a name, so that "
            f"{dotted!r:.80} is the file {kind!r:.60} of the sample {stem!r:.60}; write keys without dots, such as "
            f"{dotted.replace('.', '_', dotted.count('.') - 1)!r:.80}",
        )
    kept = list(images.values())[: reading.limit]
    labels = None if classes.keys().isdisjoint(images) else _labels(images, classes, where)
    record = reading.record(
        path, files_digest(path, files), split=split, files=[path_text(one.name) for one in files], other_files=others
    )
    names = [f"{path_text(one.file)}:{path_text(one.name)}" for one in kept]
    return encoded_points(partial(_open, kept, where), names, list(images), reading, record, labels=labels)


def _members(file: Path) -> Iterator[_Member]:
    """The files in an archive, in its order: plain ones, of a usual size."""
    try:
        with file.open("rb") as stream, tarfile.open(fileobj=stream, mode="r:") as archive:
            for one in archive:
                if not one.isdir():
                    if not one.isreg() or one.issparse() or one.size > MOST_BYTES:
                        raise ArtefactError(
                            "file_refused",
                            f"{one.name!r:.80} in {path_text(file)} is a link, a device or a sparse file, or has more "
                            f"than {MOST_BYTES:,} bytes; pack plain files",
                        )
                    yield _Member(file, one.name, one.offset_data, one.size)
            stream.seek(archive.offset)
            if not _is_end(stream):  # because `tarfile` takes a damaged header for the end
                where = f"damaged at byte {archive.offset:,}"
                raise EOFError(f"it is cut short, {where}, or several archives joined into one")
    except _ERRORS as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise DataError("corrupt", f"{path_text(file)} is not a readable .tar file: {reason}") from error


def _is_end(stream: IO[bytes]) -> bool:
    """Whether nothing but zeros follows, at least a block of them."""
    length = 0
    while part := stream.read(CHUNK):
        if any(part):
            return False
        length += len(part)
    return length >= tarfile.BLOCKSIZE


def _labels(images: dict[str, _Member], classes: dict[str, _Member], where: str) -> tuple[int, ...]:
    first = {key: one._replace(size=min(one.size, 20)) for key, one in classes.items()}  # no class is longer
    found = [_content(first[key], where) if key in first else b"" for key in images]
    for key, text in zip(images, found, strict=True):
        if not re.fullmatch(rb"\s*-?\d{1,18}\s*", text):
            raise DataError("labels", f"{key!r:.80} in {where} has the class {text!r:.60}; give all a whole number")
    return check_labels(np.array(list(map(int, found))), where, len(found))


def _open(images: Sequence[_Member], data: str, row: int) -> BinaryIO:
    return BytesIO(_content(images[row], data))


def _content(one: _Member, data: str) -> bytes:
    try:
        content = place_of(one.file).read_part(one.file, one.start, one.size)
    except OSError as error:
        raise changed_error(data, f"{path_text(one.file)} cannot be read ({error.strerror or error})") from error
    if len(content) < one.size:
        raise changed_error(data, f"{path_text(one.file)} is shorter than it was")
    return content


WEBDATASET = Format(
    "webdataset", "WebDataset shards, .tar, or a folder of them",
    lambda path: path.suffix == ".tar" if path.is_file() else any(file.is_file() for file in path.glob("*.tar")),
    read_webdataset, IMAGE_OPTIONS, rank=1, in_parts=True,
)  # fmt: skip
