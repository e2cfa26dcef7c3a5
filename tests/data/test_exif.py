"""Images that say in their EXIF data that they are turned: as their pixels lie, or as they say, and counted."""

from __future__ import annotations

import io
import struct
import time
import tracemalloc
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.data_files import LABELS, encode, inputs, only, refused, write_folder
from helpers.problems import small_classifier
from PIL import Image, ImageOps

import brittle
from brittle.data import Points, open_points
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
    content = encode(COLOUR, kind, exif=tag(number))
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
    refused("shape", "8 x 5 pixels, .* 5 x 8", only, folder(tmp_path, files))
    assert np.array_equal(levels(folder(tmp_path, files, exif="apply")), np.stack([COLOUR, COLOUR]))
    refused("shape", "5 x 8 pixels, .* 8 x 5", only, folder(tmp_path, [files[1], encode(sideways)], exif="apply"))


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
DAMAGED = {
    "a prefix alone": b"Exif\0\0",
    "text": b"These are not tags, and there are many of them.",
    "entries beyond the end": tiff(SOUND, start=2**32 - 1),
    "cut short": tiff(SOUND)[:14],
    "no orientation, and more entries than there are": tiff(OTHER, count=65535),
    "0": tiff((ORIENTATION, SHORT, 1, 0)),
    "65535": tiff((ORIENTATION, SHORT, 1, 65535)),
}


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
        (tiff(SOUND) + bytes(700_000), True),
    ],
    ids=["many tags", "a long preview"],
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


def test_a_run_counts_the_images_that_are_turned_and_its_numbers_are_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that turns gives the numbers of files that were turned before, and another one other numbers."""
    monkeypatch.setattr("brittle.run.job.SHARD", 8)

    def run(name: str, files: list[bytes], **options: Any) -> brittle.Table:
        (tmp_path / name).mkdir()
        points, out = folder(tmp_path / name, files, **options), tmp_path / name / "run"
        return brittle.score(small_classifier(), points, [Softmax()], batch_size=6, out=out)

    marked = [encode(one, exif=tag(number)) for one, number in zip(SQUARES, SAYS, strict=True)]
    before = run("before", [encode(TURNED[number](one)) for one, number in zip(SQUARES, SAYS, strict=True)])
    done = {"ignore": "the tag was ignored, as torchvision does", "apply": "they were turned upright"}
    for exif, words in done.items():
        table = run(exif, marked, exif=exif)
        assert (table.record.account.turned, table.record.data.exif) == (SAYS.count(3), exif)
        (note,) = [one.sentence for one in table.record.warnings if one.code == "exif_orientation"]
        assert f"{SAYS.count(3)} of {COUNT} images" in note
        assert words in note
        assert table.scores.equals(before.scores) == (exif == "apply")
