"""Data in an object store are read in place: the points of a disk, from a server of S3's protocol."""

from __future__ import annotations

import csv
import io
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from checks.faults import contents
from helpers.data_files import COUNT, LABELS, LEVELS, encode, image_table, write_folder
from upath import UPath

import brittle
from brittle.cli.commands import main
from brittle.data import open_points
from brittle.data.files import file_digest
from brittle.errors import DataError
from brittle.store.places import located, place_of

pytestmark = [pytest.mark.xdist_group("store"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]

BUCKET = "s3://data"


def write_table(path: Path) -> Path:
    features = torch.rand(40, 3, generator=torch.Generator().manual_seed(0)).numpy().astype(float)
    columns = {f"x{number}": features[:, number] for number in range(3)}
    pq.write_table(pa.table({**columns, "label": np.arange(40) % 3}), path / "test.parquet", row_group_size=7)
    return path / "test.parquet"


def write_csv(path: Path) -> Path:
    with (path / "data.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["a", "b", "label"], *([row / 10, 1 - row / 10, row % 2] for row in range(9))])
    return path / "data.csv"


def write_images(path: Path) -> Path:
    files = [encode(image) for image in LEVELS]
    for shard, rows in enumerate((slice(0, 2), slice(2, None))):
        table = image_table(files, LABELS)[rows]
        pq.write_table(table, path / f"test-{shard:05}-of-00002.parquet", row_group_size=2)
    return path


def write_classes(path: Path) -> Path:
    write_folder(path / "images", [encode(image) for image in LEVELS], LABELS)
    return path / "images"


def write_flat(path: Path) -> Path:
    for row, image in enumerate(LEVELS):
        (path / f"{row:03}.png").write_bytes(encode(image))
    return path


def write_shards(path: Path) -> Path:
    for shard, rows in enumerate((range(3), range(3, COUNT))):
        with tarfile.open(path / f"test-{shard:06}.tar", "w") as archive:
            for row in rows:
                for name, content in ((f"{row}.png", encode(LEVELS[row])), (f"{row}.cls", b"%d" % LABELS[row])):
                    member = tarfile.TarInfo(name)
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
    return path


WRITERS = (write_table, write_csv, write_images, write_classes, write_flat, write_shards)


@pytest.fixture(scope="module")
def store() -> Iterator[None]:
    """Start a server and set the variables by which clients find it."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "tests")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "tests")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        UPath(BUCKET).mkdir()
        yield
    server.stop()


def upload(path: Path, name: str) -> str:
    """Copy a file or a folder into the store and return its place there."""
    files = [path] if path.is_file() else [child for child in path.rglob("*") if child.is_file()]
    for file in files:
        end = "" if path.is_file() else f"/{file.relative_to(path).as_posix()}"
        (UPath(f"{BUCKET}/{name}/{path.name}{end}")).write_bytes(file.read_bytes())
    return f"{BUCKET}/{name}/{path.name}"


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__.removeprefix("write_"))
def test_the_points_are_those_of_a_disk(write: Callable[[Path], Path], store: None, tmp_path: Path) -> None:
    path = write(tmp_path)
    place = upload(path, write.__name__)
    bounds = (-10, 10) if write in (write_table, write_csv) else (0, 1)
    stored, local = open_points(place, bounds=bounds), open_points(path, bounds=bounds)
    assert (stored.labels, stored.class_names, len(stored)) == (local.labels, local.class_names, len(local))
    assert stored.provenance["path"] == place
    same = {name: value for name, value in local.provenance.items() if name not in ("path", "sha256")}
    assert {name: value for name, value in stored.provenance.items() if name not in ("path", "sha256")} == same
    for batch, local_batch in zip(stored.batches(2), local.batches(2), strict=True):
        assert (batch.ids, batch.status) == (local_batch.ids, local_batch.status)
        assert torch.equal(batch.inputs, local_batch.inputs)


def test_other_content_is_another_digest(store: None, tmp_path: Path) -> None:
    """The digest is read from the tags of the store, not from the files."""
    digests = []
    for change in range(2):
        folder = tmp_path / str(change) / "images"
        folder.mkdir(parents=True)
        for row, image in enumerate(LEVELS + np.uint8(change)):
            (folder / f"{row:03}.png").write_bytes(encode(image))
        digests.append(open_points(upload(folder, "digests")).provenance["sha256"])
        assert open_points(f"{BUCKET}/digests/images").provenance["sha256"] == digests[-1]
        UPath(BUCKET).fs.invalidate_cache()
    assert digests[0] != digests[1]


def test_a_run_of_the_command_line(store: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker of another process reads the store; the table equals that from a disk."""
    path = write_table(tmp_path)
    (tmp_path / "net.py").write_text(
        "import torch\n\ndef make():\n    torch.manual_seed(0)\n    return torch.nn.Linear(3, 3)\n"
    )
    tables = []
    for number, place in enumerate((upload(path, "run"), str(path))):
        out = tmp_path / f"run{number}"
        command = ["score", f"{tmp_path / 'net.py'}:make", place, "--out", str(out), "--bounds", "none", "--quiet"]
        command += ["--scores", "moments", "--sigma", "0.1", *(["--workers", "1"] if place != str(path) else [])]
        monkeypatch.setattr(sys, "argv", ["brittle", *command])  # a worker reads it
        assert main(command) == 0
        tables.append(brittle.read_table(out))
    assert tables[0].scores.equals(tables[1].scores)
    assert tables[0].record.data.path == f"{BUCKET}/run/test.parquet"


@pytest.mark.parametrize(
    ("place", "code"),
    [
        ("s3://nowhere/data.parquet", "no_such_path"),
        ("s3://data/none.parquet", "no_such_path"),
        ("nostore://data/x.parquet", "not_installed"),
    ],
)
def test_missing_places_and_packages_are_named(place: str, code: str, store: None) -> None:
    with pytest.raises(DataError) as caught:
        open_points(place)
    assert caught.value.code == code
    assert place in str(caught.value)


def test_a_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, store: None) -> None:
    UPath(BUCKET).fs.clear_instance_cache()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(DataError) as caught:
        open_points("s3://data/test.parquet")
    assert caught.value.code == "unreadable"
    UPath(BUCKET).fs.clear_instance_cache()


def test_a_lost_connection_is_an_error_that_names_it(store: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of stores that are not an `OSError` become one."""
    place = located("memory://lost/file")
    place.write_bytes(b"1")

    def lost(*arguments: object, **more: object) -> None:
        raise RuntimeError("the endpoint does not answer")

    for name in ("cat_file", "info"):
        monkeypatch.setattr(UPath(place).fs, name, lost)
    with pytest.raises(OSError, match="endpoint"):
        place_of(place).read_part(place, 0, 1)
    with pytest.raises(DataError) as caught:
        file_digest(place)
    assert caught.value.code == "unreadable"


def test_an_array_is_to_be_copied_first(store: None, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((3, 2)))
    with pytest.raises(DataError) as caught:
        open_points(upload(tmp_path / "x.npy", "array"))
    assert caught.value.code == "unknown_format"


def test_a_run_goes_on_from_a_store(store: None, tmp_path: Path) -> None:
    """Without its folder a run fetches the shards of the store and computes the missing one; then both are complete."""
    torch.manual_seed(0)
    classifier, x = brittle.Classifier(torch.nn.Linear(6, 3)), torch.rand(300, 6)
    mirror, how = f"{BUCKET}/runs/one", {"batch_size": 32, "skip_doctor": True}
    table = brittle.score(classifier, (x, None), "logit_margin", out=tmp_path / "run", mirror=mirror, **how)
    expected = contents(tmp_path / "run")
    names = {file.name for file in UPath(mirror).iterdir()}
    assert names == {file.name for file in (tmp_path / "run").iterdir()}
    UPath(f"{mirror}/scores-00001.parquet").unlink()
    before = classifier.forward_passes
    brittle.score(classifier, (x, None), "logit_margin", out=tmp_path / "new", mirror=mirror, resume=True, **how)
    assert classifier.forward_passes - before < len(x)
    assert contents(tmp_path / "new") == expected
    assert brittle.read_table(tmp_path / "new").scores.equals(table.scores)
    for name in names - {"run.json"}:
        assert UPath(f"{mirror}/{name}").read_bytes() == (tmp_path / "new" / name).read_bytes()
