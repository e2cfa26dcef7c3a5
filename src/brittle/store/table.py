"""The table of a run: schema, run folder, shards.

A run folder holds `run.json` (everything needed to repeat the run), `manifest.json` (the shards that exist, with
size and sha256) and the shards, `points-00000.parquet` and `scores-00000.parquet` onwards, with
`counterexamples-00000.parquet` where a score found any. A file is written under a
temporary name, flushed to the disk and renamed; a shard exists when the manifest says so.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from brittle.errors import ArtefactError, StorageError
from brittle.estimate import FLIP_PROBABILITY, parameters_json
from brittle.estimate import INPUT_MARGIN as INPUT_MARGIN
from brittle.estimate import score_label as score_label
from brittle.store.files.lock import NAME
from brittle.store.files.writing import check_target
from brittle.store.shards import (
    Fault,
    Shard,
    ShardError,
    check_provenance,
    decode,
    read_bytes,
    read_record,
    shards_of,
    strays,
)

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 2
"""Version of the run folder's layout."""

RECORD, MANIFEST = "run.json", "manifest.json"
"""What the record of a run and the list of its shards are called."""

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
        pa.field("evidence", pa.string()),
        pa.field("counted_low", pa.float64()),
        pa.field("counted_high", pa.float64()),
    ]
)
"""One row per point, score and parameters (a JSON object with sorted keys). Probability scores hold the flip
probability `1 - p_robust` as `value`, what stands behind it as `evidence` (`counted`, `modelled`, `extrapolated`), and
in `counted_low` and `counted_high` the interval by the votes of the noisy copies that they looked at."""

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

SHOWN = 3
"""How many scores a table names when it is printed."""

KINDS = {"points": POINTS, "scores": SCORES, "counterexamples": COUNTEREXAMPLES}
"""The kinds of shard file."""


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        labels = [entry["label"] for entry in self.provenance.get("scores", [])]
        shown = [*labels[:SHOWN], *(["…"] if len(labels) > SHOWN else [])]
        number = f"{len(labels)} score{'' if len(labels) == 1 else 's'}"
        return f"Table({len(self.points)} points, {number}: {', '.join(shown) or 'none'})"

    def long(self) -> pd.DataFrame:
        """The scores as a pandas frame, one row per point, score and parameters."""
        return self.scores.to_pandas()

    def wide(self) -> pd.DataFrame:
        """One row per point, in the order of the data, sorted by nothing.

        The columns are those of the points (without the thumbnail), then for each score `S` with its parameters:
        `S.p_robust` and `S.flip_probability` for probability scores, `S` itself for the others; `S.low` and `S.high`
        (the interval of the flip probability for probability scores); `S.status`; `S.passes`; and for probability
        scores `S.evidence`, `S.counted_low`, `S.counted_high`.
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
            names = ["low", "high", "status", "passes"]
            if entry["quantity"] == FLIP_PROBABILITY:
                names += ["evidence", "counted_low", "counted_high"]
            others = {f"{label}.{name}": rows[name] for name in names}
            columns.append(pd.DataFrame(values | others).rename_axis(None))
        return pd.concat(columns, axis=1).reset_index(drop=True)

    def to_parquet(self, folder: str | os.PathLike[str]) -> None:
        """Write the run folder `folder`, which must not hold a run yet.

        Raises:
            StorageError: the folder holds a run, or cannot be written.
        """
        from brittle.store.folder import RunFolder

        check_free(folder)
        tables = {"points": self.points, "scores": self.scores, "counterexamples": self.counterexamples}
        with RunFolder.open(folder) as writer:
            writer.begin(self.provenance)
            writer.commit(0, tables)
            writer.finish(self.provenance)


def check_free(folder: str | os.PathLike[str]) -> None:
    """Raise where `folder` holds a run, or cannot be written.

    Raises:
        StorageError: it does, or it cannot.
    """
    check_writable(folder)
    if any((Path(folder) / name).exists() for name in (RECORD, MANIFEST)):
        raise StorageError(
            "run_exists",
            f"{folder} holds a run already; go on with it (--resume, resume=True) or choose another folder",
        )


def check_writable(folder: str | os.PathLike[str]) -> None:
    """Raise where `folder`, or the nearest folder above it that exists, cannot be written; nothing is made.

    The folder may be a link to one; `run.json`, `manifest.json` and the lock in it may be nothing but regular files.

    Raises:
        StorageError: it cannot.
    """
    path = Path(folder).absolute()
    there = next((place for place in (path, *path.parents) if os.access(place, os.F_OK)), path)
    if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
        why = "cannot be written" if there.is_dir() else "is no folder"
        raise StorageError("unwritable", f"{folder} cannot be made, because {there} {why}; choose another")
    if path.is_symlink() and not path.exists():
        raise StorageError("unwritable", f"{folder} is a link to {path.readlink()}, which is not there; make it first")
    check_records(path)


def check_records(folder: Path) -> None:
    """Raise where something is in `folder` under the name of a record or of the lock that is no regular file.

    Raises:
        StorageError: there is.
    """
    for name in (NAME, RECORD, MANIFEST):
        check_target(folder / name)


def read_table(folder: str | os.PathLike[str]) -> Table:
    """Read a run folder, which may come from anybody; nothing in it is run.

    Raises:
        StorageError: the folder holds no run, was written in another format, or a shard is missing or damaged.
        ArtefactError: a file leads out of the folder, or a shard has an extension type.
    """
    folder = Path(folder)
    provenance, shards = _open_run(folder)
    check_provenance(provenance, folder / RECORD)
    tables = {
        kind: [decode(read_bytes(folder, one), schema, folder / one.file) for one in shards if one.kind == kind]
        for kind, schema in KINDS.items()
    }
    parts = {
        kind: pa.concat_tables(tables[kind]) if tables[kind] else schema.empty_table() for kind, schema in KINDS.items()
    }
    return Table(provenance=provenance, **parts)


def verify(folder: str | os.PathLike[str]) -> list[Fault]:
    """The files of a run folder that are not as they should be: what is wrong with each, in the order of the manifest.

    Every shard file is read again: its size and digest must be those of the manifest, its columns those of this
    version, and the checksums of its pages must hold. Files that are named as shards or temporary files and are not in
    the manifest come last, as strays.

    Args:
        folder: a run folder, of a run that may have been interrupted.

    Returns:
        a fault for each such file; none for a sound folder.

    Raises:
        StorageError: there is no run, or `run.json` or `manifest.json` is damaged, which have no digest.
        ArtefactError: the manifest leads out of the folder.
    """
    folder = Path(folder)
    provenance, shards = _open_run(folder)
    check_provenance(provenance, folder / RECORD)
    faults = []
    for shard in shards:
        try:
            decode(read_bytes(folder, shard), KINDS[shard.kind], folder / shard.file)
        except ShardError as error:
            faults.append(Fault(shard.file, error.problem))
        except (StorageError, ArtefactError) as error:
            faults.append(Fault(shard.file, str(error)))
    return faults + strays(folder, shards)


def _open_run(folder: Path) -> tuple[dict[str, Any], tuple[Shard, ...]]:
    """The record of a run, and the shard files that its manifest names."""
    provenance, manifest = read_json(folder / RECORD), read_json(folder / MANIFEST)
    check_format(manifest, folder)
    return provenance, shards_of(manifest, folder / MANIFEST, KINDS)


def check_format(manifest: Mapping[str, Any], folder: Path) -> None:
    """Raise unless the run in `folder`, whose manifest is given, has the layout of this version.

    Raises:
        StorageError: it has not.
    """
    found = manifest.get("format")
    if found != FORMAT:
        raise StorageError(
            "run_format",
            f"{folder} is a run of format {found!r:.40}, and this version reads format {FORMAT}; score the data again "
            f"into another folder, or read it with the version of brittle that its run.json names",
        )


def read_json(path: Path) -> dict[str, Any]:
    """The content of a JSON file of a run.

    Raises:
        StorageError: it is missing, too large, or no JSON object.
        ArtefactError: it is a link out of the folder.
    """
    return read_record(path)
