"""Links, pipes, devices and the like in every place that is written, and the errors for them.

Nothing may be written through a link or into a device, no pipe waited for, and a refusal comes before any computation.
"""

from __future__ import annotations

import functools
import io
import os
import socket
import stat
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import torch
from helpers.tables import make_table, with_model

from brittle.cli.commands import main
from brittle.errors import BrittleError
from brittle.extensions.demo.digits import prepare
from brittle.extensions.detector.detector import Detector
from brittle.extensions.detector.flags import FLAGS, write_flags
from brittle.extensions.detector.surrogate import Surrogate
from brittle.store.table import Table

VICTIM = b"somebody's file"


FEW = ("link", "pipe", "folder")


class Place(NamedTuple):
    """A file that is written below a folder, the function that writes it, and the obstacles in its place.

    Obstacles that are `removed` are deleted by their name alone, as remains of a killed run.
    """

    name: str
    file: str
    write: Callable[[Path], object]
    things: tuple[str, ...] = ("link", "dangling link", "pipe", "device", "socket", "folder")
    removed: bool = False


@functools.cache
def known_run() -> Table:
    return make_table(points=4, scores=("softmax", "input_margin"))


def run_in(folder: Path) -> None:
    known_run().save(folder / "run")


@functools.cache
def known_detector() -> Detector:
    table = make_table(points=120, scores=("logit_margin", "input_margin"))
    return Detector.fit(with_model(table, state_sha256="0" * 64), epsilon=0.02, tpr=0.5)


def flags_in(suffix: str) -> Callable[[Path], object]:
    row = {"point": "a", "row": 0, "brittle": True, "status": "ok"}
    return lambda folder: write_flags(pa.Table.from_pylist([row], schema=FLAGS).to_pandas(), folder / f"flags{suffix}")


@functools.cache
def known_pseudo_margin() -> Surrogate:
    features = torch.randn(24, 3, generator=torch.Generator().manual_seed(0))
    return Surrogate.fit(features, features.norm(dim=1).double(), width=2, epochs=1)


def command(*arguments: str) -> Callable[[Path], object]:
    """Return a command whose error is raised; FOLDER stands for the folder, RUN for a run next to it."""

    def call(folder: Path) -> None:
        run = folder.parent / "known"
        if "RUN" in arguments and not run.exists():
            known_run().save(run)
        filled = [word.replace("FOLDER", str(folder)).replace("RUN", str(run)) for word in arguments]
        stderr = io.StringIO()
        with redirect_stderr(stderr), redirect_stdout(io.StringIO()):
            code = main([*filled])
        if code:
            name, _, sentence = stderr.getvalue().removeprefix("brittle: ").strip().partition(": ")
            raise BrittleError(name, sentence)

    return call


SCORE = ("score", "absent.pt2", "absent.npz", "--out", "FOLDER/run")

PLACES = (
    Place("the lock of a run", "run/.lock", run_in),
    Place("the record of a run", "run/run.json", run_in),
    Place("the manifest of a run", "run/manifest.json", run_in),
    Place("a shard of a run", "run/scores-00000.parquet", run_in, removed=True),
    Place("a file of a run while it is written", "run/.run.json.0.tmp", run_in, removed=True),
    Place("the lock, by brittle score", "run/.lock", command(*SCORE), FEW),
    Place("the record, by brittle score", "run/run.json", command(*SCORE), FEW),
    Place("the report", "report.html", lambda folder: known_run().report(folder / "report.html"), FEW),
    Place("a detector", "detector.json", lambda folder: known_detector().save(folder / "detector.json"), FEW),
    Place(
        "a detector, by brittle detector fit", "detector.json",
        command("detector", "fit", "absent", "--epsilon", "1", "--out", "FOLDER/detector.json", "--overwrite"),
    ),
    Place("flags in Parquet", "flags.parquet", flags_in(".parquet"), FEW),
    Place("flags in CSV", "flags.csv", flags_in(".csv"), FEW),
    Place("a pseudo-margin", "p.safetensors", lambda folder: known_pseudo_margin().save(folder / "p.safetensors"), FEW),
    Place("a comparison", "c.csv", command("compare", "RUN", "RUN", "--out", "FOLDER/c.csv"), FEW),
    Place("the network of the demo", "digits.pt2", prepare, FEW),
    Place("the data of the demo", "digits.npz", prepare, FEW),
    Place("the run of the demo", "run", command("demo", "--out", "FOLDER"), ("link", "pipe")),
)  # fmt: skip

CLOSED = (
    "score closed/net.py:make data.npz --out out",
    "score closed/net.pt2 data.npz --out out",
    "score closed/folder data.npz --out out",
    "score net.pt2 closed/data.npz --out out",
    "score net.pt2 closed/data --out out",
    "score net.pt2 data.npz --out closed/out",
    "score net.pt2 data.npz --out closed/out --resume",
    "score net.pt2 data.npz --out out --mirror closed/out",
    "score net.pt2 data.npz --out out --config closed/options.toml",
    "score net.pt2 data.npz --out out --bounds closed/bounds.npy",
    "score net.pt2 data.npz --out out --noise closed/noise.py:make",
    "score net.pt2 data.npz --out out --pseudo-margin closed/p.safetensors",
    "doctor closed/net.pt2 data.npz",
    "doctor net.pt2 closed/data.npz",
    "show closed/run",
    "report closed/run",
    "report run --out closed/page.html",
    "compare closed/run run",
    "compare run closed/run",
    "compare run run --out closed/table.csv",
    "export closed/run rows.csv",
    "export run closed/rows.csv",
    "verify closed/run",
    "check closed/run --holds 0.5",
    "check run --accuracy 0.1 --junit closed/rules.xml",
    "check run --accuracy 0.1 --detector closed/rule.json",
    "join whole closed/first closed/second",
    "join closed/whole run",
    "demo --out closed/demo",
    "detector fit closed/run --epsilon 0.02 --out other.json",
    "detector fit run --epsilon 0.02 --out closed/other.json",
    "detector apply closed/rule.json net.pt2 data.npz --out flags.csv",
    "detector apply rule.json closed/net.pt2 data.npz --out flags.csv",
    "detector apply rule.json net.pt2 closed/data.npz --out flags.csv",
    "surrogate fit closed/run net.pt2 data.npz --out p.safetensors",
    "robust-accuracy closed/net.pt2 data.npz --epsilon 0.1",
    "robust-accuracy net.pt2 closed/data.npz --epsilon 0.1",
)
"""Commands with a place in a folder that is closed to the user."""


def a_socket(path: Path, victim: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


THINGS: dict[str, Callable[[Path, Path], None]] = {
    "link": lambda path, victim: path.symlink_to(victim),
    "dangling link": lambda path, victim: path.symlink_to(victim.with_name("nothing")),
    "pipe": lambda path, victim: os.mkfifo(path),
    "device": lambda path, victim: os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3)),  # what /dev/null is
    "socket": a_socket,
    "folder": lambda path, victim: path.mkdir(),
}


def look(place: Place, put: Callable[[Path, Path], None], root: Path) -> BrittleError | None:
    """Put something in a place, write there, check that nothing is harmed, and return the error.

    Raises:
        OSError: it cannot be put there, for example a device without root.
    """
    victim, folder = root / "victim", root / "out"
    victim.write_bytes(VICTIM)
    path = folder / place.file
    path.parent.mkdir(parents=True)
    put(path, victim)
    before, refused = path.lstat(), None
    try:
        place.write(folder)
    except BrittleError as error:
        refused = error
    assert victim.read_bytes() == VICTIM, "the file behind the link was written"
    assert not (root / "nothing").exists(), "the file behind the dangling link was made"
    if refused is not None:
        assert (path.lstat().st_ino, path.lstat().st_mode) == (before.st_ino, before.st_mode)
    elif path.exists():
        assert stat.S_ISREG(path.lstat().st_mode), "it was written to"
    assert [leftover for leftover in folder.rglob(".*.tmp") if leftover != path] == [], "left behind"
    return refused
