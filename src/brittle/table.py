"""The table of a run: schema, run folder, shards.

A run folder holds `run.json` (everything needed to repeat the run), `manifest.json` (the shards that exist, with
size and sha256) and the shards, `points-00000.parquet` and `scores-00000.parquet` onwards, with
`counterexamples-00000.parquet` where a score found any. A file is written under a
temporary name, flushed to the disk and renamed; a shard exists when the manifest says so.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from brittle.errors import StorageError

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 1
"""Version of the run folder's layout."""

POINTS = pa.schema(
    [
        pa.field("point", pa.string(), nullable=False),
        pa.field("row", pa.int64(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("label", pa.int64()),
        pa.field("predicted", pa.int64()),
        pa.field("correct", pa.bool_()),
        pa.field("status", pa.string(), nullable=False),
        pa.field("detail", pa.string()),
        pa.field("passes", pa.int64(), nullable=False),
        pa.field("image", pa.binary()),
    ]
)
"""One row per point: its id, position and name in the data, label, predicted class, what was wrong with it if
anything, all passes spent on it, and a PNG thumbnail where the input is an image."""

SCORES = pa.schema(
    [
        pa.field("point", pa.string(), nullable=False),
        pa.field("score", pa.string(), nullable=False),
        pa.field("parameters", pa.string(), nullable=False),
        pa.field("value", pa.float64()),
        pa.field("low", pa.float64()),
        pa.field("high", pa.float64()),
        pa.field("status", pa.string(), nullable=False),
        pa.field("detail", pa.string()),
        pa.field("passes", pa.int64(), nullable=False),
    ]
)
"""One row per point, score and parameters (a JSON object with sorted keys). Probability scores hold the flip
probability `1 - p_robust` as `value`."""

COUNTEREXAMPLES = pa.schema(
    [
        pa.field("point", pa.string(), nullable=False),
        pa.field("score", pa.string(), nullable=False),
        pa.field("parameters", pa.string(), nullable=False),
        pa.field("predicted", pa.int64(), nullable=False),
        pa.field("image", pa.binary()),
        pa.field("difference", pa.binary()),
    ]
)
"""One row per point and score that found an input with another prediction: the class there, and, where inputs are
images, PNG thumbnails of it and of the difference, magnified to the full range around mid-grey."""

FLIP_PROBABILITY = "flip_probability"
"""The quantity of a score whose value is `1 - p_robust`."""

INPUT_MARGIN = "input_margin"
"""The score that holds the distance to the nearest input found with another prediction."""


_SCHEMAS = {"points": POINTS, "scores": SCORES, "counterexamples": COUNTEREXAMPLES}
"""The kinds of shard file."""


def parameters_json(parameters: dict[str, Any]) -> str:
    """`parameters` as the table writes them: JSON with sorted keys and no blanks."""
    return json.dumps(parameters, sort_keys=True, separators=(",", ":"), allow_nan=False)


def score_label(score: str, parameters: dict[str, Any]) -> str:
    """A score with its parameters as one writes it, such as `moments(draws=20, sigma=0.1)`."""
    inside = ", ".join(f"{key}={value}" for key, value in sorted(parameters.items()))
    return f"{score}({inside})" if inside else score


@dataclass(frozen=True)
class Table:
    """The result of a run.

    Attributes:
        points: one row per point, with the schema `POINTS`.
        scores: one row per point, score and parameters, with the schema `SCORES`.
        provenance: everything needed to repeat the run; the content of `run.json`.
        counterexamples: the nearest inputs found with another prediction, with the schema `COUNTEREXAMPLES`.
    """

    points: pa.Table
    scores: pa.Table
    provenance: dict[str, Any]
    counterexamples: pa.Table = field(default_factory=COUNTEREXAMPLES.empty_table)

    def long(self) -> pd.DataFrame:
        """The scores as a pandas frame, one row per point, score and parameters."""
        return self.scores.to_pandas()

    def wide(self) -> pd.DataFrame:
        """One row per point, in the order of the data, sorted by nothing.

        The columns are those of the points (without the thumbnail), then for each score `S` with its parameters:
        `S.p_robust` and `S.flip_probability` for probability scores, `S` itself for the others; `S.low` and `S.high`
        (the interval of the flip probability for probability scores); `S.status`; `S.passes`.
        """
        import pandas as pd

        frame = self.points.drop_columns(["image"]).to_pandas().set_index("point", drop=False)
        columns = [frame.rename_axis(None)]
        long = self.long()
        for entry in self.provenance["scores"]:
            wanted = (long["score"] == entry["score"]) & (long["parameters"] == parameters_json(entry["parameters"]))
            rows = long[wanted].set_index("point").reindex(frame.index)
            label = entry["label"]
            if entry["quantity"] == FLIP_PROBABILITY:
                values = {f"{label}.p_robust": 1.0 - rows["value"], f"{label}.flip_probability": rows["value"]}
            else:
                values = {label: rows["value"]}
            others = {f"{label}.{name}": rows[name] for name in ("low", "high", "status", "passes")}
            columns.append(pd.DataFrame(values | others).rename_axis(None))
        return pd.concat(columns, axis=1).reset_index(drop=True)

    def to_parquet(self, folder: str | os.PathLike[str]) -> None:
        """Write the run folder `folder`, which must not hold a run yet.

        Raises:
            StorageError: the folder holds a run, or cannot be written.
        """
        writer = RunWriter.create(folder, self.provenance)
        writer.commit(self.points, self.scores, self.counterexamples)
        writer.finish(self.provenance)


class RunWriter:
    """Writes a run folder shard by shard; what was committed survives whatever happens next."""

    def __init__(self, folder: Path, shards: list[dict[str, Any]]) -> None:
        self.folder = folder
        self._shards = shards

    @classmethod
    def create(cls, folder: str | os.PathLike[str], provenance: dict[str, Any]) -> RunWriter:
        """Start a run in `folder` (made if absent).

        Raises:
            StorageError: `folder` holds a run already, or cannot be written.
        """
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError("unwritable", f"{folder} cannot be made ({error.strerror}); choose another") from error
        if (folder / "run.json").exists():
            raise StorageError("run_exists", f"{folder} holds a run already; choose another folder or remove it")
        writer = cls(folder, [])
        _commit(folder / "run.json", _json_bytes(provenance))
        writer._commit_manifest()
        return writer

    def commit(self, points: pa.Table, scores: pa.Table, counterexamples: pa.Table | None = None) -> None:
        """Write one shard and enter it in the manifest; after this returns the rows are safe."""
        number = len(self._shards)
        parts = {"points": points, "scores": scores} | ({"counterexamples": counterexamples} if counterexamples else {})
        self._shards.append(
            {
                kind: _commit(self.folder / f"{kind}-{number:05d}.parquet", _parquet_bytes(part.cast(_SCHEMAS[kind])))
                for kind, part in parts.items()
            }
        )
        self._commit_manifest()

    def finish(self, provenance: dict[str, Any]) -> Table:
        """Write the final `run.json` and read the run back."""
        _commit(self.folder / "run.json", _json_bytes(provenance))
        return read_table(self.folder)

    def _commit_manifest(self) -> None:
        _commit(self.folder / "manifest.json", _json_bytes({"format": FORMAT, "shards": self._shards}))


def read_table(folder: str | os.PathLike[str]) -> Table:
    """Read a run folder.

    Raises:
        StorageError: the folder holds no run, was written in another format, or a shard is missing or incomplete.
    """
    folder = Path(folder)
    provenance = _read_json(folder / "run.json")
    manifest = _read_json(folder / "manifest.json")
    if manifest.get("format") != FORMAT:
        raise StorageError("run_format", f"{folder} has format {manifest.get('format')}; this version reads {FORMAT}")
    shards = manifest.get("shards", [])
    parts = {
        kind: _read_shards(
            folder, [shard[kind] for shard in shards if kind in shard or kind != "counterexamples"], schema
        )
        for kind, schema in _SCHEMAS.items()
    }
    return Table(provenance=provenance, **parts)


def _read_shards(folder: Path, files: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    tables = []
    for entry in files:
        path = folder / entry["file"]
        if path.parent != folder or not path.is_file() or path.stat().st_size != entry["bytes"]:
            raise StorageError(
                "shard_damaged",
                f"{path} is missing or does not have the {entry['bytes']} bytes of the manifest; score again",
            )
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != entry["sha256"]:
            raise StorageError("shard_damaged", f"{path} is not what was written (its sha256 differs); score again")
        tables.append(pq.read_table(pa.BufferReader(content)).cast(schema))
    return pa.concat_tables(tables) if tables else schema.empty_table()


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise StorageError("no_run", f"{path} is missing; {path.parent} is not a run folder") from error
    except ValueError as error:
        raise StorageError("run_damaged", f"{path} is not valid JSON ({error}); score again") from error


def _json_bytes(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def _parquet_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    return sink.getvalue().to_pybytes()


def _commit(path: Path, content: bytes) -> dict[str, Any]:
    """Write `content` to `path` so that a reader sees all of it or none, whenever the process dies."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise StorageError(
            "unwritable", f"{path} cannot be written ({error.strerror}); make room or choose another folder"
        ) from error
    return {"file": path.name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
