"""WebDataset shards hold the points of their images; odd archives are refused, and nothing is unpacked."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.data_files import BAD_IMAGES, LABELS, LEVELS, encode, inputs, only, refused

from brittle.data import open_points
from brittle.errors import BrittleError
from brittle.estimate import Status

FILES = [encode(image) for image in LEVELS]


def member(
    name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = ""
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = len(content), kind, link
    return info, content


def write(path: Path, members: list[tuple[tarfile.TarInfo, bytes]], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return path


def samples(start: int = 0, stop: int = len(FILES)) -> list[tuple[tarfile.TarInfo, bytes]]:
    """Return members as WebDataset writes them: class, image and metadata of each sample in turn."""
    return [
        part
        for row in range(start, stop)
        for part in (
            member(f"photos/{row:06d}.cls", str(LABELS[row]).encode()),
            member(f"photos/{row:06d}.png", FILES[row]),
            member(f"photos/{row:06d}.json", b"{}"),
        )
    ]


def test_one_file_and_shards_hold_the_points_of_a_folder(tmp_path: Path) -> None:
    batch = only(open_points(write(tmp_path / "one.tar", samples())))
    expected = torch.from_numpy(LEVELS).float() / 255
    assert torch.allclose(batch.inputs, expected, atol=1e-7)
    assert batch.labels == LABELS
    assert batch.ids[:2] == ("one/photos/000000", "one/photos/000001")
    shards = tmp_path / "shards"
    shards.mkdir()
    write(shards / "test-000000.tar", samples(stop=3))
    write(shards / "test-000001.tar", samples(start=3))
    points = open_points(shards)
    assert torch.equal(inputs(points, size=2), batch.inputs)
    assert (points.labels, points.provenance["other_files"], points.provenance["split"]) == (LABELS, 7, "test")
    assert torch.equal(torch.cat([part.inputs for part in points.batches(2, 3)]), batch.inputs[3:]), "from any row on"
    write(shards / "train-000000.tar", samples())
    refused("split", "the splits test, train; no split was named", open_points, shards)
    refused("split", "there is no split 'dev'", open_points, shards, split="dev")
    assert open_points(shards, split="test", limit=4).labels == LABELS[:4]


@pytest.mark.parametrize("name", ["0.png", "cat/0.png", "t10k-images-idx3-ubyte", "fog.npy", "labels.npy"])
def test_shards_are_read_before_other_files_of_the_folder(name: str, tmp_path: Path) -> None:
    write(tmp_path / "test-000000.tar", samples())
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(FILES[0])
    assert open_points(tmp_path).provenance["format"] == "webdataset"


def test_a_bad_image_costs_its_row(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tar", [*samples(), member("bad.cls", b"1"), member("bad.jpg", BAD_IMAGES["text"][0])])
    batch = only(open_points(path))
    assert batch.status == (*[Status.OK] * 7, Status.DECODE_ERROR)
    assert f"{path}:bad.jpg" in str(batch.detail[7])


HOSTILE: dict[str, tuple[str, str, Callable[[], list[tuple[tarfile.TarInfo, bytes]]]]] = {
    "a link": ("file_refused", "'a.png' .* is a link",
               lambda: [member("a.png", kind=tarfile.SYMTYPE, link="/etc/passwd")]),
    "a hard link": ("file_refused", "is a link", lambda: [*samples(), member("b.png", kind=tarfile.LNKTYPE, link="b")]),
    "a device": ("file_refused", "a device", lambda: [member("a.png", kind=tarfile.CHRTYPE)]),
    "two images": ("corrupt", "'x/a': 'a.jpg'",
                   lambda: [member("a.png", FILES[0]), member("a.jpg", FILES[0])]),
    "two classes": ("corrupt", "'x/a': 'a.CLS'",
                    lambda: [member("a.png", FILES[0]), member("a.cls", b"1"), member("a.CLS", b"2")]),
    "a class in words": ("labels", "the class b'ant'", lambda: [member("a.png", FILES[0]), member("a.cls", b"ant")]),
    "a class of a thousand digits": ("labels", "whole number",
                                     lambda: [member("a.png", FILES[0]), member("a.cls", b"1" * 1000)]),
    "some classes": ("labels", "'x/b' .* give all a whole number",
                     lambda: [*samples(), member("b.png", FILES[0])]),
    "no images": ("empty_dataset", "no images", lambda: [member("a.txt", b"x"), member("b.cls", b"1")]),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_odd_archives_are_refused(name: str, tmp_path: Path) -> None:
    code, match, members = HOSTILE[name]
    refused(code, match, open_points, write(tmp_path / "x.tar", members()))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.tar"], "nothing was unpacked"


def test_damaged_and_compressed_archives(tmp_path: Path) -> None:
    content = write(tmp_path / "x.tar", samples()).read_bytes()
    (tmp_path / "short.tar").write_bytes(content[:1100])
    (tmp_path / "noise.tar").write_bytes(b"text\n" * 999)
    (tmp_path / "empty.tar").write_bytes(b"")
    broken = bytearray(content)
    broken[1024] ^= 1  # in the second header
    (tmp_path / "broken.tar").write_bytes(broken)
    (tmp_path / "joined.tar").write_bytes(content + content)
    for name in ("short.tar", "noise.tar", "empty.tar", "broken.tar", "joined.tar"):
        refused("corrupt", f"{name}", open_points, tmp_path / name)
    refused("corrupt", "zipped.tar", open_points, write(tmp_path / "zipped.tar", samples(), "w:gz"))
    claims = tarfile.TarInfo("a.png")
    claims.size = 1 << 40
    (tmp_path / "claims.tar").write_bytes(claims.tobuf() + bytes(1024))
    refused("file_refused", "more than", open_points, tmp_path / "claims.tar")


def test_an_archive_that_changes_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tar", samples())
    points = open_points(path)
    path.write_bytes(path.read_bytes()[:2000])
    refused("dataset", "shorter than it was", only, points)


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_archive_is_an_error_or_costs_rows(seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    path = write(tmp_path / "x.tar", samples())
    content = bytearray(path.read_bytes())
    for place in random.integers(0, min(len(content), 21 * 1024), 3):
        content[place] = int(random.integers(0, 256))
    path.write_bytes(content)
    with suppress(BrittleError):
        points = open_points(path)
        assert len(only(points)) == len(points)
