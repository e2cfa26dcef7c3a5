"""A run folder is read without trust: nothing in it is run, and what is damaged is named."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa

from brittle.errors import ArtefactError, StorageError
from brittle.store.inputs import problem_of
from brittle.store.record import RunRecord, check_present, read_record
from brittle.store.schemas import KINDS
from brittle.store.shards import (
    MANIFEST,
    RECORD,
    Fault,
    Manifest,
    ShardError,
    ShardFile,
    check_files,
    decode,
    read_bytes,
    read_manifest,
    strays,
)
from brittle.store.table import Table


def read_table(folder: str | os.PathLike[str]) -> Table:
    """Read a run folder, which may come from anybody; nothing in it is run.

    Raises:
        StorageError: the folder holds no run, was written in another format, or a shard is missing or damaged.
        ArtefactError: a file leads out of the folder, or a shard has an extension type.
    """
    folder = Path(folder)
    record, manifest = open_run(folder)
    tables: dict[str, list[pa.Table]] = {kind: [] for kind in KINDS}
    for kind, file in manifest.files:
        tables[kind].append(read_shard(folder, kind, file, record))
    parts = {
        kind: pa.concat_tables(tables[kind]) if tables[kind] else schema.empty_table() for kind, schema in KINDS.items()
    }
    return Table(record=record, **parts)


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
    record, manifest = open_run(folder)
    faults = []
    for kind, file in manifest.files:
        try:
            read_shard(folder, kind, file, record)
        except ShardError as error:
            faults.append(Fault(file.file, error.problem))
        except (StorageError, ArtefactError) as error:
            faults.append(Fault(file.file, str(error)))
    return faults + strays(folder, (file for _, file in manifest.files))


def read_shard(folder: Path, kind: str, file: ShardFile, record: RunRecord) -> pa.Table:
    """The rows of a file of a shard; the inputs that they hold are such as the record says.

    Raises:
        ArtefactError: it leads out of the folder, has an extension type, or unpacks to far more than it holds.
        ShardError: it is not what was written, or not what a run writes.
        StorageError: it cannot be read.
    """
    path = folder / file.file
    rows = decode(read_bytes(folder, file), KINDS[kind], path)
    problem = problem_of(rows, record.data.input_shape) if "input" in rows.column_names else None
    if problem is not None:
        raise ShardError(path, problem)
    return rows


def open_run(folder: Path) -> tuple[RunRecord, Manifest]:
    """The record of a run, which may come from anybody, and the shards that exist.

    Raises:
        StorageError: there is no run, or `run.json` or `manifest.json` is not what a run writes.
        ArtefactError: the manifest leads out of the folder.
    """
    for name in (RECORD, MANIFEST):
        check_present(folder / name)
    record, manifest = read_record(folder / RECORD), read_manifest(folder / MANIFEST)
    check_files(manifest, folder / MANIFEST)
    return record, manifest
