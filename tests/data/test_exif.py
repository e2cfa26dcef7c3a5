"""Images that say in their EXIF data that they are turned: as their pixels lie, or as they say, and counted."""

from __future__ import annotations

import io
import random
import struct
import time
import tracemalloc
import warnings
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.data_files import (
    LABELS,
    encode,
    inputs,
    only,
    refused,
    write_folder,
)
from PIL import Image, ImageOps

import brittle
from brittle.data import Points, open_points
from brittle.data.images import UPRIGHT
from brittle.data.images import _orientation as orientation
from brittle.estimate import Status
from brittle.scores import Softmax

ORIENTATION = 0x0112
COLOUR = np.random.default_rng(5).integers(0, 256, (3, 5, 8), dtype=np.uint8)
"""No two of its eight ways to lie are the same."""

TURNED: dict[int, Callable[[np.ndarray], np.ndarray]] = {
    1: lambda x: x,
    2: lambda x: x[:, :, ::-1],
    3: lambda x: x[:, ::-1, ::-1],
    4: lambda x: x[:, ::-1],
    5: lambda x: x.transpose(0, 2, 1),
    6: lambda x: np.rot90(x, -1, (1, 2)),
    7: lambda x: x.transpose(0, 2, 1)[:, ::-1, ::-1],
    8: lambda x: np.rot90(x, 1, (1, 2)),
}
"""How pixels `[C, H, W]` are to be seen, by orientation; as the EXIF standard draws it, without Pillow."""


def tag(number: int) -> Image.Exif:
    exif = Image.Exif()
    exif[ORIENTATION] = number
    return exif


def folder(path: Path, files: Sequence[bytes], **options: Any) -> Points:
    write_folder(path / "images", list(files), LABELS[:1] * len(files))
    return open_points(path / "images", **options)


Reader = Callable[..., Points]


def levels(points: Points) -> np.ndarray:
    return (255 * inputs(points)).round().to(torch.uint8).numpy()


# Laws


@pytest.mark.parametrize("number", TURNED)
@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_an_image_is_turned_only_when_told(kind: str, number: int, tmp_path: Path) -> None:
    content = encode(COLOUR, kind, exif=tag(number), **({"lossless": True} if kind == "WEBP" else {}))
    with Image.open(io.BytesIO(content)) as image:
        raw, by_pillow = (np.asarray(one).transpose(2, 0, 1) for one in (image, ImageOps.exif_transpose(image)))
    assert kind == "JPEG" or np.array_equal(raw, COLOUR)
    ignored, applied = (folder(tmp_path, [content], **options) for options in ({}, {"exif": "apply"}))
    assert np.array_equal(levels(ignored)[0], raw)
    assert np.array_equal(levels(applied)[0], TURNED[number](raw))
    assert np.array_equal(levels(applied)[0], by_pillow)
    assert only(ignored).turned == only(applied).turned == (number != 1,)


def test_sizes_are_those_of_the_turned_images(tmp_path: Path) -> None:
    """A camera writes upright and sideways photographs; brought to one size, they differ as their pixels lie."""
    sideways = np.rot90(COLOUR, 1, (1, 2))
    files = [encode(sideways, "PNG", exif=tag(6)), encode(COLOUR)]
    refused("shape", "8 x 5 pixels, .* 5 x 8", folder, tmp_path, files)
    assert np.array_equal(levels(folder(tmp_path, files, exif="apply")), np.stack([COLOUR, COLOUR]))
    refused("shape", "5 x 8 pixels, .* 8 x 5", folder, tmp_path, [files[1], encode(sideways)], exif="apply")


def chunks(png: bytes) -> list[bytes]:
    """The parts of a PNG file: its signature, and each chunk."""
    found, place = [png[:8]], 8
    while place < len(png):
        end = place + 12 + int.from_bytes(png[place : place + 4], "big")
        found.append(png[place:end])
        place = end
    return found


def test_exif_data_may_follow_the_pixels(tmp_path: Path) -> None:
    """As some programs write PNG files; a damaged one among them costs its row alone."""
    parts = chunks(encode(COLOUR, exif=tag(6)))
    own = next(part for part in parts if part[4:8] == b"eXIf")
    late = b"".join(part for part in parts[:-1] if part is not own) + own + parts[-1]
    assert late != b"".join(parts)
    batch = only(folder(tmp_path, [late, late[:-60], late], exif="apply"))
    assert batch.status == (Status.OK, Status.DECODE_ERROR, Status.OK)
    assert batch.turned == (True, False, True)
    assert np.array_equal((255 * batch.inputs[2]).round().to(torch.uint8).numpy(), TURNED[6](COLOUR))


# Damaged EXIF data


def tiff(*entries: tuple[int, int, int, int], order: str = "<", start: int = 8, count: int | None = None) -> bytes:
    """EXIF data with these entries: tag, type, count and value."""
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(f"{order}I", start)
    listed = b"".join(struct.pack(f"{order}HHIHxx", *entry) for entry in entries)
    return head + struct.pack(f"{order}H", len(entries) if count is None else count) + listed + bytes(4)


SHORT, UNDEFINED = 3, 7
SOUND = (ORIENTATION, SHORT, 1, 6)
OTHER = (0x010F, SHORT, 1, 8)
WELL = [
    tiff(SOUND),
    tiff(SOUND, order=">"),
    tiff(OTHER, SOUND, OTHER),
    tiff(SOUND, count=9),
    b"Exif\0\0" + tiff(SOUND),
]
DAMAGED = {
    "a prefix alone": b"Exif\0\0",
    "no byte order": b"\0" * 40,
    "text": b"These are not tags, and there are many of them.",
    "the header of a BigTIFF file": b"II+\0" + tiff(SOUND)[4:],
    "entries beyond the end": tiff(SOUND, start=2**32 - 1),
    "entries where the header is": tiff(SOUND, start=0),
    "cut short": tiff(SOUND)[:14],
    "no entries": tiff(),
    "no orientation": tiff(OTHER, OTHER),
    "no orientation, and more entries than there are": tiff(OTHER, count=65535),
    "0": tiff((ORIENTATION, SHORT, 1, 0)),
    "9": tiff((ORIENTATION, SHORT, 1, 9)),
    "65535": tiff((ORIENTATION, SHORT, 1, 65535)),
}


def says(exif: object) -> int:
    image = Image.new("L", (1, 1))
    image.info["exif"] = exif
    with warnings.catch_warnings(action="ignore"):
        return orientation(image)


def test_no_bytes_are_an_error() -> None:
    """Sound data cut at every place, and 5,000 with some bytes changed."""
    rng = random.Random(0)
    for content in WELL:
        assert says(content) == 6
        assert {says(content[:end]) for end in range(len(content))} <= {UPRIGHT, 6}
    for _ in range(5000):
        changed = bytearray(rng.choice(WELL))
        for _ in range(rng.randint(1, 4)):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        assert says(bytes(changed)) in TURNED
    assert says(None) == says("text") == says(b"") == UPRIGHT


@pytest.mark.parametrize("exif", ["ignore", "apply"])
@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_damaged_exif_data_say_nothing_and_cost_nothing(kind: str, exif: str, tmp_path: Path) -> None:
    files = [encode(COLOUR, kind, exif=b"Exif\0\0" + content, quality=90) for content in DAMAGED.values()]
    points = folder(tmp_path, [encode(COLOUR, kind, quality=90), *files], exif=exif)
    batch = only(points)
    assert set(batch.status) == {Status.OK}
    assert not any(batch.turned or ())
    assert all(torch.equal(one, batch.inputs[0]) for one in batch.inputs)


def hungry(size: int, count: int, tags: int) -> bytes:
    """EXIF data of at least `size` bytes: many tags that each claim to be all of it."""
    entries = [struct.pack("<HHII", 0x9000 + number % tags, UNDEFINED, size - 8, 8) for number in range(count)]
    return (b"II*\0" + struct.pack("<IH", 8, count + 1) + b"".join(entries)).ljust(size, b"\0")


@pytest.mark.parametrize(
    ("said", "turned"),
    [
        (hungry(700_000, 28672, 28672), False),  # 20 GB, under names of their own
        (hungry((1 << 16) - 6, 5400, 5400), False),  # all that is read: 350 MB, where Pillow copies it
        (tiff(SOUND) + bytes(700_000), True),
    ],
    ids=["many tags", "as long as any that is read", "a long preview"],
)
def test_no_exif_data_are_too_much(said: bytes, turned: bool, tmp_path: Path) -> None:
    own = struct.pack(">I", len(said)) + b"eXIf" + said + struct.pack(">I", zlib.crc32(b"eXIf" + said))
    parts = chunks(encode(COLOUR))
    began = time.process_time()
    tracemalloc.start()
    batch = only(folder(tmp_path, [b"".join([*parts[:2], own, *parts[2:]])], exif="apply"))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (batch.status, batch.turned) == ((Status.OK,), (turned,))
    assert most < 400_000_000
    assert time.process_time() - began < 5


# Runs

COUNT, SIDE = 20, 6
SQUARES = np.random.default_rng(1).integers(0, 256, (COUNT, 1, SIDE, SIDE), dtype=np.uint8)
SAYS = [3 if row % 3 == 0 else 1 for row in range(COUNT)]
MARKED = sum(number != 1 for number in SAYS)


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brittle.run.job.SHARD", 8)


def run(path: Path, numbers: Sequence[int] = SAYS, **options: Any) -> brittle.Table:
    from helpers.problems import small_classifier

    path.mkdir(exist_ok=True)
    files = [encode(one, exif=tag(number)) for one, number in zip(SQUARES, numbers, strict=True)]
    choice = {"exif": options.pop("exif")} if "exif" in options else {}
    return brittle.score(small_classifier(), folder(path, files, **choice), [Softmax()], batch_size=6, **options)


def notes(table: brittle.Table) -> list[str]:
    return [one.sentence for one in table.record.warnings if one.code == "exif_orientation"]


@pytest.mark.parametrize(
    ("exif", "done"),
    [
        ("ignore", "the tag was ignored, as torchvision does (--exif apply, exif='apply', turns them)"),
        ("apply", "they were turned upright"),
    ],
)
def test_a_run_counts_the_images_that_are_turned(exif: str, done: str, tmp_path: Path) -> None:
    kept = run(tmp_path, exif=exif)
    written = run(tmp_path, exif=exif, out=tmp_path / "run")
    for table in (kept, written):
        assert table.record.account.turned == MARKED
        assert table.record.data.exif == exif
        assert notes(table) == [
            f"{MARKED} of {COUNT} images say in their EXIF data that they are turned or mirrored; {done}"
        ]


def test_the_numbers_are_those_of_the_turned_images(tmp_path: Path) -> None:
    """A run that turns gives the numbers of files that were turned before, and another one other numbers."""
    ignored, applied = run(tmp_path / "a"), run(tmp_path / "a", exif="apply")
    files = [encode(TURNED[number](one)) for one, number in zip(SQUARES, SAYS, strict=True)]
    from helpers.problems import small_classifier

    (tmp_path / "b").mkdir()
    before = brittle.score(small_classifier(), folder(tmp_path / "b", files), [Softmax()], batch_size=6)
    assert applied.scores.equals(before.scores)
    assert not applied.scores.equals(ignored.scores)
