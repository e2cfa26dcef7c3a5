"""Made-up runs with texts hostile to the page in every field."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pyarrow as pa
from helpers.pages import storable
from helpers.tables import HOSTILE

from brittle.estimate import parameters_json
from brittle.store.record import RunRecord
from brittle.store.schemas import POINTS, SCORES
from brittle.store.table import Table


def poisoned_run(table: Table, start: int = 0) -> Table:
    """Return `table` with hostile text in every field that does not identify its scores."""
    return Table(
        poisoned_points(table.points, start), table.scores, poisoned_record(table.record, start), table.counterexamples
    )


def poisoned_scores(table: Table) -> Table:
    """Return `table` with hostile names of scores (but for `monte_carlo`), noise families and statuses."""
    rows, entries = table.long(), []
    for number, entry in enumerate(table.record.scores):
        hostile = storable(HOSTILE[number])
        parameters = {**entry.parameters, "noise": storable(HOSTILE[number + 3]), HOSTILE[0]: HOSTILE[number]}
        of_entry = (rows["score"] == entry.score) & (rows["parameters"] == parameters_json(entry.parameters))
        score = entry.score if entry.score == "monte_carlo" else hostile
        rows.loc[of_entry, "score"] = score
        rows.loc[of_entry, "parameters"] = parameters_json(parameters)
        entries.append(replace(entry, score=score, parameters=parameters, label=hostile, title=hostile))
    rows.loc[::5, "status"] = "<script>"
    scores = pa.Table.from_pandas(rows, schema=SCORES, preserve_index=False)
    return Table(table.points, scores, replace(table.record, scores=tuple(entries)))


def poisoned(value: Any, texts: Iterator[str]) -> Any:
    """Return `value` with every text in it replaced by the next of `texts`."""
    if isinstance(value, str):
        return next(texts)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: poisoned(getattr(value, field.name), texts) for field in fields(value)})
    if isinstance(value, Mapping):
        return {key: poisoned(inner, texts) for key, inner in value.items()}
    return tuple(poisoned(inner, texts) for inner in value) if isinstance(value, tuple) else value


def poisoned_record(record: RunRecord, start: int) -> RunRecord:
    """Return a record with hostile text in every field that does not identify its scores."""
    hostile = poisoned(record, itertools.cycle(HOSTILE[start:] + HOSTILE[:start]))
    scores = tuple(
        replace(
            entry,
            score=original.score,
            parameters=original.parameters,
            quantity=original.quantity,
            safer=original.safer,
        )
        for original, entry in zip(record.scores, hostile.scores, strict=True)
    )
    return replace(hostile, scores=scores, data=replace(hostile.data, class_names=record.data.class_names))


def poisoned_points(points: pa.Table, start: int) -> pa.Table:
    """Return points with hostile names and details; some with hostile image bytes."""
    rows = points.to_pylist()
    for number, row in enumerate(rows):
        row["name"] = storable(HOSTILE[(start + number) % len(HOSTILE)])
        row["detail"] = storable(HOSTILE[(start + 2 * number) % len(HOSTILE)])
        if number % 7 == 0:
            row["image"] = b"<svg onload=alert(1)>"
        if number % 11 == 0:
            row["status"] = "tie"
    return pa.Table.from_pylist(rows, schema=POINTS)
