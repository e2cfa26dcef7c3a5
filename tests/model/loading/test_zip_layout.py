"""Whether every byte of an archive is claimed by a record."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.artefacts import Records, edited, refused

from brittle.errors import ArtefactError
from brittle.model.loading.load import load_model


def test_compressed_and_doubled_records_are_refused(archive: bytes, tmp_path: Path) -> None:
    (tmp_path / "net.pt2").write_bytes(edited(archive, lambda records: None, zipfile.ZIP_DEFLATED))
    refused("archive_refused", "is compressed", load_model, tmp_path / "net.pt2")
    file = io.BytesIO(archive)
    with zipfile.ZipFile(file, "a") as twice, pytest.warns(UserWarning, match="Duplicate"):
        twice.writestr(twice.namelist()[0], b"other")
    (tmp_path / "net.pt2").write_bytes(file.getvalue())
    refused("archive_refused", "two records of one name", load_model, tmp_path / "net.pt2")


WEIGHT, CONFIG, SAMPLE = (
    "data/weights/weight_0",
    "data/weights/model_weights_config.json",
    "data/sample_inputs/model.pt",
)


def one_more_weight(records: Records) -> None:
    """A tensor that the list of weights names and the graph does not read."""
    config = json.loads(records[CONFIG])
    config["config"]["more"] = config["config"]["linear.bias"] | {"path_name": "weight_77"}
    records |= {CONFIG: json.dumps(config).encode(), "data/weights/weight_77": bytes(12)}


def with_record(content: bytes, name: str) -> bytes:
    """A zip archive with one more record beside its first one."""
    file = io.BytesIO(content)
    with zipfile.ZipFile(file, "a") as one:
        one.writestr(name.replace("ROOT", one.namelist()[0].partition("/")[0]), bytes(40))
    return file.getvalue()


def gap(content: bytes) -> bytes:
    """Forty bytes between the records of a zip archive and its directory, with the offsets set right."""
    end = content.rindex(b"PK\5\6")
    (start,) = struct.unpack_from("<I", content, end + 16)
    moved = content[:start] + bytes(40) + content[start:]
    return moved[: end + 56] + struct.pack("<I", start + 40) + moved[end + 60 :]


SURPLUS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "before": (lambda own: bytes(40) + own, "40 bytes at 0"),
    "behind": (lambda own: own + bytes(40), " 40 bytes behind the directory"),
    "a comment": (lambda own: own[:-2] + b"\3\0abc", " 3 bytes behind the directory"),
    "between": (lambda own: gap(edited(own, lambda records: None)), "40 bytes at"),
    "another program": (lambda own: with_record(own, "other/data/weights/weight_0"), "records of 2 programs"),
    "a longer record": (
        lambda own: edited(own, lambda records: records.update({WEIGHT: records[WEIGHT] + bytes(40)})),
        "40 bytes beside 'norm.weight'",
    ),
    "an empty record": (
        lambda own: edited(own, lambda records: records.update({WEIGHT: b""})),
        "84 bytes of tensors where its graph reads 88",
    ),
    "a record that nobody reads": (
        lambda own: with_record(own, "ROOT/data/weights/weight_77"),
        "128 bytes of tensors where its graph reads 88",
    ),
    "a tensor that nobody reads": (lambda own: edited(own, one_more_weight), "1 tensors that its graph does not read"),
    "behind a checkpoint": (
        lambda own: edited(own, lambda records: records.update({SAMPLE: records[SAMPLE] + bytes(40)})),
        "model.pt' in .* 40 bytes behind the directory",
    ),
    "a storage that nobody reads": (
        lambda own: edited(own, lambda records: records.update({SAMPLE: with_record(records[SAMPLE], "ROOT/data/9")})),
        "model.pt' in .* holds 88 bytes of tensors and reads 48",
    ),
    "another record of a checkpoint": (
        lambda own: edited(own, lambda records: records.update({SAMPLE: with_record(records[SAMPLE], "ROOT/x")})),
        "holds 'archive/x', which it does not read",
    ),
}


@pytest.mark.parametrize("kind", SURPLUS)
def test_surplus_bytes_in_an_archive_are_refused(kind: str, archive: bytes, tmp_path: Path) -> None:
    change, match = SURPLUS[kind]
    (tmp_path / "net.pt2").write_bytes(change(archive))
    error = refused("archive_surplus", match, load_model, tmp_path / "net.pt2")
    assert error.exit_code == ArtefactError.exit_code
