"""WebDataset shards: encoded images in `.tar` archives, read in place without unpacking."""

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

MOST_BYTES, CHUNK = 1 << 28, 1 << 20  # largest file in a shard that is read, and bytes read at a time

_SHARD = re.compile(r"(?P<split>.*?)[-_]?\d*\.tar")
_ERRORS = (tarfile.TarError, OSError, EOFError, ValueError, OverflowError, RecursionError, LookupError, struct.error)


class _Member(NamedTuple):
    """A file in an archive and the place of its bytes."""

    file: Path
    name: str
    start: int
    size: int


def read_webdataset(path: Path, reading: Reading) -> ListedPoints:
    """Read points from a `.tar` file, or from those of one split in a folder (`test-000000.tar`), in their order.

    A sample is an image `KEY.png` (or another ending of an image) and, with labels, `KEY.cls`, a whole number; other
    files are counted. A key ends at the first dot of a file name. Ids are `SHARD/KEY`. Links are not followed.
    """
    source = path_text(path)
    files, split = split_files(path, _SHARD, reading.split)
    images, classes, other_files, dotted = dict[str, _Member](), dict[str, _Member](), 0, ""
    for member in (member for file in files for member in _members(file)):
        folder, slash, base = member.name.rpartition("/")
        stem, dot, kind = base.partition(".")
        is_class = kind.lower() == "cls"
        if not is_class and not IMAGE_SUFFIX.fullmatch(dot + kind):
            other_files += 1
            dotted = dotted or (base if IMAGE_SUFFIX.fullmatch(Path(kind).suffix) else "")
            continue
        members, key = classes if is_class else images, path_text(f"{member.file.stem}/{folder}{slash}{stem}")
        if key in members:
            raise DataError("corrupt", f"{source} has two images or two classes of {key!r:.80}: {member.name!r:.80}")
        members[key] = member
    if dotted and not images:
        stem, _, kind = dotted.partition(".")
        raise DataError(
            "empty_dataset",
            f"{source} holds no images under their keys: WebDataset ends a key at the first dot of a name, so that "
            f"{dotted!r:.80} is the file {kind!r:.60} of the sample {stem!r:.60}; write keys without dots, such as "
            f"{dotted.replace('.', '_', dotted.count('.') - 1)!r:.80}",
        )
    chosen_images = list(images.values())[: reading.limit]
    labels = None if classes.keys().isdisjoint(images) else _labels(images, classes, source)
    shards, digest = [path_text(file.name) for file in files], files_digest(path, files)
    record = reading.record(path, digest, split=split, files=shards, other_files=other_files)
    names = [f"{path_text(image.file)}:{path_text(image.name)}" for image in chosen_images]
    return encoded_points(partial(_open, chosen_images, source), names, list(images), reading, record, labels=labels)


def _members(file: Path) -> Iterator[_Member]:
    """Yield the plain files of an archive in its order; refuse links, devices and huge files."""
    try:
        with file.open("rb") as stream, tarfile.open(fileobj=stream, mode="r:") as archive:
            for info in archive:
                if not info.isdir():
                    if not info.isreg() or info.issparse() or info.size > MOST_BYTES:
                        raise ArtefactError(
                            "file_refused",
                            f"{info.name!r:.80} in {path_text(file)} is a link, a device or a sparse file, or has more "
                            f"than {MOST_BYTES:,} bytes; pack plain files",
                        )
                    yield _Member(file, info.name, info.offset_data, info.size)
            stream.seek(archive.offset)
            if not _is_end(stream):  # `tarfile` takes a damaged header for the end
                raise EOFError(f"cut short, damaged at byte {archive.offset:,}, or several archives joined into one")
    except _ERRORS as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise DataError("corrupt", f"{path_text(file)} is not a readable .tar file: {reason}") from error


def _is_end(stream: IO[bytes]) -> bool:
    """Return whether only zeros follow, at least a block of them."""
    length = 0
    while part := stream.read(CHUNK):
        if any(part):
            return False
        length += len(part)
    return length >= tarfile.BLOCKSIZE


def _labels(images: dict[str, _Member], classes: dict[str, _Member], source: str) -> tuple[int, ...]:
    heads = {key: member._replace(size=min(member.size, 20)) for key, member in classes.items()}  # a class is no longer
    texts = [_content(heads[key], source) if key in heads else b"" for key in images]
    for key, text in zip(images, texts, strict=True):
        if not re.fullmatch(rb"\s*-?\d{1,18}\s*", text):
            raise DataError("labels", f"{key!r:.80} in {source} has the class {text!r:.60}; give all a whole number")
    return check_labels(np.array(list(map(int, texts))), source, len(texts))


def _open(images: Sequence[_Member], data: str, row: int) -> BinaryIO:
    return BytesIO(_content(images[row], data))


def _content(member: _Member, data: str) -> bytes:
    try:
        content = place_of(member.file).read_part(member.file, member.start, member.size)
    except OSError as error:
        raise changed_error(data, f"{path_text(member.file)} cannot be read ({error.strerror or error})") from error
    if len(content) < member.size:
        raise changed_error(data, f"{path_text(member.file)} is shorter than it was")
    return content


WEBDATASET = Format(
    "webdataset", "WebDataset shards, .tar, or a folder of them",
    lambda path: path.suffix == ".tar" if path.is_file() else any(file.is_file() for file in path.glob("*.tar")),
    read_webdataset, IMAGE_OPTIONS, rank=1, in_parts=True,
)  # fmt: skip
