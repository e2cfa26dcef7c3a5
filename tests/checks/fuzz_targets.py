"""The readers of damaged files, and valid files for each."""

from __future__ import annotations

import contextlib
import gzip
import io
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import safetensors.torch
import torch
from checks.fuzz_damage import Files
from helpers.artefacts import export
from helpers.data_files import LABELS, LEVELS, encode, idx_bytes, image_table
from helpers.tables import make_table, with_model
from PIL import Image
from torch import nn

from brittle.analysis.features import kept_inputs
from brittle.data import open_points
from brittle.data.images import FORMATS, UnreadableImage, decode
from brittle.extensions.detector.detector import Detector
from brittle.extensions.detector.surrogate import Surrogate
from brittle.model.loading.load import SOURCES, load_model
from brittle.model.loading.weights import check_weights, load_weights
from brittle.store.reading import read_table, verify


@dataclass(frozen=True)
class Target:
    """A reader and files that it reads.

    Attributes:
        inputs: number of inputs in the suite.
        valid: makes sets of files that can be read without an error.
        read: reads a folder that holds such a set.
    """

    inputs: int
    valid: Callable[[], list[Files]]
    read: Callable[[Path], object]


def save_files(save: Callable[[Path], object]) -> Files:
    """Return the files that a function writes to a folder."""
    with tempfile.TemporaryDirectory() as place:
        save(Path(place))
        return {path.name: path.read_bytes() for path in Path(place).iterdir() if path.is_file()}


def write_bytes(save: Callable[[io.BytesIO], object]) -> bytes:
    sink = io.BytesIO()
    save(sink)
    return sink.getvalue()


def detectors() -> list[Files]:
    table = make_table(points=400, scores=("logit_margin", "input_margin", "monte_carlo"), budgets=(400,))
    identified = with_model(table, state_sha256="0" * 64)
    fitted = [Detector.fit(identified, epsilon=0.02), Detector.fit(identified, limit=0.9, tpr=0.8)]
    return [save_files(lambda folder, detector=detector: detector.save(folder / "f.json")) for detector in fitted]


def read_detector(folder: Path) -> None:
    detector = Detector.load(folder / "f.json")
    criterion = detector.criterion
    sound = 0 < (criterion.limit or 0.0) < 1 if criterion.epsilon is None else 0 < criterion.epsilon < float("inf")
    rates = (detector.tpr, detector.confidence, detector.true_positives.value, detector.false_positives.value)
    if not (sound and all(0 <= rate <= 1 for rate in rates if rate is not None)):
        raise AssertionError(f"a detector with {detector.criterion} and the rates {rates} was read")


@cache
def pseudo_margins() -> list[Files]:
    features = torch.randn(24, 3, generator=torch.Generator().manual_seed(0))
    learned = Surrogate.fit(features, features.norm(dim=1).double(), width=4, epochs=1)
    return [save_files(lambda folder: learned.save(folder / "p.safetensors"))]


def network() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))


def checkpoint(zipped: bool) -> Files:
    file, content = (
        io.BytesIO(),
        {"state_dict": nn.DataParallel(network()).state_dict(), "args": SimpleNamespace(lr=0.1)},
    )
    torch.save(content if zipped else content["state_dict"], file, _use_new_zipfile_serialization=zipped)
    return {"w.pt": file.getvalue()}


def read_weights(folder: Path) -> None:
    fresh = network()
    load_weights(fresh, next(folder.glob("w.*")))
    check_weights(fresh, "w")


def runs() -> list[Files]:
    recipe = {"points": 12, "scores": ("moments", "softmax", "input_margin"), "sigmas": (0.1,), "budgets": (10,)}
    return [save_files(make_table(**recipe, features=features).save) for features in (0, 5)]


def read_run(folder: Path) -> None:
    table = read_table(folder)
    repr(table)
    table.frame(whole=True)
    if table.points["input"].null_count < len(table.points):
        kept_inputs(table)
    if not all(fault.stray for fault in verify(folder)):
        raise AssertionError("a run that was read is called damaged")


def images() -> list[Files]:
    rng, files, exif = np.random.default_rng(0), list[Files](), Image.Exif()
    exif[0x0112] = 6
    for mode, shape in (("L", (9, 11)), ("RGB", (9, 11, 3)), ("P", (9, 11)), ("RGBA", (9, 11, 4))):
        image = Image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8)).convert(mode)
        for kind in FORMATS:
            with contextlib.suppress(OSError):
                files.append({f"x.{kind.lower()}": write_bytes(partial(image.save, format=kind, exif=exif))})
    opening, *further = (Image.new("RGB", (8, 8), (number, 0, 0)) for number in range(3))
    for kind in ("PNG", "WEBP", "GIF", "TIFF"):
        save = partial(opening.save, format=kind, save_all=True, append_images=further)
        files.append({f"frames.{kind.lower()}": write_bytes(save)})
    return files


def read_image(folder: Path) -> None:
    (path,) = folder.iterdir()
    for mode in (None, "L", "RGB"):
        with contextlib.suppress(UnreadableImage):
            decode(io.BytesIO(path.read_bytes()), mode)


WRITINGS: tuple[dict[str, Any], ...] = (
    {"compression": "none", "write_page_checksum": False},
    {"compression": "zstd", "write_page_checksum": True},
    {"compression": "snappy", "row_group_size": 3, "use_dictionary": False},
    {"compression": "gzip", "data_page_version": "2.0"},
    {"compression": "none", "store_schema": False, "write_statistics": False, "column_encoding": None},
)


def parquets() -> list[Files]:
    ids = pa.array([f"p{row}" for row in range(len(LABELS))])
    table = image_table([encode(image) for image in LEVELS], LABELS, id=ids)
    return [
        {"x.parquet": write_bytes(lambda sink, options=options: pq.write_table(table, sink, **options))}
        for options in WRITINGS
    ]


def npzs() -> list[Files]:
    levels = np.random.default_rng(0).integers(0, 256, (5, 4, 3), dtype=np.uint8)
    arrays = {"images": levels, "labels": np.arange(5), "class_names": np.array(["a", "b"])}
    return [{"x.npz": write_bytes(partial(save, **arrays))} for save in (np.savez, np.savez_compressed)]


def idxs() -> list[Files]:
    levels = np.random.default_rng(0).integers(0, 256, (5, 4, 3), dtype=np.uint8)
    plain = {"t10k-images-idx3-ubyte": idx_bytes(levels), "t10k-labels-idx1-ubyte": idx_bytes(np.arange(5))}
    return [plain, {f"{name}.gz": gzip.compress(content, mtime=0) for name, content in plain.items()}]


def read_all(path: Path, **options: Any) -> None:
    for batch in open_points(path, **options).batches(3):
        assert len(batch.ids) == len(batch.inputs)


TARGETS: dict[str, Target] = {
    "detector": Target(55, detectors, read_detector),
    "pseudo_margin": Target(45, pseudo_margins, lambda folder: Surrogate.load(folder / "p.safetensors")),
    "run": Target(25, runs, read_run),
    "image": Target(45, images, read_image),
    "parquet": Target(35, parquets, lambda folder: read_all(folder / "x.parquet")),
    "npz": Target(55, npzs, lambda folder: read_all(folder / "x.npz", scale_uint8=True)),
    "idx": Target(40, idxs, read_all),
    "safetensors": Target(
        40, lambda: [{"w.safetensors": safetensors.torch.save(network().state_dict(), {"format": "pt"})}], read_weights
    ),
    "checkpoint": Target(30, lambda: [checkpoint(zipped) for zipped in (True, False)], read_weights),
}  # fmt: skip
if "FILE.pt2" in SOURCES:
    TARGETS["archive"] = Target(
        6,
        lambda: [{"x.pt2": export(dynamic)} for dynamic in (True, False)],
        lambda folder: load_model(folder / "x.pt2"),
    )
