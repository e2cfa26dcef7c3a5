"""Texts: the embeddings of their tokens, which vary, beside what a model of texts takes with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from brittle.data.arrays import array_points
from brittle.data.listed import ListedPoints
from brittle.errors import DataError
from brittle.model.texts import TextForm, Tokenizer


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
        beside=tokens.beside,
        mask=tokens.varies,
    )
