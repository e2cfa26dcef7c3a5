"""Files that come from anybody: nothing in them is run, none costs more than it says, and all names stay names."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import pickle
import re
import subprocess
import sys
import unicodedata
import zipfile
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
import torch
from helpers.tables import HOSTILE, make_table
from hypothesis import given
from hypothesis import strategies as st
from test_data import BAD_IMAGES, LABELS, LEVELS, encode, from_folder, from_idx, from_npz, from_parquet, image_table
from test_models import FACTORY, Canary, edited, export, pickled
from test_report import Page, assert_inert, storable

import brittle
from brittle.cli import main
from brittle.data import array_points, open_points
from brittle.detector.flags import FLAGS, write_flags
from brittle.errors import ArtefactError, DataError, DetectorFormatError, StorageError
from brittle.report import write_report
from brittle.scores import LogitMargin
from brittle.store.files.csv_text import cell, text_of
from brittle.store.folder import RunFolder
from brittle.store.table import read_table, verify

SOURCE = Path(brittle.__file__).parent


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of three shards."""
    table = make_table(points=20, scores=("moments", "input_margin"), sigmas=(0.1,), budgets=(10,))
    with RunFolder.open(tmp_path / "run") as folder:
        folder.begin(table.provenance)
        for number in range(3):
            tables = {"points": table.points, "scores": table.scores, "counterexamples": table.counterexamples}
            folder.commit(number, tables)
        folder.finish(table.provenance)
    return tmp_path / "run"


def signed(run: Path, name: str, content: bytes) -> None:
    """Put `content` in place of a shard file, with the size and digest in the manifest that belong to it."""
    (run / name).write_bytes(content)
    manifest = json.loads((run / "manifest.json").read_text())
    for entry in manifest["shards"]:
        for value in entry.values():
            if isinstance(value, dict) and value.get("file") == name:
                value |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (run / "manifest.json").write_text(json.dumps(manifest))


def parquet_bytes(table: pa.Table, **options: Any) -> bytes:
    sink = BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def measured(script: str, place: Path) -> dict[str, Any]:
    """Seconds and bytes that `attempt()`, which `script` defines, takes in a process of its own, imports left out."""
    whole = (
        "import json, resource, sys, time\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024\n"
        f"{script}\n"
        "before, start = peak(), time.perf_counter()\n"
        "code = attempt()\n"
        "print(json.dumps({'code': code, 'seconds': time.perf_counter() - start, 'bytes': peak() - before}))\n"
    )
    done = subprocess.run([sys.executable, "-c", whole], cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


REFUSED_BY = """
from brittle.errors import BrittleError
def refused(function, *arguments, **options):
    try:
        function(*arguments, **options)
    except BrittleError as error:
        return error.exit_code
"""


# Verify: what a disk did to a run is named.


def test_a_sound_run_has_no_faults(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(run) == []
    assert main(["verify", str(run)]) == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"brittle: every shard of {run} is what was written\n")


def test_a_run_that_has_not_finished_is_told_from_one_that_has(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(record | {"finished": None}))
    assert main(["verify", str(run)]) == 0
    assert "what was written; the run has not finished, score --resume goes on with it\n" in capsys.readouterr().err


def test_two_hundred_flipped_bits_are_all_named(run: Path) -> None:
    """A bit of any shard file, drawn by its size; the file that holds it is named, and no other."""
    rng = np.random.default_rng(0)
    files = sorted(run.glob("*.parquet"))
    sizes = np.array([path.stat().st_size for path in files])
    assert len(files) == 9
    for which in rng.choice(len(files), 200, p=sizes / sizes.sum()):
        path, place = files[which], rng.integers(sizes[which])
        content = path.read_bytes()
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        (fault,) = verify(run)
        assert (fault.file, fault.stray) == (path.name, False)
        assert "its sha256 differs" in fault.problem
        path.write_bytes(content)
    assert verify(run) == []


def test_page_checksums_are_verified_behind_the_digest(run: Path) -> None:
    """A flip in a page whose digest was set right again: 60 of 60 are named by the checksum of the page."""
    rng = np.random.default_rng(1)
    name = "scores-00001.parquet"
    content = (run / name).read_bytes()
    column = pq.ParquetFile(BytesIO(content)).metadata.row_group(0).column(3)  # the values
    assert column.path_in_schema == "value"
    first, last = column.dictionary_page_offset + 40, column.data_page_offset - 8  # inside the page of all values
    assert last - first > 100
    for place in rng.integers(first, last, 60):
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.integers(8)
        signed(run, name, bytes(damaged))
        (fault,) = verify(run)
        assert fault.file == name
        assert "cannot be read as Parquet" in fault.problem


def test_verify_says_what_is_wrong(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "points-00000.parquet").unlink()
    (run / "scores-00001.parquet").write_bytes((run / "scores-00001.parquet").read_bytes()[:-1])
    signed(run, "points-00002.parquet", parquet_bytes(pa.table({"x": [1]})))
    signed(run, "scores-00002.parquet", b"no table at all")
    for stray in ("points-00007.parquet", ".manifest.json.tmp", ".run.json.a\nb.tmp"):
        (run / stray).write_bytes(b"half")
    (run / "report.html").write_text("a report is no stray")
    assert main(["verify", str(run)]) == StorageError.exit_code
    said = capsys.readouterr()
    first, *rest = said.out.splitlines()
    assert first == "points-00000.parquet: is missing"
    assert re.fullmatch(r"scores-00001.parquet: has \d+ bytes, not the \d+ of the manifest", rest[0])
    assert rest[1].startswith("points-00002.parquet: has other columns than a run writes ('x: int64")
    assert rest[2].startswith("scores-00002.parquet: cannot be read as Parquet")
    assert len(rest) == 3
    strays = [line.partition(":")[0] for line in said.err.splitlines()[:3]]
    assert strays == [".manifest.json.tmp", ".run.json.a\\nb.tmp", "points-00007.parquet"]
    assert "4 shard files" in said.err


def test_strays_alone_are_no_damage(run: Path) -> None:
    (run / "scores-00009.parquet").write_bytes(b"")
    assert [fault.stray for fault in verify(run)] == [True]
    assert main(["verify", str(run)]) == 0


# Paths.


@pytest.mark.parametrize(
    "name", ["../../secret.parquet", "/etc/passwd", "..", "deeper/points-00000.parquet", "..\\x.parquet", "a\0b"]
)
@pytest.mark.parametrize("reader", [read_table, verify])
def test_a_manifest_cannot_lead_out_of_its_folder(reader: Callable[[Path], Any], name: str, run: Path) -> None:
    """Not even to a file that is just what the manifest says."""
    if name.startswith("../"):
        (run.parent.parent / "secret.parquet").write_bytes((run / "points-00000.parquet").read_bytes())
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["shards"][0]["points"]["file"] = name
    (run / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ArtefactError, match="which is not in the run folder") as caught:
        reader(run)
    assert (caught.value.code, caught.value.exit_code) == ("path_escape", 6)


@pytest.mark.parametrize("name", ["points-00000.parquet", "run.json", "manifest.json"])
def test_a_link_cannot_lead_out_of_its_folder(name: str, run: Path) -> None:
    (run / name).rename(run.parent / name)
    (run / name).symlink_to(run.parent / name)
    with pytest.raises(ArtefactError, match=f"{name} is a link to .*, out of the run folder") as caught:
        read_table(run)
    assert caught.value.code == "path_escape"


def test_shards_have_their_own_names(run: Path) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["shards"][0]["points"]["file"] = "points-00001.parquet"
    (run / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(StorageError, match=r"where points-00000\.parquet is written"):
        read_table(run)


@pytest.mark.parametrize("name", ["run.json", "manifest.json", "points-00000.parquet"])
@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_file_is_not_waited_for(name: str, kind: str, run: Path) -> None:
    (run / name).unlink()
    os.mkfifo(run / name) if kind == "pipe" else (run / name).mkdir()
    with pytest.raises(StorageError, match=f"{name} is missing"):
        read_table(run)


# The record of a run.


RECORDS = (
    ("scores", "x"), ("scores", [1]), ("scores", [{"score": "moments"}]), ("model", None), ("data", []),
    ("confidence", "high"), ("confidence", 1.0), ("warnings", [{"code": 1}]), ("command", "rm"), ("seconds", []),
)  # fmt: skip


@pytest.mark.parametrize(("key", "value"), RECORDS)
def test_a_record_of_another_form_is_refused(key: str, value: Any, run: Path) -> None:
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(record | {key: value}))
    with pytest.raises(StorageError, match=rf"{key}.* in .*run\.json must be .*; found ") as caught:
        read_table(run)
    assert caught.value.code == "run_damaged"


@pytest.mark.parametrize("name", ["run.json", "manifest.json"])
@pytest.mark.parametrize(
    "content", [b"[]", b"1", b"[" * 100_000, b"\xff", b'{"x": NaN}', b'{"x": ' + b"9" * 9999 + b"}"]
)
def test_records_that_are_no_object_are_refused(name: str, content: bytes, run: Path) -> None:
    (run / name).write_bytes(content)
    with pytest.raises(StorageError, match=name) as caught:
        read_table(run)
    assert caught.value.code == "run_damaged"


# Extension types and pickles in Parquet.


def hostile_columns(canary: Path) -> dict[str, pa.Table]:
    images = image_table([encode(one) for one in LEVELS])
    payload = pickle.dumps(Canary(canary))
    old = {b"ARROW:extension:name": b"arrow.py_extension_type", b"ARROW:extension:metadata": payload}
    inner = pa.field("x", pa.struct([pa.field("y", pa.int64(), metadata=old)]))
    pairs = pa.array([[0, 0]] * len(LEVELS), pa.list_(pa.int8(), 2))
    tensors = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int8(), [2]), pairs)
    return {
        "pickled type": images.append_column(pa.field("x", pa.int64(), metadata=old), [range(len(LEVELS))]),
        "nested": images.append_column(inner, pa.array([{"y": 1}] * len(LEVELS), inner.type)),
        "known type": images.append_column("x", tensors),
        "pickle of the file": images.replace_schema_metadata({"x": payload}),
        "pickle of a column": images.append_column(pa.field("x", pa.int64(), metadata={"x": payload}), [range(7)]),
    }


@pytest.mark.filterwarnings("ignore:pickle-based deserialization:RuntimeWarning")  # PyArrow up to 20 says it runs none
@pytest.mark.parametrize("kind", ["pickled type", "nested", "known type", "pickle of the file", "pickle of a column"])
def test_extension_types_and_pickles_in_parquet_are_refused(kind: str, run: Path, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    content = parquet_bytes(hostile_columns(canary)[kind])
    (tmp_path / "x.parquet").write_bytes(content)
    signed(run, "points-00001.parquet", content)
    for function, place in ((open_points, tmp_path / "x.parquet"), (read_table, run)):
        with pytest.raises(ArtefactError) as caught:
            function(place)
        assert (caught.value.code, caught.value.exit_code) == ("parquet_refused", 6)
    assert not canary.exists()


# Small files that unpack to large ones.


def bomb(size: int) -> bytes:
    """A checkpoint whose one tensor, all zeros, was deflated."""
    plain = pickled({"weight": torch.zeros(size // 4)})
    sink = BytesIO()
    with zipfile.ZipFile(BytesIO(plain)) as read, zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as written:
        for name in read.namelist():
            written.writestr(name, read.read(name))
    return sink.getvalue()


BOMBS = """
from brittle.model.loading.load import load_model
calls = ({"weights": "bomb.pt"}, {}, {}, {})
specs = ("./net.py:make", "bomb.pt", "bomb.pt2", "inner.pt2")
def attempt(): return [refused(load_model, spec, **options) for spec, options in zip(specs, calls)]
"""


def test_a_deflated_checkpoint_is_refused_at_once(tmp_path: Path) -> None:
    """300 MB of zeros in 300 kB, as weights, as a model, under the name of an archive, and inside of one.

    Refused, all four together, in less than 1 s and 200 MB.
    """
    content = bomb(300_000_000)
    assert len(content) < 1_000_000
    (tmp_path / "net.py").write_text(FACTORY, encoding="utf-8")
    (tmp_path / "bomb.pt").write_bytes(content)
    (tmp_path / "bomb.pt2").write_bytes(content)
    inner = edited(export(dynamic=True), lambda records: records.update({"data/weights/model.pt": content}))
    (tmp_path / "inner.pt2").write_bytes(inner)
    seen = measured(REFUSED_BY + BOMBS, tmp_path)
    assert seen["code"] == [ArtefactError.exit_code] * 4
    assert seen["seconds"] < 1.0
    assert seen["bytes"] < 200e6


def test_a_detector_of_a_gigabyte_is_refused_at_once(tmp_path: Path) -> None:
    with (tmp_path / "detector.json").open("wb") as file:
        file.truncate(1 << 30)
    script = (
        f"{REFUSED_BY}\nfrom brittle import Detector\ndef attempt(): return refused(Detector.load, 'detector.json')"
    )
    seen = measured(script, tmp_path)
    assert seen["code"] == DetectorFormatError.exit_code
    assert seen["seconds"] < 1.0
    assert seen["bytes"] < 50e6


def test_a_value_that_many_rows_repeat_is_held_once(tmp_path: Path) -> None:
    """40 rows share one "image" of 16 MB; together they would be 640 MB. The file has less than 1 MB."""
    indices = pa.array([0] * 40, pa.int32())
    images = pa.DictionaryArray.from_arrays(indices, pa.array([bytes(16_000_000)], pa.binary())).cast(pa.binary())
    table = pa.table({"image": pa.StructArray.from_arrays([images], ["bytes"])})
    content = parquet_bytes(table, compression="zstd", dictionary_pagesize_limit=1 << 30, write_statistics=False)
    assert len(content) < 1_000_000
    (tmp_path / "x.parquet").write_bytes(content)
    script = (
        f"{REFUSED_BY}\nfrom brittle.data import open_points\ndef attempt(): return refused(open_points, 'x.parquet')"
    )
    seen = measured(script, tmp_path)
    assert seen["code"] is not None
    assert seen["bytes"] < 250e6


def test_more_rows_than_bytes_are_refused(run: Path, tmp_path: Path) -> None:
    many = pa.table({"label": pa.array(np.zeros(3_000_000, np.int64))})
    images = pa.StructArray.from_arrays([pa.nulls(3_000_000, pa.binary())], ["bytes"])
    content = parquet_bytes(many.append_column("image", images), compression="zstd")
    assert len(content) < 1_000_000
    (tmp_path / "x.parquet").write_bytes(content)
    signed(run, "scores-00001.parquet", content)
    for function, place in ((open_points, tmp_path / "x.parquet"), (read_table, run)):
        with pytest.raises(ArtefactError, match="3,000,000 rows"):
            function(place)


# Code: only what the user names.


HOSTILE_MODULES = (
    "torch",
    "sitecustomize",
    "usercustomize",
    "numpy",
    "rich",
    "cyclopts",
    "json",
    "site",
    "pyarrow",
    "PIL",
)


@pytest.mark.parametrize("command", ["installed", "module"])
def test_what_lies_in_the_current_folder_is_not_imported(command: str, tmp_path: Path) -> None:
    for name in HOSTILE_MODULES:
        (tmp_path / f"{name}.py").write_text(f"open('canary-{name}', 'w')\nraise SystemExit(99)\n", encoding="utf-8")
    program = [str(Path(sys.executable).with_name("brittle"))]
    begin = program if command == "installed" else [sys.executable, "-m", "brittle"]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    for arguments in (["list"], ["score", "net:make", "absent.npz", "--out", "run"]):
        done = subprocess.run(
            [*begin, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode in (0, 3), done.stderr
        assert list(tmp_path.glob("canary-*")) == []


def test_a_factory_is_not_looked_for_in_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("open('canary', 'w')\n" + FACTORY, encoding="utf-8")
    np.savez(tmp_path / "x.npz", x=np.zeros((3, 4), np.float32))
    arguments = [sys.executable, "-m", "brittle", "score", "net:make", "x.npz", "--out", "run"]
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "the current folder is not searched: for the file in this folder write ./net.py:make" in done.stderr
    assert not (tmp_path / "canary").exists()


def test_a_function_that_makes_no_network_is_refused_with_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("x.npz", x=np.zeros((3, 4), np.float32))
    assert main(["score", "os:system", "x.npz", "--out", "run", "--quiet"]) == 3
    said = capsys.readouterr().err
    digest = hashlib.sha256(Path(os.__file__).read_bytes()).hexdigest()
    assert said.startswith("brittle: factory_type: os:system")
    assert f"(file {os.__file__}, sha256 {digest})" in said
    assert not Path("run").exists()


def test_the_run_record_holds_file_and_digest_of_the_factory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(FACTORY, encoding="utf-8")
    np.savez("x.npz", x=np.random.default_rng(0).random((8, 1, 2, 2), dtype=np.float32))
    assert main(["score", "./net.py:make", "x.npz", "--scores", "logit_margin", "--out", "run", "--quiet"]) == 0
    model = read_table("run").provenance["model"]
    assert model["runs_code"] is True
    assert Path(model["file"]).resolve() == Path("net.py").resolve()
    assert model["sha256"] == hashlib.sha256(Path("net.py").read_bytes()).hexdigest()


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".bin", ".ckpt", ".pkl"])
def test_a_checkpoint_with_code_is_not_opened(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(FACTORY, encoding="utf-8")
    np.savez("x.npz", x=np.zeros((3, 1, 2, 2), np.float32))
    Path(f"net{suffix}").write_bytes(pickled(Canary(tmp_path / "canary")))
    for model in ([f"net{suffix}"], ["./net.py:make", "--weights", f"net{suffix}"]):
        name, *weights = model
        assert main(["score", name, "x.npz", "--out", "run", "--quiet", *weights]) == ArtefactError.exit_code
        assert f"net{suffix} is" in capsys.readouterr().err
    assert not Path("canary").exists()


WATCH = """
import sys
from pathlib import Path
from brittle.data import open_points
from brittle.store.table import read_table, verify
from brittle.errors import BrittleError
import safetensors.torch, brittle.model.loading.load, brittle.model.loading.archive
import brittle.detector, brittle.detector.pseudo_margin
forbidden = ("subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn",
             "socket.", "pickle.find_class", "ctypes.dlopen", "os.remove", "os.rename", "os.mkdir", "webbrowser.")
def watch(event, arguments):
    writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
    if event.startswith(forbidden) or writes:
        print("EVENT", event, arguments, flush=True)
def read(path):
    for batch in open_points(path, scale_uint8=path.suffix == ".npz").batches(4):
        pass
for path in sorted(Path(".").iterdir()):  # what reading imports is imported first
    reader = {"run": verify, "bad_run": read_table}.get(path.name, read)
    for hooked in (False, True):
        if hooked:
            sys.addaudithook(watch)
        try:
            reader(path)
        except BrittleError:
            pass
print("done")
"""


def test_reading_starts_nothing_writes_nothing_and_calls_nobody(run: Path, tmp_path: Path) -> None:
    """Python's own audit events, while every kind of data and run folder is read, hostile ones among them."""
    place = tmp_path / "all"
    for number, reader in enumerate((from_npz, from_folder, from_parquet, from_idx)):
        (place / f"{number}").mkdir(parents=True)
        reader(place / f"{number}", LEVELS, LABELS)
    for path in [*place.glob("*/*.npz"), *place.glob("*/*.parquet")]:
        path.rename(place / path.name)
    (place / "images" / "ant").mkdir(parents=True)
    for row, (content, _, _) in enumerate([(encode(LEVELS[0]), 0, 0), *BAD_IMAGES.values()]):
        (place / "images" / "ant" / f"{row:03}.eps").write_bytes(content)
    np.savez(place / "pickles.npz", x=np.array([Canary(tmp_path / "canary")] * 4, dtype=object))
    (place / "types.parquet").write_bytes(parquet_bytes(hostile_columns(tmp_path / "canary")["pickled type"]))
    run.rename(place / "run")
    make_table().to_parquet(place / "bad_run")
    (place / "bad_run" / "scores-00000.parquet").write_bytes(b"PAR1" * 9)
    done = subprocess.run([sys.executable, "-c", WATCH], cwd=place, capture_output=True, text=True, check=False)
    assert done.stdout == "done\n", done.stderr
    assert not (tmp_path / "canary").exists()


# Names.


NAMES = (
    b"two\nlines.png",
    b"quotes'\".png",
    b"x" * 251 + b".png",
    unicodedata.normalize("NFC", "caf\u00e9.png").encode(),
    unicodedata.normalize("NFD", "caf\u00e9.png").encode(),
    b"caf\xe9.png",
    b"caf\\xe9.png",
    b"\xed\xa0\x80.png",
    "\u202egnp.exe.png".encode(),
    b"\x1b[31mred\x1b[0m.png",
    b"=HYPERLINK(1).png",
    b" .png",
)


def as_bytes(shown: str) -> bytes:
    """The name that a text of `brittle.data.points.text` stands for."""
    return re.sub(
        rb"\\(x[0-9a-f]{2}|\\)",
        lambda one: b"\\" if one[1] == b"\\" else bytes.fromhex(one[1][1:].decode()),
        shown.encode(),
    )


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> brittle.Table:
    """A run over images of many names, written to `run` and read again."""
    monkeypatch.chdir(tmp_path)
    Path("images/ant").mkdir(parents=True)
    for level, name in enumerate(NAMES):
        content = encode(np.full((1, 2, 2), 10 * level, np.uint8))
        (b"images/ant/" + name).decode(errors="surrogateescape")
        Path(os.fsdecode(b"images/ant/" + name)).write_bytes(content)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 3))
    classifier = brittle.Classifier(network, bounds=(0, 1))
    brittle.score(classifier, open_points("images"), [LogitMargin()], out="run")
    return read_table("run")


def test_names_come_back_exactly(named: brittle.Table) -> None:
    stored = {as_bytes(one) for one in named.points["point"].to_pylist()}
    assert stored == {b"ant/" + name for name in NAMES}
    assert {as_bytes(one) for one in named.points["name"].to_pylist()} == {b"images/ant/" + name for name in NAMES}
    assert set(named.scores["point"].to_pylist()) == set(named.points["point"].to_pylist())
    assert len(named.wide()) == len(NAMES)


def test_names_come_back_exactly_from_flags(named: brittle.Table) -> None:
    shared = {name: named.points[name] for name in ("point", "row", "name", "label", "predicted")}
    count = len(NAMES)
    others = {"score": [0.5] * count, "brittle": [True] * count, "status": ["ok"] * count, "forced": [False] * count}
    flags = pa.table(shared | others, schema=FLAGS)
    assert pq.read_table(write_flags(flags, "flags.parquet")).equals(flags)
    kinds = csv.ConvertOptions(column_types=FLAGS, strings_can_be_null=False)
    read = csv.read_csv(write_flags(flags, "flags.csv"), convert_options=kinds)
    assert [text_of(one) for one in read["point"].to_pylist()] == flags["point"].to_pylist()


def test_names_are_shown_escaped(named: brittle.Table) -> None:
    page = write_report(named, "report.html").read_text(encoding="utf-8")
    assert_inert(Page(page))
    for character in ("\x1b", "\u202e"):
        assert character not in page


@pytest.mark.parametrize("hostile", ["two\nlines", "\x1b[31m", "\u202e", "a\rb", "\x00"])
def test_messages_are_one_line_that_can_be_read(
    hostile: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error that names a file, whatever the name."""
    for error in (
        StorageError("code", f"{hostile} is odd"),
        DataError("code", hostile),
        ArtefactError("code", hostile),
    ):
        assert str(error).isprintable()
    if "\x00" not in hostile:
        (tmp_path / f"{hostile}.npz").write_bytes(b"x")
        assert main(["score", "os:getcwd", str(tmp_path / f"{hostile}.npz"), "--out", str(tmp_path / "run")]) == 3
        for line in capsys.readouterr().err.splitlines():
            assert line.isprintable()


def test_failed_points_are_told_in_lines_that_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(FACTORY, encoding="utf-8")
    Path("images/ant").mkdir(parents=True)
    for number in range(300):
        Path(f"images/ant/{number:03}.png").write_bytes(encode(np.full((1, 2, 2), number % 256, np.uint8)))
    Path("images/ant/000\x1b[31m\nred.png").write_bytes(b"no image")
    arguments = ["images", "--scores", "logit_margin", "--out", "run", "--quiet"]
    assert main(["score", "./net.py:make", *arguments]) == 4
    lines = capsys.readouterr().err.splitlines()
    assert any("000\\x1b[31m\\nred.png" in line for line in lines)
    assert all(line.isprintable() for line in lines)


def test_ids_that_cannot_be_stored_are_refused() -> None:
    with pytest.raises(DataError, match=r"id of row 1 of the data is '.udc80'") as caught:
        array_points(torch.zeros(2, 3), ids=["a", "\udc80"])
    assert caught.value.code == "id_text"


# Hostile text in every field of a run from somebody else.


def hostile_run(folder: Path) -> Path:
    """A run folder whose every text is one of the forty, or holds one."""
    table = make_table(points=len(HOSTILE), scores=("moments", "softmax", "input_margin"), sigmas=(0.1,), budgets=(10,))
    texts = [storable(one) for one in HOSTILE]
    renamed = dict(zip(table.points["point"].to_pylist(), texts, strict=True))

    def poisoned(part: pa.Table, *columns: str) -> pa.Table:
        own = pa.array([renamed[point] for point in part["point"].to_pylist()], pa.string())
        part = part.set_column(0, part.schema.field(0), own)
        for shift, column in enumerate(columns, 1):
            place = part.schema.get_field_index(column)
            words = [texts[(row + shift) % len(texts)] for row in range(len(part))]
            part = part.set_column(place, part.schema.field(place), pa.array(words, pa.string()))
        return part

    def deep(value: Any, key: str = "") -> Any:
        if isinstance(value, str) and key not in ("score", "quantity", "label", "noise"):
            return HOSTILE[(len(value) + len(key)) % len(HOSTILE)]
        if isinstance(value, dict):
            return {own: inner if own == "parameters" else deep(inner, own) for own, inner in value.items()}
        return [deep(inner, key) for inner in value] if isinstance(value, list) else value

    provenance = deep(table.provenance) | {"confidence": 0.99, "format": 1}
    provenance["data"]["class_names"] = list(HOSTILE)
    replace(
        table,
        points=poisoned(table.points, "name", "detail"),
        scores=poisoned(table.scores, "detail"),
        counterexamples=poisoned(table.counterexamples),
        provenance=provenance,
    ).to_parquet(folder)
    return folder


def test_forty_hostile_strings_in_every_field_are_shown_as_text(tmp_path: Path) -> None:
    assert len(set(HOSTILE)) >= 40
    table = read_table(hostile_run(tmp_path / "run"))
    assert table.points["point"].to_pylist() == [storable(one) for one in HOSTILE]
    page = write_report(table, tmp_path / "report.html").read_text(encoding="utf-8")
    assert_inert(Page(page))


def test_the_command_line_survives_hostile_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(hostile_run(tmp_path / "run"))
    assert main(["report", place]) == 0
    assert main(["verify", place]) == 0
    assert main(["compare", place, place, "--out", str(tmp_path / "c.csv")]) == 0
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    for text in (said.out, said.err, (tmp_path / "c.csv").read_text(encoding="utf-8")):
        assert all(line.isprintable() for line in text.split("\n"))


def test_no_command_says_what_a_terminal_would_obey(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Texts of a run by somebody else, and names of files, in what goes to a terminal."""
    table = make_table(points=150, scores=("logit_margin", "input_margin"))
    model = table.provenance["model"] | {"state_sha256": "0" * 64}
    entries = [entry | {"label": f"{entry['label']}\x1b[31m\u202e"} for entry in table.provenance["scores"]]
    hostile = replace(table, provenance=table.provenance | {"model": model, "scores": entries})
    hostile.to_parquet(tmp_path / "run\x1b[2J")
    run, out = str(tmp_path / "run\x1b[2J"), str(tmp_path / "d.json")
    main(["report", run, "--out", str(tmp_path / "r.html")])
    main(["compare", run, run])
    main(["verify", run])
    main(["detector", "fit", run, "--epsilon", "0.02", "--tpr", "0.5", "--out", out])
    main(["doctor", "absent\x1b[2J.pt2", "absent\x1b[2J.npz"])
    main(["score", "absent.pt2", "absent.npz", "--out", "x", "--no-such\x1b[2J"])
    said = capsys.readouterr()
    for line in f"{said.out}\n{said.err}".split("\n"):
        assert line.isprintable(), line


# CSV.


def test_every_writer_of_csv_guards_its_texts() -> None:
    """Whoever writes CSV writes its texts by one function."""
    writers = [
        path for path in SOURCE.rglob("*.py") if re.search(r"\.to_csv\(|write_csv\(|csv\.writer", path.read_text())
    ]
    assert {path.name for path in writers} == {"compare.py", "flags.py"}
    for path in writers:
        assert "from brittle.store.files.csv_text import cell" in path.read_text()


CELLS = [
    *("=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", "\uff1d1", "'=1", "'", "plain", "", "caf\u00e9", "\U0001f4a5"),
    *(
        "\x1b[31mred",
        "a\\x1b",
        "a\x1b",
        "\\",
        "\\\\",
        "\u202egnp",
        "\u2066",
        "\u2028",
        "\x9b1m",
        "\0",
        "\x7f",
        "a\u00a0b",
    ),
]
"""Texts that a terminal or a spreadsheet would obey, and some that look like the escapes of others."""


def flags_named(names: list[str]) -> pa.Table:
    """A row of flags for each name."""
    rows, count = range(len(names)), len(names)
    columns = {"point": names, "row": rows, "name": names, "label": rows, "predicted": rows, "score": [0.5] * count}
    others = {"brittle": [True] * count, "status": ["ok"] * count, "forced": [False] * count}
    return pa.table(columns | others, schema=FLAGS)


def test_texts_in_csv_are_harmless_and_come_back(tmp_path: Path) -> None:
    path = write_flags(flags_named(CELLS), tmp_path / "flags.csv")
    lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    assert len(lines) == 1 + len(CELLS)
    assert all(line.isprintable() for line in lines)
    options = csv.ConvertOptions(column_types=FLAGS, strings_can_be_null=False)
    cells = csv.read_csv(path, convert_options=options)["point"].to_pylist()
    assert not any(one.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d")) for one in cells)
    assert [text_of(one) for one in cells] == CELLS
    assert len(set(cells)) == len(CELLS)


@given(st.text())
def test_any_text_comes_back_from_csv(text: str) -> None:
    assert cell(text).isprintable()
    assert text_of(cell(text)) == text


def test_nothing_in_the_package_unpickles_or_evaluates() -> None:
    """Code is executed in one place, the factory that the user names; what PyTorch unpickles are tensors only."""
    executed = set()
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"pickle\.(load|dump)|allow_pickle=True|weights_only=False", text), path
        assert all("weights_only=True" in call for call in re.findall(r"(?<!safetensors\.)torch\.load\(.*", text)), path
        calls = [node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
        executed |= {(path.name, one.id) for one in calls if isinstance(one, ast.Name) and one.id in ("eval", "exec")}
    assert executed == {("load.py", "exec")}
