"""Texts as points: embeddings of tokens with the other inputs of the model, or codes of characters."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from torch import nn

from brittle.data.arrays import array_points
from brittle.data.arrow import Sheet, is_number, is_table, open_table
from brittle.data.files import path_text
from brittle.data.points import InputRows, ListedPoints
from brittle.data.reading import Format, Reading
from brittle.data.tables import Roles, answers_in, find_column, find_roles, ids_in, is_text
from brittle.errors import DataError, ParameterError, listed
from brittle.extensions.texts.forms import TextEstimator, TextForm, TextFunction, Tokenizer, Tokens, codes_of


def text_points(
    texts: Sequence[str],
    y: Any = None,
    *,
    tokenizer: Tokenizer | None = None,
    model: nn.Module | None = None,
    length: int | None = None,
    ids: Sequence[Any] | None = None,
    class_names: Sequence[str] | None = None,
    targets: bool = False,
) -> ListedPoints:
    """Turn texts into points: embeddings of their tokens, `[T, E]`, which vary, and the tokenizer's other outputs.

    Padding and the tokens that mark the beginning and the end do not vary. Padding stands where the model gives the
    same outputs from embeddings as from tokens: behind a text, or before it for decoders such as GPT and Llama. The
    classifier takes the embeddings as `inputs_embeds`, in bounds that hold them all:

        points = brittle.data.text_points(texts, labels, tokenizer=tokenizer, model=model)
        classifier = brittle.Classifier(model, bounds=points.bounds, perturb="inputs_embeds")

    Without tokenizer and model the points are codes of characters, `[L]`, for a `TextFunction`.

    Args:
        texts: one for each point.
        y: class index of each text, or None; with `targets` as in `array_points`.
        tokenizer: tokenizer of the model, as Hugging Face has them.
        model: its `get_input_embeddings()` is the layer that embeds tokens.
        length: most tokens of a text; longer texts are cut. By default the tokenizer's limit.
        ids: id of each text; by default its position.
        class_names: names of the classes in the order of their index.
        targets: whether `y` holds several labels or numbers.

    Raises:
        DataError: there are no texts, an entry is not a text, or the tokenizer does not give tokens.
        ModelError: the model gives other outputs from the embeddings than from the tokens.
        ParameterError: the model has no embedding layer, or tokenizer or model is missing.
    """
    odd = next((row for row, text in enumerate(texts) if not isinstance(text, str)), None)
    if isinstance(texts, str) or odd is not None or not len(texts):
        description = repr(texts)[:60] if odd is None else f"{texts[odd]!r:.60} in place {odd}"
        raise DataError("texts", f"expected a list of texts; found {description}")
    options: dict[str, Any] = {"ids": ids, "class_names": class_names, "targets": targets}
    if tokenizer is None and model is None:
        return array_points(codes_of(texts), y, bounds=None, **options)
    if tokenizer is None or model is None:
        raise ParameterError("tokens need a tokenizer and its model; give both, or neither to change characters")
    form, tokens = TextForm(model, tokenizer, length).fit(texts)
    extra_inputs, mask = tokens.extra_inputs, tokens.varies
    return array_points(form.embed(tokens.ids), y, bounds=form.bounds, extra_inputs=extra_inputs, mask=mask, **options)


def read_texts(path: Path, reading: Reading) -> ListedPoints:
    """Read the rows of a table of texts as points: a text becomes the embeddings of its tokens, `[T, E]`.

    The texts stand in the column `reading.text_column`, or in the only text column that holds neither labels nor ids;
    other columns are left out. Embeddings are computed when they are read. The name of a point is its text.
    """
    form = reading.texts
    if form is None:
        raise ParameterError(
            f"{path_text(path)} is read as texts, which become points by a tokenizer; name a folder of a Hugging Face "
            "classifier of texts for MODEL, or in Python use brittle.data.text_points"
        )
    table = open_table(path, reading)
    roles = find_roles(table, reading)
    cells = table.read(table.schema.names)
    column = _text_column(table, cells, roles, reading.text_column)
    texts = cells[column].to_pylist()[: reading.limit]
    odd = next((row for row, text in enumerate(texts) if text is None or not text.strip()), None)
    if odd is not None:
        raise DataError("columns", f"row {odd}, column {column!r:.60} of {table.source} holds no text; leave it out")
    facts: dict[str, Any] = {"text_column": column, "columns": [column, *roles.columns]}
    if isinstance(form, TextFunction | TextEstimator):
        bounds, read = None, partial(_read_codes, texts, codes_of([max(texts, key=len)]).shape[1])
    else:
        form, tokens = form.fit(texts)
        cut = sum(length > tokens.ids.shape[1] for length in form.lengths(texts))
        facts |= {"extra_inputs": sorted(tokens.extra_inputs), "masked": True, "cut_texts": cut}
        bounds, read = form.bounds, partial(_read, form, tokens)
    return replace(reading, bounds=bounds).points(
        table.record | roles.record | facts | dict(form.facts),
        ids_in(cells, roles, table),
        read,
        names=texts,
        **answers_in(cells, roles, table, reading),
    )


def _read(form: TextForm, tokens: Tokens, start: int, stop: int) -> InputRows:
    rows = tokens.rows(start, stop)
    inputs = form.embed(rows.ids)
    return InputRows(inputs, extra_inputs=form.extra_inputs(rows, inputs))


def _read_codes(texts: Sequence[str], length: int, start: int, stop: int) -> InputRows:
    return InputRows(codes_of(texts[start:stop], length))


def _text_column(table: Sheet, cells: pa.Table, roles: Roles, column_name: str | None) -> str:
    """Return the column with the texts: `column_name`, or the only one of text."""
    text, option = [name for name in roles.features if _holds_text(cells[name])], "--text-column (text_column=)"
    column = None if column_name is None else find_column(table, column_name, option)
    if column not in text and (column_name is not None or len(text) != 1):
        names = listed(list(map(repr, text or roles.features)))
        labels = "" if roles.answers or not text else ", and the one with the labels with --label-column"
        why = f"{len(text)} columns of text ({names})" if column is None else f"no text in {column!r:.60} ({names} do)"
        raise ParameterError(f"{table.source} has {why}; name the one to score with {option}{labels}")
    return column or text[0]


def _holds_text(column: pa.ChunkedArray) -> bool:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return is_text(kind) and not all(not cell or not cell.strip() or is_number(cell) for cell in column.to_pylist())


TEXTS = Format(
    "texts", "a table with a column of texts", is_table, read_texts, frozenset({"label_column", "text_column"}),
    rank=5, in_parts=True,
)  # fmt: skip
