"""Damaged and hostile files for every reader: whatever a file holds, only an error of `brittle.errors` may come out.

Valid files are mutated (bit flips, truncation, insertion, block swaps, length fields, hostile tokens), with the digests
and checksums around them set right again in about half of the cases, so that the damage gets past the first door. Input
`i` of a target depends on the seed, the target and `i` alone. One process reads all inputs; a parent watches it, so
that a crash of a library is a finding like any other. Alone, for as long as one likes:

    PYTHONPATH=tests python -m checks.fuzz --minutes 10 --seed 1
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import gzip
import hashlib
import io
import json
import os
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Files = dict[str, bytes]

PATH = str(Path(__file__).parents[1])
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (PATH, os.environ.get("PYTHONPATH"))))}
"""Where a child that reads damaged files finds the tests' own modules."""

SLOWEST = 5.0
"""Seconds that one input may take."""

MOST_MEMORY = 1 << 30
"""Bytes by which reading may raise the largest memory of the process."""

SHARES = {
    "detector": 1.0, "pseudo_margin": 1.0, "run": 2.0, "image": 1.0, "parquet": 2.0, "npz": 1.0, "idx": 0.5,
    "safetensors": 1.0, "archive": 2.5,
}  # fmt: skip
"""How the time is shared among the targets."""


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


@dataclass(frozen=True)
class Finding:
    """An input that did not end as it should.

    Attributes:
        target: the reader.
        number: of the input.
        seen: what happened.
    """

    target: str
    number: int
    seen: str


# Mutations.


NUMBERS = (
    0,
    1,
    2,
    7,
    127,
    128,
    255,
    256,
    2**15,
    2**16 - 1,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
)
TOKENS = (
    b"null", b"NaN", b"-Infinity", b"1e999", b"-1", b"9" * 400, b"9" * 5000, b'"', b"{", b"}", b"[", b"]", b"[" * 2000,
    b'{"a":' * 2000, b",", b":", b"true", b'""', b"\\u0000", b"\\ud800", b"\xff\xfe", b"\0", b"../../", b"/etc/passwd",
    b"<script>", b"\xf0\x9f\x92\xa5", b"0", b"1e-400", b"'", b"__import__('os')", b"%s%n",
)  # fmt: skip


def flip_bits(rng: random.Random, content: bytearray) -> None:
    for _ in range(rng.choice((1, 1, 1, 2, 8, 64))):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)


def set_bytes(rng: random.Random, content: bytearray) -> None:
    start = rng.randrange(len(content))
    for place in range(start, min(len(content), start + rng.choice((1, 4, 32)))):
        content[place] = rng.choice((0, 255, 128, rng.randrange(256)))


def truncate(rng: random.Random, content: bytearray) -> None:
    del content[rng.randrange(len(content)) :]


def insert(rng: random.Random, content: bytearray) -> None:
    place = rng.randrange(len(content) + 1)
    content[place:place] = rng.choice((rng.randbytes(rng.choice((1, 4, 100))), bytes(rng.choice((1, 8, 4096)))))


def delete(rng: random.Random, content: bytearray) -> None:
    start = rng.randrange(len(content))
    del content[start : start + rng.choice((1, 2, 4, 16, 256))]


def swap_blocks(rng: random.Random, content: bytearray) -> None:
    size = rng.choice((1, 4, 16, 64, 512))
    first, second = sorted(rng.randrange(len(content)) for _ in range(2))
    if first + size <= second:
        one, other = bytes(content[first : first + size]), bytes(content[second : second + size])
        content[second : second + size] = one
        content[first : first + size] = other


def repeat_block(rng: random.Random, content: bytearray) -> None:
    start = rng.randrange(len(content))
    block = bytes(content[start : start + rng.choice((1, 16, 200))])
    content[start:start] = block * rng.choice((1, 2, 50))


def set_length(rng: random.Random, content: bytearray) -> None:
    form = rng.choice(("<H", ">H", "<I", ">I", "<Q", ">Q"))
    size = struct.calcsize(form)
    if len(content) >= size:
        struct.pack_into(form, content, rng.randrange(len(content) - size + 1), rng.choice(NUMBERS) % (1 << 8 * size))


def put_token(rng: random.Random, content: bytearray) -> None:
    start = rng.randrange(len(content))
    content[start : start + rng.choice((0, 1, 1, 4))] = rng.choice(TOKENS)


def change_number(rng: random.Random, content: bytearray) -> None:
    digits = [place for place in range(len(content)) if 48 <= content[place] <= 57]
    if digits:
        start = rng.choice(digits)
        stop = start
        while stop < len(content) and 48 <= content[stop] <= 57:
            stop += 1
        content[start:stop] = str(rng.choice((*NUMBERS, -1, rng.randrange(1000)))).encode()


MUTATIONS = (
    flip_bits, flip_bits, set_bytes, truncate, insert, delete, swap_blocks, repeat_block, set_length, set_length,
    put_token, change_number,
)  # fmt: skip


def mutated(rng: random.Random, content: bytes) -> bytes:
    changed = bytearray(content or b"\0")
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        rng.choice(MUTATIONS)(rng, changed)
        if not changed:
            break
    return bytes(changed)


def any_file(rng: random.Random, files: Files) -> Files:
    name = rng.choice(sorted(files))
    return files | {name: mutated(rng, files[name])}


def mutated_json(rng: random.Random, content: bytes) -> bytes:
    """A JSON text with one of its values replaced by something else, so that it still is JSON."""
    whole = json.loads(content)
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        for key in value if isinstance(value, dict) else range(len(value)):
            places.append((value, key))
            if isinstance(value[key], dict | list):
                walk(value[key])

    walk(whole)
    others = (
        None,
        True,
        0,
        -1,
        0.5,
        1e308,
        2**70,
        "",
        "x",
        "\x00<b>",
        [],
        {},
        [1, "a"],
        {"a": {"b": 1}},
        ["x"] * 3,
        "8/255",
    )
    for _ in range(rng.choice((1, 1, 2))):
        holder, key = rng.choice(places)
        kind = rng.randrange(6)
        if kind == 0 and isinstance(holder, dict):
            holder.pop(key, None)
        elif kind == 1:
            other, own = rng.choice(places)
            with contextlib.suppress(LookupError):
                holder[key] = json.loads(json.dumps(other[own]))
        else:
            with contextlib.suppress(LookupError):
                holder[key] = rng.choice(others)
    return json.dumps(whole).encode()


# Targets.


def detector_target() -> Target:
    from helpers.tables import make_table, with_model

    from brittle.detector import Detector, MarginCriterion

    table = make_table(points=400, scores=("logit_margin", "input_margin", "monte_carlo"), budgets=(400,))
    known = with_model(table, state_sha256="0" * 64)
    with tempfile.TemporaryDirectory() as place:
        fitted = [Detector.fit(known, epsilon=0.02), Detector.fit(known, limit=0.9, tpr=0.8)]
        contents = [one.save(Path(place) / "detector.json").read_bytes() for one in fitted]
    contents.append((Path(__file__).parents[1] / "detector" / "format_1.json").read_bytes())

    def mutate(rng: random.Random, files: Files) -> Files:
        return {"f.json": (mutated_json if rng.random() < 0.5 else mutated)(rng, files["f.json"])}

    def read(folder: Path) -> None:
        found = Detector.load(folder / "f.json")
        low, high = found.model.bounds
        asked = found.criterion
        sound = 0 < asked.epsilon <= high - low if isinstance(asked, MarginCriterion) else 0 < asked.limit < 1
        rates = (found.tpr, found.confidence, found.true_positives.value, found.false_positives.value)
        if not (sound and all(0 <= one <= 1 for one in rates if one is not None)):
            raise AssertionError(f"a detector with {found.criterion} and the rates {rates} was read")

    return Target([{"f.json": content} for content in contents], mutate, read)


def with_header(content: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """A safetensors file with another header, and the length that belongs to it."""
    length = int.from_bytes(content[:8], "little")
    header = change(content[8 : 8 + length])
    return struct.pack("<Q", len(header)) + header + content[8 + length :]


def mutate_tensors(rng: random.Random, files: Files) -> Files:
    name, content = next(iter(files.items()))
    kind = rng.randrange(4)
    if kind == 0:
        return {name: with_header(content, lambda header: mutated(rng, header))}
    if kind == 1:
        return {name: with_header(content, lambda header: mutated_json(rng, header))}
    if kind == 2:
        kinds = ("F64", "F32", "F16", "BF16", "I64", "U64", "U8", "BOOL", "F8_E4M3", "F8_E8M0", "F4", "C64", "F6_E2M3")
        old, new = rng.choice((b'"F32"', b'"F64"', b'"U8"')), f'"{rng.choice(kinds)}"'.encode()
        return {name: with_header(content, lambda header: header.replace(old, new, rng.choice((1, -1))))}
    return {name: mutated(rng, content)}


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


def signed(files: Files, name: str) -> Files:
    """The files of a run with the size and digest of one of them in the manifest set right."""
    manifest = json.loads(files["manifest.json"])
    for entry in manifest["shards"]:
        for value in entry.values():
            if isinstance(value, dict) and value.get("file") == name:
                value |= {"bytes": len(files[name]), "sha256": hashlib.sha256(files[name]).hexdigest()}
    return files | {"manifest.json": json.dumps(manifest).encode()}


def image_target() -> Target:
    import numpy as np
    from PIL import Image

    from brittle.data.images import FORMATS, UnreadableImage, decode, look_at

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
                decode(io.BytesIO(path.read_bytes()), mode, turn=mode is not None)
        for turn in (False, True):
            with contextlib.suppress(UnreadableImage):
                look_at(io.BytesIO(path.read_bytes()), turn=turn)

    return Target(files, mutate, read)


def with_checksums(png: bytes) -> bytes:
    """A PNG file with the checksum of every chunk set right."""
    fixed, place = bytearray(png), 8
    while place + 12 <= len(fixed):
        length = int.from_bytes(fixed[place : place + 4], "big")
        end = place + 8 + length
        if end + 4 > len(fixed):
            break
        fixed[end : end + 4] = zlib.crc32(fixed[place + 4 : end]).to_bytes(4, "big")
        place = end + 4
    return bytes(fixed)


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


def repacked(
    content: bytes, rng: random.Random, change: Callable[[str, bytes], bytes], kind: int = zipfile.ZIP_STORED
) -> bytes:
    """A zip archive with one of its records changed."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(sorted(records))
    records[name] = change(name, records[name])
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", kind) as archive:
        for own, record in records.items():
            archive.writestr(own, record)
    return sink.getvalue()


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
        if rng.random() < 0.1:
            surplus = rng.randbytes(rng.choice((1, 22, 76, 5000)))
            return {"x.pt2": rng.choice((surplus + content, content + surplus)), "surplus": b""}
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
        if (folder / "surplus").exists():
            raise AssertionError("an archive with more than its records was read")

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


# The process that reads.


def inputs(name: str, target: Target, seed: int) -> Iterator[tuple[int, Files]]:
    """The inputs of a target, without end."""
    number = 0
    while True:
        yield number, one_input(name, target, seed, number)
        number += 1


def one_input(name: str, target: Target, seed: int, number: int) -> Files:
    rng = random.Random(f"{seed}/{name}/{number}")
    return target.mutate(rng, rng.choice(target.valid))


def written(folder: Path, files: Files) -> None:
    for path in folder.iterdir():
        path.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def outcome(target: Target, folder: Path) -> str | None:
    """What is wrong with the way that reading ended; None where nothing is."""
    from brittle.errors import BrittleError

    before, start = peak(), time.monotonic()
    try:
        target.read(folder)
    except BrittleError as error:
        if "\n" in str(error):
            return f"a message of several lines: {error!r}"
    except Exception as error:  # noqa: BLE001 whatever else comes out is what is looked for
        return f"{type(error).__name__}: {str(error)[:300]}"
    taken, grown = time.monotonic() - start, peak() - before
    if taken > SLOWEST:
        return f"took {taken:.1f} s"
    return f"took {grown / 2**20:.0f} MiB" if grown > MOST_MEMORY else None


def peak() -> int:
    """The largest memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def work(seed: int, budgets: dict[str, int] | None, seconds: float, skip: set[tuple[str, int]], state: Path) -> None:
    """Read the inputs; every line of `state` is a JSON object, the last one what was being done."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as place, state.open("a") as log:
        folder = Path(place)

        def tell(**what: Any) -> None:
            log.write(json.dumps(what) + "\n")
            log.flush()

        for name in SHARES:
            target = TARGETS[name]()
            stop = time.monotonic() + seconds * SHARES[name] / sum(SHARES.values())
            done = 0
            for number, files in inputs(name, target, seed):
                if number >= budgets[name] if budgets is not None else time.monotonic() >= stop:
                    break
                if (name, number) in skip:
                    continue
                written(folder, files)
                tell(target=name, number=number)
                faulthandler.dump_traceback_later(2 * SLOWEST, exit=True)
                seen = outcome(target, folder)
                faulthandler.cancel_dump_traceback_later()
                done += 1
                if seen is not None:
                    tell(target=name, number=number, seen=seen)
            tell(target=name, inputs=done)
        tell(finished=True)


def hunt(
    seed: int, budgets: dict[str, int] | None = None, seconds: float = 0.0
) -> tuple[dict[str, int], list[Finding]]:
    """Inputs read by target, and what was found; by numbers of inputs, or for a time."""
    skip: set[tuple[str, int]] = set()
    while True:
        with tempfile.TemporaryDirectory() as place:
            state = Path(place) / "state"
            given = {"seed": seed, "budgets": budgets, "seconds": seconds, "skip": sorted(skip), "state": str(state)}
            child = [sys.executable, "-m", "checks.fuzz", "--work", json.dumps(given)]
            done = subprocess.run(child, capture_output=True, text=True, check=False, env=ENVIRONMENT)
            lines = [json.loads(line) for line in state.read_text().splitlines()] if state.exists() else []
        counts = {line["target"]: line["inputs"] for line in lines if "inputs" in line}
        findings = [Finding(line["target"], line["number"], line["seen"]) for line in lines if "seen" in line]
        if lines and lines[-1].get("finished"):
            return counts, findings
        last = lines[-1] if lines else {}
        how = f"died with {done.returncode}: {done.stderr[-2000:]}"
        return counts, [*findings, Finding(last.get("target", "none"), last.get("number", -1), how)]


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--minutes", type=float, default=5.0)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--keep", type=Path, help="folder for the inputs that were findings")
    options.add_argument("--work", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.work:
        task = json.loads(given.work)
        work(task["seed"], task["budgets"], task["seconds"], {tuple(one) for one in task["skip"]}, Path(task["state"]))
        return 0
    counts, findings = hunt(given.seed, seconds=60.0 * given.minutes)
    for name, count in counts.items():
        print(f"{name:>14}: {count} inputs")
    for finding in findings:
        print(f"FOUND {finding.target} {finding.number} (seed {given.seed}): {finding.seen}")
        if given.keep and finding.target in TARGETS:
            place = given.keep / f"{finding.target}-{given.seed}-{finding.number}"
            place.mkdir(parents=True, exist_ok=True)
            written(place, one_input(finding.target, TARGETS[finding.target](), given.seed, finding.number))
    print(f"{sum(counts.values())} inputs, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
