"""WebDataset shards: `.tar` files in which the files of one name are one sample, an image and its class.

An archive is read in place: nothing of it is unpacked to the disk, no link is followed, and a compressed one is
refused, because it may unpack to any size.
"""

from __future__ import annotations

import re
import struct
import tarfile
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from brittle.data.arrays import LARGEST_LABEL, index_range
from brittle.data.encoded import EncodedImages
from brittle.data.files import changed_error, file_digest, files_digest, path_text
from brittle.data.folder import IMAGE_SUFFIX
from brittle.data.listed import ListedPoints
from brittle.data.options import ReadingOptions
from brittle.errors import ArtefactError, DataError

LABEL_KIND = "cls"
"""Ending of a file that holds the class index of its sample, as text."""

MOST_BYTES, MOST_DIGITS = 1 << 28, 20
"""A larger image is not read; a label has no more digits."""

_CHUNK = 1 << 16

COMPRESSED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")

_ERRORS = (tarfile.TarError, OSError, EOFError, ValueError, OverflowError, RecursionError, LookupError, struct.error)
"""What `tarfile` raises on broken archives."""

_SHARD = re.compile(r"(?P<split>.*?)[-_]?(?P<shard>\d+)?\.tar")


@dataclass(frozen=True)
class _Sample:
    """An image in an archive.

    Attributes:
        file: the archive.
        key: what its files share: path and name up to the first dot.
        name: of the image in the archive.
        start: where its bytes begin.
        size: how many they are.
        label: class index, or None.
    """

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


def read_webdataset(path: Path, options: ReadingOptions) -> ListedPoints:
    """Points in a `.tar` file, or in those of one split in a folder (`test-000000.tar`), in their order.

    A sample is an image `KEY.png` (or another ending of an image) and, where there are labels, `KEY.cls`, a whole
    number; other files are counted. Ids are `SHARD/KEY`.

    Raises:
        DataError: there is no such split, an archive is damaged, a sample has two images or two classes, only some have
            labels, or images differ in size.
        ArtefactError: an archive is compressed, or holds links, devices, names that lead out of it, or files that are
            larger than it.
    """
    files, split = _files(path, options.split)
    samples: list[_Sample] = []
    others = 0
    for file in files:
        found, more = _samples(file)
        samples += found
        others += more
    kept = samples[: options.limit]
    if not kept:
        raise DataError(
            "empty_dataset", f"{path_text(path)} holds no images ({others} other files); expected KEY.png and KEY.cls"
        )
    names = tuple(f"{path_text(one.file)}:{path_text(one.name)}" for one in kept)
    images = EncodedImages.open(partial(_opened_from, kept, path_text(path)), names, options)
    return ListedPoints(
        ids=tuple(f"{path_text(one.file.stem)}/{path_text(one.key)}" for one in kept),
        read=images.read,
        bounds=options.bounds,
        provenance={
            "format": "webdataset",
            "path": path_text(path),
            "split": split,
            "sha256": file_digest(path) if path.is_file() else files_digest(path, files),
            "points": len(kept),
            "limit": options.limit,
            "files": [path_text(one.name) for one in files],
            "other_files": others,
            **options.of_images,
        },
        labels=_labels(kept),
        names=names,
    )


def _files(path: Path, split: str | None) -> tuple[list[Path], str | None]:
    """The archives to read, in order, and the split they are."""
    if path.is_file():
        if path.suffix != ".tar":
            raise ArtefactError(
                "file_refused",
                f"{path_text(path)} is compressed, so it may unpack to any size; unpack it to a .tar file first, which "
                "images in it hardly enlarge",
            )
        if split is not None:
            raise DataError("split", f"{path_text(path)} is one file; leave out --split (split=)")
        return [path], None
    splits: dict[str, list[Path]] = {}
    for file in sorted(file for file in path.glob("*.tar") if file.is_file()):
        match = _SHARD.fullmatch(file.name)
        splits.setdefault(match["split"] if match else file.stem, []).append(file)
    if split is None and len(splits) == 1:
        split = next(iter(splits))
    if split is None or split not in splits:
        asked = "no split was named" if split is None else f"there is no split {split!r}"
        there = ", ".join(path_text(name) or "(without a name)" for name in splits)
        raise DataError(
            "split",
            f"{path_text(path)} holds the splits {there}; {asked}: name one with --split (split=), or give one file",
        )
    return splits[split], split or None


def _samples(file: Path) -> tuple[list[_Sample], int]:
    """The samples of an archive, in its order, and how many files belong to none."""
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
                key, kind = _parts(member.name)
                if kind == LABEL_KIND and key not in labels:
                    labels[key] = _label(archive, member, file)
                elif kind == LABEL_KIND:
                    raise _twice(key, file, f"files of its class, {member.name!r:.80} a second time; keep one of them")
                elif not IMAGE_SUFFIX.fullmatch(f".{kind}"):
                    others += 1
                elif key in images:
                    both = f"{images[key].name!r:.80} and {member.name!r:.80}"
                    raise _twice(key, file, f"images, {both}; give each image a name of its own")
                else:
                    images[key] = member
            _check_end(file, archive.offset)
    except _ERRORS as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise DataError("corrupt", f"{path_text(file)} is not a readable .tar file: {reason}") from error
    found = [_Sample(file, key, one.name, one.offset_data, one.size, labels.get(key)) for key, one in images.items()]
    return found, others + len(labels.keys() - images.keys())


def _twice(key: str, file: Path, what: str) -> DataError:
    return DataError("corrupt", f"the sample {key!r:.80} of {path_text(file)} has two {what}")


def _parts(name: str) -> tuple[str, str]:
    """Key and ending of a file in an archive: what stands before and after the first dot of its name."""
    folder, slash, base = name.rpartition("/")
    stem, _, kind = base.partition(".")
    return f"{folder}{slash}{stem}", kind.lower()


def _check_member(member: tarfile.TarInfo, file: Path, size: int) -> None:
    """Raise where a member is no plain file inside the archive.

    Raises:
        ArtefactError: it is a link, a device or a sparse file, or its name leads out of the archive.
        DataError: it ends beyond the end of the archive.
    """
    where = f"{member.name!r:.80} in {path_text(file)}"
    if not member.isreg() or member.issparse():
        raise ArtefactError(
            "file_refused", f"{where} is a link, a device or a sparse file; only plain files are read: pack it without"
        )
    place = PurePosixPath(member.name)
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
    """Raise unless an archive ends at the byte `end` as it should; `tarfile` takes a damaged header for the end.

    Raises:
        DataError: there is no mark of the end, or more than zeros after it.
    """
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
    text = b"" if stream is None else stream.read(MOST_DIGITS + 1).strip()
    if not re.fullmatch(rb"-?\d+", text) or len(text) > MOST_DIGITS:
        raise DataError(
            "labels",
            f"{member.name!r:.80} in {path_text(file)} holds {text!r:.60}; a class index is a whole number, as text",
        )
    label = int(text)
    if abs(label) > LARGEST_LABEL:
        raise DataError(
            "labels",
            f"{member.name!r:.80} in {path_text(file)} holds {label}; class indices are {index_range(label)}: number "
            "the classes",
        )
    return label


def _labels(samples: Sequence[_Sample]) -> tuple[int, ...] | None:
    """The class index of every sample, or None where none has one."""
    labels = [one.label for one in samples]
    known = [label for label in labels if label is not None]
    if known and len(known) < len(labels):
        first = samples[labels.index(None)]
        raise DataError(
            "labels",
            f"{first.name!r:.80} in {path_text(first.file)} has no file of its class ({LABEL_KIND}), and {len(known)} "
            f"of {len(labels)} images have one; label all or none",
        )
    return tuple(known) or None


def _opened_from(samples: Sequence[_Sample], data: str, start: int) -> Generator[BinaryIO, None, None]:
    return _opened(samples[start:], data)


def _opened(samples: Sequence[_Sample], data: str) -> Generator[BinaryIO, None, None]:
    """The images, each as a file in memory; one archive is open at a time."""
    for file, own in _by_file(samples):
        try:
            with file.open("rb") as stream:
                for sample in own:
                    stream.seek(sample.start)
                    content = stream.read(sample.size)
                    if len(content) < sample.size:
                        raise changed_error(data, f"{path_text(file)} is shorter than it was")
                    yield BytesIO(content)
        except OSError as error:
            reason = error.strerror or error
            raise changed_error(data, f"{path_text(file)} cannot be read ({reason})") from error


def _by_file(samples: Sequence[_Sample]) -> Iterator[tuple[Path, Iterator[_Sample]]]:
    """The samples, archive by archive."""
    return groupby(samples, key=lambda sample: sample.file)
