"""The readers that are given damaged files: what each reads when it is whole, how that is damaged, and the reading."""

from __future__ import annotations

import contextlib
import gzip
import io
import random
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from checks.fuzz_damage import Files, mutate_tensors, mutated, mutated_json, repacked, signed, with_checksums


@dataclass(frozen=True)
class Target:
    """A reader and files that it reads.

    Attributes:
        valid: sets of files that are read without an error.
        mutate: damages one of these sets.
        read: reads a folder that holds such a set.
    """

    valid: list[Files]
    mutate: Callable[[random.Random, Files], Files]
    read: Callable[[Path], object]


def detector_target() -> Target:
    from helpers.tables import make_table, with_model

    from brittle.detector import Detector

    table = make_table(points=400, scores=("logit_margin", "input_margin", "monte_carlo"), budgets=(400,))
    known = with_model(table, state_sha256="0" * 64)
    with tempfile.TemporaryDirectory() as place:
        fitted = [Detector.fit(known, epsilon=0.02), Detector.fit(known, limit=0.9, tpr=0.8)]
        contents = [one.save(Path(place) / "detector.json").read_bytes() for one in fitted]

    def mutate(rng: random.Random, files: Files) -> Files:
        return {"f.json": (mutated_json if rng.random() < 0.5 else mutated)(rng, files["f.json"])}

    def read(folder: Path) -> None:
        found = Detector.load(folder / "f.json")
        asked = found.criterion
        sound = 0 < (asked.limit or 0.0) < 1 if asked.epsilon is None else 0 < asked.epsilon < float("inf")
        rates = (found.tpr, found.confidence, found.true_positives.value, found.false_positives.value)
        if not (sound and all(0 <= one <= 1 for one in rates if one is not None)):
            raise AssertionError(f"a detector with {found.criterion} and the rates {rates} was read")

    return Target([{"f.json": content} for content in contents], mutate, read)


@cache
def pseudo_margin_target() -> Target:
    import torch

    from brittle.detector.pseudo_margin import PseudoMargin

    generator = torch.Generator().manual_seed(0)
    features = torch.randn(24, 3, generator=generator)
    learned = PseudoMargin.fit(features, features.norm(dim=1).double(), layers=2, width=4, epochs=1)
    with tempfile.TemporaryDirectory() as place:
        content = learned.save(Path(place) / "p.safetensors").read_bytes()
    return Target(
        [{"p.safetensors": content}], mutate_tensors, lambda folder: PseudoMargin.load(folder / "p.safetensors")
    )


def safetensors_target() -> Target:
    import safetensors.torch
    import torch
    from torch import nn

    from brittle.model.loading.weights import check_weights, load_weights

    network = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    content = safetensors.torch.save(network.state_dict(), {"format": "pt"})

    def read(folder: Path) -> None:
        with torch.random.fork_rng(devices=[]):
            fresh = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
        load_weights(fresh, folder / "w.safetensors")
        check_weights(fresh, "w")

    return Target([{"w.safetensors": content}], mutate_tensors, read)


def run_target() -> Target:
    from helpers.tables import make_table

    from brittle.analysis import kept_inputs
    from brittle.store.reading import read_table, verify

    recipe = {"points": 12, "scores": ("moments", "softmax", "input_margin"), "sigmas": (0.1,), "budgets": (10,)}
    valid = []
    for features in (0, 5):
        with tempfile.TemporaryDirectory() as place:
            make_table(**recipe, features=features).save(Path(place) / "run")
            valid.append({path.name: path.read_bytes() for path in (Path(place) / "run").iterdir() if path.is_file()})

    def mutate(rng: random.Random, files: Files) -> Files:
        name = rng.choice(sorted(files))
        if name.endswith(".json"):
            return files | {name: (mutated_json if rng.random() < 0.6 else mutated)(rng, files[name])}
        changed = files | {name: mutated(rng, files[name])}
        return signed(changed, name) if rng.random() < 0.9 else changed

    def read(folder: Path) -> None:
        found = read_table(folder)
        repr(found)
        found.wide()
        if found.points["input"].null_count < len(found.points):
            kept_inputs(found)
        if not all(fault.stray for fault in verify(folder)):
            raise AssertionError("a run that was read is called damaged")

    return Target(valid, mutate, read)


def image_target() -> Target:
    import numpy as np
    from PIL import Image

    from brittle.data.images import FORMATS, UnreadableImage, decode

    rng = np.random.default_rng(0)
    files: list[Files] = []
    exif = Image.Exif()
    exif[0x0112] = 6
    for mode, shape in (("L", (9, 11)), ("RGB", (9, 11, 3)), ("P", (9, 11)), ("RGBA", (9, 11, 4))):
        image = Image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8)).convert(mode)
        for kind in FORMATS:
            sink = io.BytesIO()
            with contextlib.suppress(OSError):
                image.save(sink, format=kind, exif=exif)
                files.append({f"x.{kind.lower()}": sink.getvalue()})
    frames = [Image.new("RGB", (8, 8), (number, 0, 0)) for number in range(3)]
    for kind in ("PNG", "WEBP", "GIF", "TIFF"):
        sink = io.BytesIO()
        frames[0].save(sink, format=kind, save_all=True, append_images=frames[1:])
        files.append({f"frames.{kind.lower()}": sink.getvalue()})

    def mutate(rng: random.Random, files: Files) -> Files:
        name, content = next(iter(files.items()))
        changed = mutated(rng, content)
        return {name: with_checksums(changed) if name.endswith(".png") and rng.random() < 0.7 else changed}

    def read(folder: Path) -> None:
        (path,) = folder.iterdir()
        for mode in (None, "L", "RGB"):
            with contextlib.suppress(UnreadableImage):
                decode(io.BytesIO(path.read_bytes()), mode)

    return Target(files, mutate, read)


def parquet_target() -> Target:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from helpers.data_files import LABELS, LEVELS, encode, image_table

    table = image_table([encode(one) for one in LEVELS], LABELS, id=pa.array([f"p{row}" for row in range(len(LABELS))]))
    files = []
    writings: tuple[dict[str, Any], ...] = (
        {"compression": "none", "write_page_checksum": False},
        {"compression": "zstd", "write_page_checksum": True},
        {"compression": "snappy", "row_group_size": 3, "use_dictionary": False},
        {"compression": "gzip", "data_page_version": "2.0"},
        {"compression": "none", "store_schema": False, "write_statistics": False, "column_encoding": None},
    )
    for options in writings:
        sink = io.BytesIO()
        pq.write_table(table, sink, **options)
        files.append({"x.parquet": sink.getvalue()})

    def mutate(rng: random.Random, files: Files) -> Files:
        content = files["x.parquet"]
        if rng.random() < 0.4:  # the footer says how everything is laid out
            start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
            return {"x.parquet": content[:start] + mutated(rng, content[start:-8]) + content[-8:]}
        return {"x.parquet": mutated(rng, content)}

    return Target(files, mutate, lambda folder: read_all(folder / "x.parquet"))


def read_all(path: Path, **options: Any) -> None:
    from brittle.data import open_points

    for batch in open_points(path, **options).batches(3):
        assert len(batch.ids) == len(batch.inputs)


def npz_target() -> Target:
    import numpy as np

    rng = np.random.default_rng(0)
    images, names = rng.integers(0, 256, (5, 4, 3), dtype=np.uint8), np.array(["a", "b"])
    arrays = {"images": images, "labels": np.arange(5), "class_names": names}
    files = []
    for save in (np.savez, np.savez_compressed):
        sink = io.BytesIO()
        save(sink, **arrays)
        files.append({"x.npz": sink.getvalue()})

    def mutate(rng: random.Random, files: Files) -> Files:
        content = files["x.npz"]
        if rng.random() < 0.5:
            return {"x.npz": mutated(rng, content)}
        return {"x.npz": repacked(content, rng, lambda name, record: mutated(rng, record), zipfile.ZIP_DEFLATED)}

    return Target(files, mutate, lambda folder: read_all(folder / "x.npz", scale_uint8=True))


def idx_target() -> Target:
    import numpy as np
    from helpers.data_files import idx_bytes

    levels = np.random.default_rng(0).integers(0, 256, (5, 4, 3), dtype=np.uint8)
    images, labels = idx_bytes(levels), idx_bytes(np.arange(5))
    plain = {"t10k-images-idx3-ubyte": images, "t10k-labels-idx1-ubyte": labels}
    packed = {f"{name}.gz": gzip.compress(content, mtime=0) for name, content in plain.items()}

    def mutate(rng: random.Random, files: Files) -> Files:
        name = rng.choice(sorted(files))
        if name.endswith(".gz") and rng.random() < 0.5:
            return files | {name: gzip.compress(mutated(rng, gzip.decompress(files[name])), mtime=0)}
        return files | {name: mutated(rng, files[name])}

    return Target([plain, packed], mutate, read_all)


def archive_target() -> Target:
    from helpers.artefacts import export

    from brittle.model.loading.archive import load_archive

    def mutate(rng: random.Random, files: Files) -> Files:
        content = files["x.pt2"]
        if rng.random() < 0.2:
            return {"x.pt2": mutated(rng, content)}
        return {"x.pt2": repacked(content, rng, lambda name, record: changed(rng, name, record))}

    def changed(rng: random.Random, name: str, record: bytes) -> bytes:
        if name.endswith(".json") and rng.random() < 0.8:
            return mutated_json(rng, record)
        if record[:2] == b"PK" and rng.random() < 0.8:
            return repacked(record, rng, lambda name, inner: mutated(rng, inner))
        return mutated(rng, record)

    def read(folder: Path) -> None:
        load_archive((folder / "x.pt2").read_bytes(), "x.pt2")

    return Target([{"x.pt2": export(dynamic=True)}, {"x.pt2": export(dynamic=False)}], mutate, read)


TARGETS: dict[str, Callable[[], Target]] = {
    "detector": detector_target,
    "pseudo_margin": pseudo_margin_target,
    "run": run_target,
    "image": image_target,
    "parquet": parquet_target,
    "npz": npz_target,
    "idx": idx_target,
    "safetensors": safetensors_target,
    "archive": archive_target,
}
