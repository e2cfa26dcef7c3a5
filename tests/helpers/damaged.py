"""Damaged runs and files from somebody else, and the cost of reading them."""

from __future__ import annotations

import json
import pickle
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from checks.fuzz_damage import sign
from helpers.artefacts import Canary
from helpers.data_files import LEVELS, encode, image_table
from helpers.forks import forked

import brittle

SOURCE = Path(brittle.__file__).parent


def signed(run: Path, name: str, content: bytes) -> None:
    """Replace a shard file by `content`, and its size and digest in the manifest."""
    (run / name).write_bytes(content)
    (run / "manifest.json").write_bytes(sign((run / "manifest.json").read_bytes(), name, content))


def parquet_bytes(table: pa.Table, **options: Any) -> bytes:
    sink = BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def measured(script: str, place: Path) -> dict[str, Any]:
    """Measure seconds and bytes of `attempt()`, which `script` defines, in a forked process after the imports."""
    program = (
        "import json, resource, sys, time\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024\n"
        f"{script}\n"
        "before, start = peak(), time.perf_counter()\n"
        "code = attempt()\n"
        "print(json.dumps({'code': code, 'seconds': time.perf_counter() - start, 'bytes': peak() - before}))\n"
    )
    done = forked(program, cwd=place)
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


def hostile_columns(canary: Path) -> dict[str, pa.Table]:
    images = image_table([encode(image) for image in LEVELS])
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
