"""Damage to files: blind, or with the digests, checksums and lengths around it set right again."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Files = dict[str, bytes]

NUMBERS = (0, 1, 2, 7, *(2**bits + more for bits in (7, 8, 15, 16, 31, 32, 62, 63, 64) for more in (-1, 0)))

VALUES = (
    None, True, 0, -1, 0.5, 1e308, 2**70, "", "x", "\x00<b>", [], {}, [1, "a"], {"a": {"b": 1}}, ["x"] * 3, "8/255",
)  # fmt: skip

CELLS = (float("nan"), float("inf"), -float("inf"), 2**63 - 1, -(2**63), b"", b"x" * 8, b"\xff" * 999, "x" * 5000)
"""Values of cells that JSON cannot hold."""

TOKENS = (
    b"null", b"NaN", b"-Infinity", b"1e999", b"-1", b"9" * 400, b"9" * 5000, b'"', b"{", b"}", b"[", b"]", b"[" * 2000,
    b'{"a":' * 2000, b",", b":", b"true", b'""', b"\\u0000", b"\\ud800", b"\xff\xfe", b"\0", b"../../", b"/etc/passwd",
    b"<script>", b"\xf0\x9f\x92\xa5", b"0", b"1e-400", b"'", b"__import__('os')", b"%s%n",
)  # fmt: skip


def flip_bits(rng: random.Random, content: bytearray) -> None:
    for _ in range(rng.choice((1, 1, 1, 2, 8, 64))):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)


def splice(rng: random.Random, content: bytearray) -> None:
    """Replace a part of the file by nothing, noise, zeros, a token or another part, once or repeated."""
    start, source = rng.randrange(len(content)), rng.randrange(len(content))
    part = bytes(content[source : source + rng.choice((1, 16, 200))])
    filled = bytes([rng.choice((0, 128, 255))]) * rng.choice((1, 8, 4096))
    pieces = (b"", b"", rng.randbytes(rng.choice((1, 4, 100))), filled, rng.choice(TOKENS), rng.choice(TOKENS), part)
    piece = rng.choice((*pieces, part * rng.choice((2, 50))))
    content[start : start + rng.choice((0, 1, len(piece), rng.choice((2, 16, 256)), len(content)))] = piece


def set_length(rng: random.Random, content: bytearray) -> None:
    form = rng.choice(("<H", ">H", "<I", ">I", "<Q", ">Q"))
    size = struct.calcsize(form)
    if len(content) >= size:
        struct.pack_into(form, content, rng.randrange(len(content) - size + 1), rng.choice(NUMBERS) % (1 << 8 * size))


def change_number(rng: random.Random, content: bytearray) -> None:
    digits = [place for place in range(len(content)) if 48 <= content[place] <= 57]
    if digits:
        start = rng.choice(digits)
        stop = start
        while stop < len(content) and 48 <= content[stop] <= 57:
            stop += 1
        content[start:stop] = str(rng.choice((*NUMBERS, -1, rng.randrange(1000)))).encode()


MUTATIONS = (flip_bits, flip_bits, splice, splice, splice, splice, splice, set_length, set_length, change_number)


def mutate(rng: random.Random, content: bytes) -> bytes:
    changed = bytearray(content or b"\0")
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        rng.choice(MUTATIONS)(rng, changed)
        if not changed:
            break
    return bytes(changed)


def mutate_json(rng: random.Random, content: bytes) -> bytes:
    """Replace a value of a JSON text so that it still is JSON."""
    document = json.loads(content)
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        for key in value if isinstance(value, dict) else range(len(value)):
            places.append((value, key))
            if isinstance(value[key], dict | list):
                walk(value[key])

    walk(document)
    for _ in range(rng.choice((1, 1, 2))):
        holder, key = rng.choice(places)
        kind = rng.randrange(6)
        if kind == 0 and isinstance(holder, dict):
            holder.pop(key, None)
        elif kind == 1:
            donor, donor_key = rng.choice(places)
            with contextlib.suppress(LookupError):
                holder[key] = json.loads(json.dumps(donor[donor_key]))
        else:
            with contextlib.suppress(LookupError):
                holder[key] = rng.choice(VALUES)
    return json.dumps(document).encode()


def with_header(content: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Replace the header of a safetensors file, and its length."""
    length = int.from_bytes(content[:8], "little")
    header = change(content[8 : 8 + length])
    return struct.pack("<Q", len(header)) + header + content[8 + length :]


def retype(rng: random.Random, header: bytes) -> bytes:
    """Replace the type of number in the header of a safetensors file."""
    kinds = ("F64", "F32", "F16", "BF16", "I64", "U64", "U8", "BOOL", "F8_E4M3", "F8_E8M0", "F4", "C64", "F6_E2M3")
    old, new = rng.choice((b'"F32"', b'"F64"', b'"U8"')), f'"{rng.choice(kinds)}"'.encode()
    return header.replace(old, new, rng.choice((1, -1)))


def with_checksums(png: bytes) -> bytes:
    """Set the checksum of every chunk of a PNG file right."""
    fixed, place = bytearray(png), 8
    while place + 12 <= len(fixed):
        length = int.from_bytes(fixed[place : place + 4], "big")
        end = place + 8 + length
        if end + 4 > len(fixed):
            break
        fixed[end : end + 4] = zlib.crc32(fixed[place + 4 : end]).to_bytes(4, "big")
        place = end + 4
    return bytes(fixed)


def repack(rng: random.Random, content: bytes) -> bytes:
    """Damage one record of a zip archive."""
    sink = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as original, zipfile.ZipFile(sink, "w") as archive:
        chosen = rng.choice(sorted(original.namelist()))
        for entry in original.infolist():
            record = original.read(entry)
            changed = damage(rng, entry.filename, record) if entry.filename == chosen else record
            archive.writestr(entry.filename, changed, entry.compress_type)
    return sink.getvalue()


def revalue(rng: random.Random, content: bytes) -> bytes:
    """Replace values in some cells of a Parquet file by others of the types of their columns."""
    table = pq.read_table(io.BytesIO(content))
    for _ in range(rng.choice((1, 1, 2, 8))):
        place = rng.randrange(table.num_columns)
        field, cells = table.schema.field(place), table.column(place).to_pylist()
        row, cell = rng.randrange(len(cells)), rng.choice((*VALUES, *CELLS, *cells))
        cells[row] = cells[row] if cell is None and not field.nullable else cell
        with contextlib.suppress(pa.ArrowException, TypeError, ValueError, OverflowError):  # no value of this type
            table = table.set_column(place, field, pa.array(cells, field.type))
    sink = io.BytesIO()
    pq.write_table(table, sink, write_page_checksum=True)
    return sink.getvalue()


def damage(rng: random.Random, name: str, content: bytes) -> bytes:
    """Damage a file blindly, or inside a layout whose lengths and checksums still fit."""
    if rng.random() < 0.4:
        return mutate(rng, content)
    if name.endswith(".json"):
        return mutate_json(rng, content)
    if name.endswith(".safetensors"):
        change = rng.choice((mutate, mutate_json, retype))
        return with_header(content, lambda header: change(rng, header))
    if name.endswith(".gz"):
        return gzip.compress(damage(rng, name.removesuffix(".gz"), gzip.decompress(content)), mtime=0)
    if name.endswith(".parquet") and rng.random() < 0.5:
        return revalue(rng, content)
    if name.endswith(".parquet"):  # the footer
        start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        return content[:start] + mutate(rng, content[start:-8]) + content[-8:]
    if content.startswith(b"PK"):
        return repack(rng, content)
    return with_checksums(mutate(rng, content)) if name.endswith(".png") else mutate(rng, content)


def sign(manifest: bytes, name: str, content: bytes) -> bytes:
    """Set the size and digest of the shard file `name` in the manifest of a run to those of `content`."""
    shards = json.loads(manifest)
    files = {
        f"{kind}-{entry['number']:05d}.parquet": value
        for entry in shards["shards"]
        for kind, value in entry.items()
        if isinstance(value, dict) and "sha256" in value
    }
    files[name] |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    return json.dumps(shards).encode()


def one_damaged(rng: random.Random, files: Files) -> Files:
    """Damage one of the files; in a run mostly with the digest that fits."""
    name = rng.choice(sorted(files))
    changed = files | {name: damage(rng, name, files[name])}
    if "manifest.json" not in files or name.endswith(".json") or rng.random() >= 0.9:
        return changed
    return changed | {"manifest.json": sign(files["manifest.json"], name, changed[name])}
