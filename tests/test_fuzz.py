"""Damaged files for every reader, as many as the suite has time for, and earlier findings as examples.

`tests/checks/fuzz_damage.py` defines the damage. A longer hunt is marked slow; one of any length is
`PYTHONPATH=tests python -m checks.fuzz --minutes N --seed S`.
"""

from __future__ import annotations

import contextlib
import io
import random
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from checks.fuzz import hunt, outcome, write
from checks.fuzz_damage import one_damaged, sign, with_header
from checks.fuzz_targets import TARGETS, pseudo_margins

from brittle.data import open_points
from brittle.errors import ArtefactError, BrittleError, DataError
from brittle.extensions.detector.surrogate import Surrogate
from brittle.store.reading import verify

FINDINGS = Path(__file__).parent / "findings"


def test_damaged_files_give_named_errors_only() -> None:
    """Read 370 inputs, always the same: no other error, no crash, none above 5 s or 1 GiB."""
    counts, findings = hunt(seed=0)
    assert findings == []
    assert counts == {name: target.inputs for name, target in TARGETS.items()}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_many_damaged_files_give_named_errors_only(seed: int) -> None:
    counts, findings = hunt(seed, seconds=300.0)
    assert findings == []
    assert all(count > 500 for count in counts.values())


def test_the_hunt_sees_what_it_looks_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Distinguish another error, a slow reader and a hungry one from a named error and from success."""

    def wrong(folder: Path) -> None:
        raise KeyError("x")

    def named(folder: Path) -> None:
        raise ArtefactError("code", "sentence")

    assert outcome(lambda folder: None, tmp_path) is None
    assert outcome(named, tmp_path) is None
    assert outcome(wrong, tmp_path) == "KeyError: 'x'"
    monkeypatch.setattr("checks.fuzz.SLOWEST", -1.0)
    assert str(outcome(lambda folder: None, tmp_path)).endswith(" s")
    monkeypatch.undo()
    monkeypatch.setattr("checks.fuzz.MOST_MEMORY", -1)
    assert str(outcome(lambda folder: None, tmp_path)).endswith(" MiB")


def test_damage_to_a_shard_gets_behind_its_digest(tmp_path: Path) -> None:
    """Check that most damaged shards get a new digest, so that the reader of their content meets the damage."""
    runs, problems = TARGETS["run"].valid(), Counter[str]()
    for number in range(60):
        rng = random.Random(number)
        write(tmp_path, one_damaged(rng, rng.choice(runs)))
        with contextlib.suppress(BrittleError):
            problems.update(fault.problem.partition(" (")[0] for fault in verify(tmp_path))
    assert problems["cannot be read as Parquet"] > 10 > problems["is not what was written"]
    with pytest.raises(KeyError):
        sign(runs[0]["manifest.json"], "points-00009.parquet", b"")


# What was found.


def refused(error: type[BrittleError], code: str, function: Callable[..., object], *arguments: object) -> None:
    with pytest.raises(error) as caught:
        function(*arguments)
    assert caught.value.code == code


FOUND: dict[str, tuple[type[BrittleError], str, Callable[[Path], object]]] = {
    # PyArrow aborted when it was asked for the metadata of single columns of this file.
    "level-histogram.parquet": (DataError, "corrupt", lambda path: list(open_points(path).batches(4))),
    "fewer-rows.parquet": (DataError, "corrupt", open_points),
    "endless-shape.safetensors": (ArtefactError, "file_refused", Surrogate.load),
}


@pytest.mark.parametrize("file", FOUND)
def test_files_that_were_found(file: str) -> None:
    error, code, read = FOUND[file]
    refused(error, code, read, FINDINGS / file)


def npz(path: Path, **records: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in records.items():
            archive.writestr(f"{name}.npy", content)
    return path


def npy(array: np.ndarray) -> bytes:
    sink = io.BytesIO()
    np.save(sink, array)
    return sink.getvalue()


IMAGES = npy(np.zeros((2, 4), np.float32))
HEADER = b"{'descr': '<U0', 'fortran_order': False, 'shape': (9999999999,), }\n"


@pytest.mark.parametrize(
    "records",
    [
        {"x": IMAGES.replace(b"}", b" ", 1)},  # a tokenizer error
        {"x": b"NOT" + IMAGES[3:]},  # bytes in place of an array
        {"x": IMAGES, "class_names": npy(np.array(["ab"])).replace(b"a\0\0\0", b"\xff\xff\xff\xff")},  # a SystemError
        {"x": IMAGES, "class_names": npy(np.array(["ab"])).replace(b"a\0\0\0", b"\x00\xd8\0\0")},  # half a character
        {"x": IMAGES.replace(b"(2, 4)", b"(2**4 ", 1)},
        # Seconds, then memory without end, for a hundred bytes.
        {"x": IMAGES, "class_names": b"\x93NUMPY\x01\x00" + len(HEADER).to_bytes(2, "little") + HEADER},
    ],
)
def test_arrays_that_gave_other_errors(records: dict[str, bytes], tmp_path: Path) -> None:
    refused(DataError, "corrupt", open_points, npz(tmp_path / "x.npz", **records))


def test_a_packed_record_that_shrinks_without_bounds(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("x.npy", IMAGES)
    refused(DataError, "corrupt", open_points, tmp_path / "x.npz")


@pytest.mark.parametrize("kind", ["F8_E8M0", "F6_E2M3", "F4"])
def test_number_types_that_pytorch_does_not_know(kind: str, tmp_path: Path) -> None:
    """Read number types that once raised a KeyError from a file of a pseudo margin."""
    (files,) = pseudo_margins()
    content = with_header(files["p.safetensors"], lambda header: header.replace(b'"F64"', f'"{kind}"'.encode(), 1))
    (tmp_path / "p.safetensors").write_bytes(content)
    refused(ArtefactError, "file_refused", Surrogate.load, tmp_path / "p.safetensors")
