"""Files that come from anybody: nothing in them is run, and none costs more than it says."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.artefacts import FACTORY, Canary, edited, export, pickled
from helpers.damaged import REFUSED_BY, SOURCE, hostile_columns, measured, parquet_bytes
from helpers.data_files import BAD_IMAGES, LABELS, LEVELS, encode, from_folder, from_idx, from_npz, from_parquet
from helpers.forks import forked
from helpers.tables import make_table

from brittle.errors import ArtefactError


def bomb(size: int) -> bytes:
    """Return a checkpoint whose single tensor, all zeros, was deflated."""
    plain = pickled({"weight": torch.zeros(size // 4)})
    sink = BytesIO()
    with zipfile.ZipFile(BytesIO(plain)) as source, zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
    return sink.getvalue()


BOMBS = """
from brittle.model.loading.load import load_model
calls = ({"weights": "bomb.pt"}, {}, {}, {})
specs = ("./net.py:make", "bomb.pt", "bomb.pt2", "inner.pt2")
def attempt(): return [refused(load_model, spec, **options) for spec, options in zip(specs, calls)]
"""


def test_a_deflated_checkpoint_is_refused_at_once(tmp_path: Path) -> None:
    """Refuse 100 MB of zeros in 100 kB, as weights, as a model, under the name of an archive, and inside of one.

    The four refusals together take less than 1 s and 70 MB.
    """
    content = bomb(100_000_000)
    assert len(content) < 300_000
    (tmp_path / "net.py").write_text(FACTORY, encoding="utf-8")
    (tmp_path / "bomb.pt").write_bytes(content)
    (tmp_path / "bomb.pt2").write_bytes(content)
    inner = edited(export(dynamic=True), lambda records: records.update({"data/weights/model.pt": content}))
    (tmp_path / "inner.pt2").write_bytes(inner)
    report = measured(REFUSED_BY + BOMBS, tmp_path)
    assert report["code"] == [ArtefactError.exit_code] * 4
    assert report["seconds"] < 1.0
    assert report["bytes"] < 70e6


HOSTILE_MODULES = ("torch", "sitecustomize", "usercustomize", "numpy", "cyclopts", "json", "site", "pyarrow", "PIL")
HELPS, SCORES = ["--help"], ["score", "net:make", "x.npz", "--out", "run"]


@pytest.mark.parametrize(
    ("command", "line", "code", "message"),
    [
        ("installed", HELPS, 0, ""),
        ("module", SCORES, 3, "the current folder is not searched: for the file in this folder write ./net.py:make"),
    ],
)
def test_files_in_the_current_folder_are_not_imported(
    command: str, line: list[str], code: int, message: str, tmp_path: Path
) -> None:
    """They stay out however the program is started; `score` imports a superset of `--help`.

    A factory is not looked for there either.
    """
    for name in HOSTILE_MODULES:
        (tmp_path / f"{name}.py").write_text(f"open('canary-{name}', 'w')\nraise SystemExit(99)\n", encoding="utf-8")
    (tmp_path / "net.py").write_text("open('canary-net', 'w')\n" + FACTORY, encoding="utf-8")
    np.savez(tmp_path / "x.npz", x=np.zeros((3, 4), np.float32))
    installed = str(Path(sys.executable).with_name("brittle"))
    program = [installed] if command == "installed" else [sys.executable, "-m", "brittle"]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    process = subprocess.run(
        [*program, *line], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == code, process.stderr
    assert message in process.stderr
    assert list(tmp_path.glob("canary-*")) == []


WATCH = """
import sys
from pathlib import Path
from brittle.data import open_points
from brittle.store.reading import read_table, verify
from brittle.errors import BrittleError
import safetensors.torch, brittle.model.loading.load
import brittle.extensions.detector, brittle.extensions.detector.surrogate
forbidden = ("subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn",
             "socket.", "pickle.find_class", "ctypes.dlopen", "os.remove", "os.rename", "os.mkdir", "webbrowser.")
def watch(event, arguments):
    writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
    if event.startswith(forbidden) or writes:
        print("EVENT", event, arguments, flush=True)
def read(path):
    for batch in open_points(path, scale_uint8=path.suffix == ".npz").batches(4):
        pass
for path in sorted(Path(".").iterdir()):  # so that imports come before the watch
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
    """Check Python's own audit events while every kind of data and run folder is read, hostile ones among them."""
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
    make_table().save(place / "bad_run")
    (place / "bad_run" / "scores-00000.parquet").write_bytes(b"PAR1" * 9)
    process = forked(WATCH, cwd=place)
    assert process.stdout == "done\n", process.stderr
    assert not (tmp_path / "canary").exists()


def test_nothing_in_the_package_unpickles_or_evaluates() -> None:
    """Only the factory that the user names is executed; PyTorch unpickles only tensors.

    Pickles of `workers=` go through a pipe to a process that was started for it, and lie in no file.
    """
    executed, pickled = set(), set()
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"allow_pickle=True|weights_only=False", text), path
        pickled |= {(path.name, call) for call in re.findall(r"pickle\.(?:load|dump)\w*\(.*", text)}
        assert all("weights_only=True" in call for call in re.findall(r"(?<!safetensors\.)torch\.load\(.*", text)), path
        calls = [node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
        executed |= {(path.name, f.id) for f in calls if isinstance(f, ast.Name) and f.id in ("eval", "exec")}
    assert executed == {("user_code.py", "exec")}
    assert pickled == {("workers.py", "pickle.loads(content)")}
