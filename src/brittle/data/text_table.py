"""Texts in tables, for models that read texts: which column holds them, and the points that its rows are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from brittle.data.csv_file import csv_rows, is_csv, is_number, row_cells
from brittle.data.feature_parquet import parquet_batches, parquet_cells, parquet_schema
from brittle.data.files import file_digest, files_digest, path_text
from brittle.data.listed import InputChunk, ListedPoints, RowIds
from brittle.data.options import ReadingOptions
from brittle.data.parquet import ROWS, class_names_of, is_parquet, is_text, open_parquet, split_files
from brittle.data.tabular import LABEL_NAMES, SHOWN, Cells, Roles, find_place, find_roles, right_of
from brittle.errors import DataError, ParameterError, listed
from brittle.model.texts import TextForm, Tokens

LONGEST_NAME = 120
"""Characters of a text by which a run calls its point."""


@dataclass(frozen=True)
class _Table:
    """Rows of a table of texts.

    Attributes:
        texts: of each row, or None where the cell is empty.
        cells: labels, numbers that are right and ids.
        roles: of the columns, without that of the texts.
        column: what the column of the texts is called.
        class_names: of the labels, where the file declares them.
        provenance: of the file.
    """

    texts: Sequence[str | None]
    cells: Cells
    roles: Roles
    column: str
    class_names: tuple[str, ...] | None
    provenance: dict[str, Any]


def is_text_table(path: Path) -> bool:
    """Whether `path` is a file of a table, or Parquet."""
    return is_csv(path) or is_parquet(path)


def read_texts(path: Path, options: ReadingOptions) -> ListedPoints:
    """The rows of a table of texts as points: a text becomes the embeddings of its tokens, `[T, E]`.

    The texts stand in the column `options.text_column`, or in the only one of text that holds neither labels nor ids;
    other columns are left out. Embeddings are computed when they are read, a batch at a time. A point is called by the
    beginning of its text.

    Raises:
        DataError: the file is no such table, or a text or a label is missing; the row is named.
        ParameterError: there is no such column, or several may be it; or no model says how texts become points.
        ModelError: the model reads embeddings otherwise than tokens.
    """
    where, form = path_text(path), options.texts
    if form is None:
        raise ParameterError(
            f"{where} is read as texts, which become points by a tokenizer; name a folder of a Hugging Face classifier "
            f"of texts for MODEL, or in Python use brittle.data.text_points",
        )
    table = _from_csv(path, options, where) if is_csv(path) else _from_parquet(path, options, where)
    texts = _kept(table, options.limit, where)
    right, names = right_of(table.cells, table.roles, where, options)
    known = {
        "split": options.split,
        "points": len(texts),
        "limit": options.limit,
        "label_column": ",".join(map(table.roles.name, table.roles.answers)) or None,
        "text_column": table.column,
    }
    return _points(texts, form, table, right.first(options.limit), names or table.class_names, options, known)


def _points(
    texts: Sequence[str],
    form: TextForm,
    table: _Table,
    right: Any,
    class_names: tuple[str, ...] | None,
    options: ReadingOptions,
    known: dict[str, Any],
) -> ListedPoints:
    tokens = form.tokens(texts)
    form.check(tokens)
    lengths = form.lengths(texts)
    columns = [table.column, *(table.roles.name(at) for at in (*table.roles.answers, table.roles.id) if at is not None)]
    cut = sum(length > tokens.ids.shape[1] for length in lengths)
    told = {"columns": columns, "beside": sorted(tokens.beside), "masked": True, "cut_texts": cut}
    told |= {} if right.targets is None else {"targets": right.targets.shape[1]}
    return ListedPoints(
        ids=RowIds(len(texts)) if table.cells.ids is None else tuple(table.cells.ids[: len(texts)]),
        read=lambda size, start: _chunks(form, tokens, size, start),
        bounds=form.bounds,
        provenance=known | table.provenance | told | dict(form.facts),
        labels=right.labels,
        names=tuple(map(_name, texts)),
        class_names=class_names,
        targets=right.targets,
    )


def _chunks(form: TextForm, tokens: Tokens, size: int, start: int) -> Iterator[InputChunk]:
    """The embeddings of the texts from `start`, `size` at a time, with what a text has beside them."""
    for first in range(start, len(tokens.ids), size):
        rows = tokens.rows(first, first + size)
        inputs = form.embed(rows.ids)
        yield InputChunk(inputs, aside=form.aside(rows, inputs))


def _name(text: str) -> str:
    """The beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_NAME else line[: LONGEST_NAME - 1] + "…"


def _kept(table: _Table, limit: int | None, where: str) -> list[str]:
    """The first texts, none of which is empty."""
    if not len(table.texts):
        raise DataError("empty_dataset", f"{where} holds no rows; expected at least 1")
    texts = table.texts[:limit]
    empty = next((row for row, text in enumerate(texts) if text is None or not text.strip()), None)
    if empty is not None:
        raise DataError(
            "columns",
            f"{table.cells.place(empty)}, column {table.column!r:.60} of {where} holds no text; leave the row out",
        )
    return [text for text in texts if text is not None]


def _from_csv(path: Path, options: ReadingOptions, where: str) -> _Table:
    names, rows = csv_rows(path, options, where)
    width = len(names) if names is not None else len(rows[0][1]) if rows else 0
    roles = find_roles(names, width, options, where)
    short = next((cells for _, cells in rows if len(cells) != width), None)
    text = [
        place
        for place in roles.features
        if short is None and not all(is_number(cells[place]) or not cells[place].strip() for _, cells in rows)
    ]
    column = roles.features[0] if short is not None else _text_column(roles, text, width, options, where)
    cells = row_cells(iter(rows), replace(roles, features=()), width, where)
    provenance = {"format": "texts", "path": where, "sha256": file_digest(path)}
    texts = [row[column] for _, row in rows]
    return _Table(texts, cells, replace(roles, features=()), roles.name(column), None, provenance)


def _from_parquet(path: Path, options: ReadingOptions, where: str) -> _Table:
    if options.header is not None:
        raise ParameterError(f"{where} names its columns itself; leave out --header (header=)")
    files, split = split_files(path, options.split)
    schema = parquet_schema(files)
    declared = class_names_of(schema, where)
    asked = options.label_column
    if asked is None and len(declared) == 1 and not any(name.lower() in LABEL_NAMES for name in schema.names):
        (asked,) = declared
    roles = find_roles(schema.names, len(schema.names), replace(options, label_column=asked), where)
    text = [place for place in roles.features if _holds_text(schema.field(place).type)]
    column = _text_column(roles, text, len(schema.names), options, where)
    if not _holds_text(schema.field(column).type):
        raise DataError(
            "columns",
            f"the column {roles.name(column)!r:.60} of {where} has type {schema.field(column).type}; expected text",
        )
    cells = parquet_cells(parquet_batches(files), replace(roles, features=()), where)
    digest = file_digest(path) if path.is_file() else files_digest(path, files)
    named = [path_text(one.name) for one in files]
    provenance = {"format": "texts", "path": where, "split": split, "sha256": digest, "files": named}
    names = None if roles.label is None else declared.get(schema.names[roles.label])
    texts = _parquet_texts(files, roles.name(column))
    return _Table(texts, cells, replace(roles, features=()), roles.name(column), names, provenance)


def _parquet_texts(files: Sequence[Path], column: str) -> list[str | None]:
    texts: list[str | None] = []
    for file in files:
        with open_parquet(file) as parquet:
            for batch in parquet.batches(ROWS, [column]):
                texts += batch.column(0).to_pylist()
    return texts


def _holds_text(kind: pa.DataType) -> bool:
    return is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)


def _text_column(roles: Roles, text: Sequence[int], width: int, options: ReadingOptions, where: str) -> int:
    """The place of the column with the texts: the one that was named, or the only one of text.

    Raises:
        ParameterError: there is no such column, it holds labels or ids, or none or several hold text.
    """
    asked = options.text_column
    if asked is not None:
        place = find_place(roles.names, width, asked, where, "text_column")
        if place is None or place not in roles.features:
            what = "holds the labels or the ids" if place is not None else "is not there"
            there = listed([repr(roles.name(at)) for at in roles.features], SHOWN)
            raise ParameterError(
                f"the column {asked!r:.60} of {where} {what}; name the one with the texts, of {there}, with "
                f"--text-column (text_column=)",
            )
        return place
    if len(text) == 1:
        return text[0]
    named = listed([repr(roles.name(at)) for at in (text or roles.features)], SHOWN)
    labelled = "" if roles.answers else ", and the one with the labels, if there is one, with --label-column"
    raise ParameterError(
        f"{where} has several columns of text ({named}); name the one to score with --text-column (text_column=)"
        f"{labelled}"
        if text
        else f"{where} has no column of text beside labels and ids (it has {named}); the model reads texts: name their "
        f"column with --text-column (text_column=)",
    )
