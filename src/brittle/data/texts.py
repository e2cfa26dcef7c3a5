"""Texts: the embeddings of their tokens, which vary, beside what a model of texts takes with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
from torch import nn

from brittle.data.arrays import array_points
from brittle.data.files import path_text
from brittle.data.labels import SHOWN_COLUMNS, find_column
from brittle.data.parquet import is_parquet, is_text
from brittle.data.points import InputChunk, ListedPoints, RowIds
from brittle.data.reading import Reading
from brittle.data.tables import (
    DataTable,
    Roles,
    answers_in,
    column_record,
    find_roles,
    is_csv,
    is_number,
    open_table,
    read_cells,
)
from brittle.errors import DataError, ParameterError, listed
from brittle.model.texts import TextForm, Tokenizer, Tokens

LONGEST_NAME = 120
"""Characters of a text by which a run calls its point."""


def text_points(
    texts: Sequence[str],
    y: Any = None,
    *,
    tokenizer: Tokenizer,
    model: nn.Module,
    length: int | None = None,
    ids: Sequence[Any] | None = None,
    class_names: Sequence[str] | None = None,
    targets: bool = False,
) -> ListedPoints:
    """Texts as points: the embeddings of their tokens vary, `[T, E]`, and what else the tokenizer gives rides along.

    Padding and the tokens that mark the beginning and the end do not vary. The classifier takes the embeddings as
    `inputs_embeds`, in bounds that hold them all:

        points = brittle.data.text_points(texts, labels, tokenizer=tokenizer, model=model)
        classifier = brittle.Classifier(model, bounds=points.bounds, perturb="inputs_embeds")

    Args:
        texts: one for each point.
        y: class index of each, or None; with `targets` as for `array_points`.
        tokenizer: of the model, as Hugging Face has them.
        model: its `get_input_embeddings()` is the layer that embeds tokens.
        length: most tokens of a text; longer ones are cut off. By default what the tokenizer allows.
        ids: id of each text; its position by default.
        class_names: names of the classes in the order of their index.
        targets: whether `y` holds several labels or numbers.

    Raises:
        DataError: there are no texts, one is no text, or the tokenizer gives other things than tokens.
        ParameterError: the model does not say how it embeds tokens.
    """
    odd = next((row for row, text in enumerate(texts) if not isinstance(text, str)), None)
    if isinstance(texts, str) or odd is not None or not len(texts):
        found = repr(texts)[:60] if odd is None else f"{texts[odd]!r:.60} in place {odd}"
        raise DataError("texts", f"expected a list of texts; found {found}")
    form = TextForm(model, tokenizer, length)
    tokens = form.tokens(texts)
    embedded = form.embed(tokens.ids)
    largest = max(float(form.layer.weight.detach().abs().max()), float(embedded.abs().max()))
    return array_points(
        embedded,
        y,
        ids=ids,
        class_names=class_names,
        bounds=(-largest, largest),
        targets=targets,
        extra_inputs=tokens.extra_inputs,
        mask=tokens.varies,
    )


def is_text_table(path: Path) -> bool:
    """Whether `path` is a file of a table, or Parquet."""
    return is_csv(path) or is_parquet(path)


def read_texts(path: Path, reading: Reading) -> ListedPoints:
    """The rows of a table of texts as points: a text becomes the embeddings of its tokens, `[T, E]`.

    The texts stand in the column `reading.text_column`, or in the only one of text that holds neither labels nor ids;
    other columns are left out. Embeddings are computed when they are read, a batch at a time. A point is called by the
    beginning of its text.
    """
    form = reading.texts
    if form is None:
        raise ParameterError(
            f"{path_text(path)} is read as texts, which become points by a tokenizer; name a folder of a Hugging Face "
            "classifier of texts for MODEL, or in Python use brittle.data.text_points"
        )
    table = open_table(path, reading)
    table = replace(table, chunks=list(table.chunks))
    roles = find_roles(table, reading)
    roles = replace(roles, features=(), text=_text_column(table, roles, reading.text_column))
    column = table.name(roles.text or 0)
    cells = read_cells(table, roles)
    answers = answers_in(table, roles, cells)
    texts = cells.texts[: reading.limit]
    for row, text in enumerate(texts):
        if text is None or not text.strip():
            raise DataError(
                "columns",
                f"{table.place(row)}, column {column!r:.60} of {table.where} holds no text; leave the row out",
            )
    tokens = form.tokens(texts)
    form.check(tokens)
    known = {
        "text_column": column,
        "beside": sorted(tokens.extra_inputs),
        "masked": True,
        "cut_texts": sum(length > tokens.ids.shape[1] for length in form.lengths(texts)),
    }
    return replace(reading, bounds=form.bounds).points(
        table.record | column_record(table, roles) | known | dict(form.facts),
        cells.ids or RowIds(len(cells.texts)),
        partial(_chunks, form, tokens),
        names=list(map(_name, texts)),
        **answers,
    )


def _chunks(form: TextForm, tokens: Tokens, size: int, start: int) -> Iterator[InputChunk]:
    """The embeddings of the texts from `start`, `size` at a time, with what the model takes beside them."""
    for first in range(start, len(tokens.ids), size):
        rows = tokens.rows(first, first + size)
        inputs = form.embed(rows.ids)
        yield InputChunk(inputs, extra_inputs=form.extra_inputs(rows, inputs))


def _name(text: str) -> str:
    """The beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_NAME else line[: LONGEST_NAME - 1] + "…"


def _text_column(table: DataTable, roles: Roles, asked: str | None) -> int:
    """The place of the column with the texts: the one that was named, or the only one of text."""
    text = [place for place in roles.features if _holds_text(table, place)]
    there = listed([repr(table.name(at)) for at in (text or roles.features)], SHOWN_COLUMNS)
    option = "--text-column (text_column=)"
    if asked is None:
        if len(text) == 1:
            return text[0]
        what = "several columns of text" if text else "no column of text beside labels and ids"
        labels = "" if roles.answers or not text else ", and the one with the labels with --label-column"
        raise ParameterError(f"{table.where} has {what} ({there}); name the one to score with {option}{labels}")
    place = find_column(table.names, table.width, asked, table.where, option)
    if place not in roles.features:
        raise ParameterError(
            f"the column {asked!r:.60} of {table.where} holds the labels or the ids; name one of {there} with {option}"
        )
    if table.schema is not None and place not in text:
        kind = table.schema.field(place).type
        raise DataError(
            "columns", f"the column {table.name(place)!r:.60} of {table.where} has type {kind}; expected text"
        )
    return place


def _holds_text(table: DataTable, place: int) -> bool:
    """Whether a column holds text; in a text file one whose cells are not all numbers or empty."""
    if table.schema is not None:
        kind = table.schema.field(place).type
        return is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)
    cells = chain.from_iterable(columns[place] for columns in table.chunks)
    return not all(is_number(cell) or not cell.strip() for cell in cells)
