"""Texts: the embeddings of their tokens, which vary, beside what a model of texts takes with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from brittle.data.arrays import array_points
from brittle.data.listed import ListedPoints
from brittle.errors import DataError, ParameterError

IDS, MASK, SPECIAL = "input_ids", "attention_mask", "special_tokens_mask"
"""What a tokenizer calls the tokens, which of them exist, and which mark the beginning, the end or padding."""

ROWS = 256
"""Texts that are embedded at a time."""

Tokenizer = Callable[..., Mapping[str, Any]]
"""Such as one of Hugging Face: called with texts, it gives `input_ids` and `attention_mask`."""


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
    given = _tokens(tokenizer, list(texts), length)
    layer = _embedding_of(model)
    special = given.pop(SPECIAL, None)
    ids_of_tokens = given.pop(IDS)
    device = layer.weight.device
    with torch.no_grad():
        parts = [layer(part.to(device)).cpu() for part in ids_of_tokens.split(ROWS)]
    varies = given[MASK] if special is None else given[MASK] * (1 - special)
    varies = torch.where(varies.any(dim=1, keepdim=True), varies, given[MASK])
    largest = float(layer.weight.detach().abs().max())
    embedded = torch.cat(parts)
    largest = max(largest, float(embedded.abs().max()))
    return array_points(
        embedded,
        y,
        ids=ids,
        class_names=class_names,
        bounds=(-largest, largest),
        targets=targets,
        beside=given,
        mask=varies,
    )


def _tokens(tokenizer: Tokenizer, texts: list[str], length: int | None) -> dict[str, Tensor]:
    """What the tokenizer makes of the texts, a row each, in tensors of whole numbers."""
    cut = {} if length is None else {"max_length": length}
    options = {"padding": True, "truncation": True, "return_special_tokens_mask": True, **cut}
    found = {name: torch.as_tensor(value) for name, value in dict(tokenizer(texts, **options)).items()}
    missing = [name for name in (IDS, MASK) if name not in found]
    if missing or any(one.dim() != 2 or len(one) != len(texts) for one in found.values()):
        shapes = {name: tuple(one.shape) for name, one in found.items()}
        raise DataError(
            "texts", f"the tokenizer gave {shapes} for {len(texts)} texts; expected {IDS} and {MASK}, a row for each"
        )
    return found


def _embedding_of(model: nn.Module) -> nn.Embedding:
    """The layer that embeds tokens.

    Raises:
        ParameterError: the model names none.
    """
    ask = getattr(model, "get_input_embeddings", None)
    layer = ask() if callable(ask) else None
    if not isinstance(layer, nn.Embedding):
        raise ParameterError(
            "model",
            f"{type(model).__name__} has no get_input_embeddings() that gives a torch.nn.Embedding; make the "
            f"embeddings yourself and give them to brittle.data.array_points(x, beside=..., mask=...)",
        )
    return layer
