"""A run folder is read without trust: nothing in it is run, and what is damaged is named."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from brittle.errors import ArtefactError, StorageError, first_line, printable
from brittle.intervals import check_share
from brittle.store.export import CARD, export
from brittle.store.folder import MANIFEST, RECORD, Manifest, ShardFile, file_name, strays
from brittle.store.plain_parquet import ERRORS, ROWS_UNPACKED, PlainFile
from brittle.store.record import RunRecord, check_inside, read_object, storage_errors
from brittle.store.schemas import SHARD_KINDS, problem_of, problem_of_votes
from brittle.store.table import Table

MOST_READ = 1_000_000  # rows of scores that a screen or a page is made from; of more it speaks of a sample


@dataclass(frozen=True)
class Fault:
    """A file of a run folder that is not as it should be."""

    file: str  # its name in the run folder
    problem: str  # what is wrong with it
    stray: bool = False  # whether it is no part of the run, so that readers pass over it

    def __str__(self) -> str:
        return printable(f"{self.file}: {self.problem}")


class ShardError(StorageError):
    """A shard file is not what was written; `problem` says what is wrong with it."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(
            "shard_damaged", f"{path} {problem}; score again with --resume, which computes only what is lost"
        )
        self.problem = problem


def read_table(
    folder: str | os.PathLike[str],
    max_points: int | None = None,
    *,
    images: bool = True,
    point: str | None = None,
    opened: tuple[RunRecord, Manifest] | None = None,
) -> Table:
    """Read a run folder, which may come from anybody; nothing in it is run.

    Args:
        folder: that of the run.
        max_points: points that are read, about. Of a run of more they are drawn at random by their rows, and its record
            speaks of them as of a sample (`chosen_from`); runs over the same points give the same ones. None reads all.
        images: whether the thumbnails are kept, which are most of what a run holds.
        point: an id, a row or a name: a point that has it is read in any case.
        opened: the run, where it is open already.

    Raises:
        StorageError: the folder holds no run, was written in another format, or a shard is missing or damaged.
        ArtefactError: a file leads out of the folder.
    """
    folder = Path(folder)
    record, manifest = opened or open_run(folder)
    count = sum(entry.account.points for entry in manifest.shards)
    share = 1.0 if max_points is None else max_points / max(1, count)
    tables: dict[str, list[pa.Table]] = {kind: [] for kind in SHARD_KINDS}
    for entry in manifest.shards:
        chosen_ids: pa.Array | None = None
        for kind, file in entry.files.items():  # its points first
            rows = read_shard(folder / file_name(kind, entry.number), kind, file, record)
            if share < 1.0:
                chosen_ids = _drawn(rows, share, point) if chosen_ids is None else chosen_ids
                rows = rows.filter(pc.field("point").isin(chosen_ids))
            for name in () if images else {"image", "difference"} & {*rows.column_names}:
                place = rows.schema.get_field_index(name)
                rows = rows.set_column(place, rows.schema.field(place), pa.nulls(len(rows), pa.binary()))
            tables[kind].append(rows.combine_chunks())  # which of a long run take more room than their few rows
    if share < 1.0 and record.data.chosen_from is None:
        record = replace(record, data=replace(record.data, chosen_from=count, sample_seed=0))
    parts = {
        kind: pa.concat_tables(tables[kind]) if tables[kind] else schema.empty_table()
        for kind, schema in SHARD_KINDS.items()
    }
    return Table(record=record, **parts)


def read_shards(folder: str | os.PathLike[str], opened: tuple[RunRecord, Manifest] | None = None) -> Iterator[Table]:
    """Yield the shards of a run folder, perhaps as it was `opened`, as tables; an empty one where there are none."""
    record, manifest = opened or open_run(Path(folder))
    empty = {kind: schema.empty_table() for kind, schema in SHARD_KINDS.items()}
    for entry in manifest.shards:
        files = entry.files.items()
        paths = {kind: Path(folder) / file_name(kind, entry.number) for kind, _ in files}
        tables = {kind: read_shard(paths[kind], kind, file, record) for kind, file in files}
        yield Table(record=record, **{**empty, **tables})
    if not manifest.shards:
        yield Table(record=record, **empty)


def export_run(
    folder: str | os.PathLike[str], path: str | os.PathLike[str], *, limit: float | None = None, whole: bool = False
) -> Path:
    """`Table.export` of a run folder of any length: one shard at a time is held, but for a model card."""
    if Path(path).suffix.lower() == CARD:
        return read_table(folder).export(path, limit=limit)
    check_share("limit", limit)
    run = open_run(Path(folder))  # once: another process may add to it meanwhile
    max_points = MOST_READ // max(1, len(run[0].scores))
    label = None if whole else read_table(folder, max_points, images=False, opened=run).representative(limit)
    return export(
        lambda: (shard.all_columns(limit, whole=whole, label=label) for shard in read_shards(folder, run)),
        Path(path),
        whole=whole,
    )


def _drawn(points: pa.Table, share: float, point: str | None) -> pa.Array:
    """Return the ids of a share of the points, whose row, mixed as by SplitMix64, is below it; and of `point`."""
    rows = points["row"]
    mixed = (rows.to_numpy().astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    drawn = mixed < share * 2.0**64
    if point is not None:
        drawn |= (rows.to_numpy() == int(point)) if point.isdecimal() else False
        for column in ("point", "name"):
            drawn |= points[column].to_numpy() == point
    return points["point"].combine_chunks().filter(pa.array(drawn))


def verify(folder: str | os.PathLike[str]) -> list[Fault]:
    """Return the faulty files of a run folder in the order of the manifest, then strays outside it.
    Every shard is read again: size, digest, columns and checksums of pages must be those that were written."""
    folder = Path(folder)
    record, manifest = open_run(folder)
    faults = []
    for kind, name, file in manifest.files:
        try:
            read_shard(folder / name, kind, file, record)
        except (StorageError, ArtefactError) as error:
            faults.append(Fault(name, error.problem if isinstance(error, ShardError) else str(error)))
    problem = "not in the manifest, so no part of the run; what ended the writer left it, and score --resume removes it"
    return faults + [Fault(path.name, problem, stray=True) for path in strays(folder, manifest)]


def open_run(folder: Path) -> tuple[RunRecord, Manifest]:
    """Return the record of a run, which may come from anybody, and its shards; unfinished where some are lost."""
    record, manifest = read_object(folder / RECORD, RunRecord), read_object(folder / MANIFEST, Manifest)
    if sum(entry.account.points for entry in manifest.shards) < record.account.points:
        record = replace(record, finished=None)
    return record, manifest


def read_shard(path: Path, kind: str, file: ShardFile, record: RunRecord) -> pa.Table:
    """Return the rows of a file of a shard, as the record says that they are, read by this thread alone.
    Arrow's own threads may let go of what was read after the read is over; where Python is ending by then, that aborts
    it (https://github.com/apache/arrow/issues/49942). `pq.read_table` starts them whatever it is told."""
    with storage_errors(path):
        if not path.is_file():
            raise ShardError(path, "is missing")
        check_inside(path)
        size = path.stat().st_size
        content = path.read_bytes() if size == file.bytes else b""
    if len(content) != file.bytes:
        raise ShardError(path, f"has {size} bytes, not the {file.bytes} of the manifest")
    if ShardFile.of(content) != file:
        raise ShardError(path, "is not what was written (its sha256 differs)")
    schema = SHARD_KINDS[kind]
    try:
        with PlainFile(content, str(path)) as parquet:
            if not parquet.schema_arrow.equals(schema):
                raise ShardError(path, "has other columns than a run writes, or of other types")
        # A value of many rows is held once: a small file may hold a large one for all rows.
        texts = [field.name for field in schema if field.type in (pa.string(), pa.binary())]
        with PlainFile(content, str(path), texts) as parquet:
            rows = pa.Table.from_batches(list(parquet.batches(ROWS_UNPACKED)), parquet.schema_arrow).cast(schema)
    except ERRORS as error:
        raise ShardError(path, f"cannot be read as Parquet ({first_line(error)})") from error
    problem = problem_of(rows, record.data.input_shape) if "input" in rows.column_names else None
    problem = problem_of_votes(rows) if kind == "scores" else problem
    if problem is not None:
        raise ShardError(path, problem)
    return rows
