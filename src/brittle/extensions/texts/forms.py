"""Inputs of models from texts: embeddings of tokens, or codes of characters."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from brittle.decisions.function_code import code_digest
from brittle.errors import DataError, ModelError, ParameterError
from brittle.model.arrays import ArrayModel, Estimator, as_tensor
from brittle.model.evaluation_mode import evaluating
from brittle.model.inputs import ExtraInputs

IDS, MASK, SPECIAL, EMBEDDINGS = "input_ids", "attention_mask", "special_tokens_mask", "inputs_embeds"
"""A tokenizer's names of the tokens, of the mask of existing ones and of the mask of marks (beginning, end, padding);
and the argument of a model for embeddings in the place of tokens."""

PLACES = "position_ids"  # the argument of a model for the position of each token in its text
ROWS = 256  # texts, or tokens of the vocabulary times 16, that are embedded at a time
COMPARED = 4  # texts whose logits are computed from their tokens, too

AGREES = 1e-3
"""Largest difference allowed between these logits, relative to the largest of them or to 1, whichever is larger; of
the two places for padding the one with the smaller difference is used."""

Tokenizer = Callable[..., Mapping[str, Any]]
"""A tokenizer in the style of Hugging Face: called with texts, it gives `input_ids` and `attention_mask`."""


@dataclass(frozen=True)
class Tokens:
    """Texts as a tokenizer reads them, all as long as the longest.

    `ids` and each of `extra_inputs`, the attention mask among them, are `[N, T]`. `varies`, `[N, T]`, is 1 for the
    tokens that may vary: neither padding nor marks of the beginning and the end; in a text of marks alone, the marks.
    """

    ids: Tensor
    extra_inputs: Mapping[str, Tensor]
    varies: Tensor

    def rows(self, start: int, stop: int) -> Tokens:
        part = slice(start, stop)
        extra_inputs = {name: tensor[part] for name, tensor in self.extra_inputs.items()}
        return Tokens(self.ids[part], extra_inputs, self.varies[part])


@dataclass(frozen=True)
class TextForm:
    """The way from texts to inputs of a model.

    `length` is the most tokens of a text; longer texts are cut, and None leaves that to the tokenizer. `facts` are
    fields of `brittle.store.record.DataRecord`. If `ends_last`, padding stands before a text, so that its last token is
    the last of the row: decoders such as GPT and Llama decide there, and cannot find it among embeddings.
    """

    model: nn.Module = field(repr=False)
    tokenizer: Tokenizer = field(repr=False)
    length: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    ends_last: bool = False

    perturb: ClassVar[str] = EMBEDDINGS

    @property
    def words(self) -> str:
        length = "any length" if self.length is None else f"at most {self.length:,} tokens"
        return f"texts of {length} ({self.facts.get('tokenizer')})"

    def fit(self, texts: Sequence[str]) -> tuple[TextForm, Tokens]:
        """Return the form in which embeddings get the logits of their tokens, and the tokens of these texts in it."""
        forms = self, replace(self, ends_last=not self.ends_last)
        candidates = [(form, form.tokens(texts)) for form in forms]
        differences = [form._find_difference(tokens) for form, tokens in candidates]
        best = min(range(len(forms)), key=lambda place: differences[place][1])
        row, difference = differences[best]
        if difference <= AGREES:
            return candidates[best]
        raise ModelError(
            "texts",
            f"the outputs of {type(self.model).__name__} for text {row} differ by {difference:.3g} of their size from "
            f"tokens alone and from embeddings beside longer texts; noise on embeddings tells nothing of such a model",
        )

    def tokens(self, texts: Sequence[str]) -> Tokens:
        cut = {} if self.length is None else {"max_length": self.length}
        options = {"padding": True, "truncation": True, "return_special_tokens_mask": True, **cut}
        fields = {name: torch.as_tensor(value) for name, value in dict(self.tokenizer(list(texts), **options)).items()}
        missing = [name for name in (IDS, MASK) if name not in fields]
        if missing or any(tensor.dim() != 2 or len(tensor) != len(texts) for tensor in fields.values()):
            shapes = {name: tuple(tensor.shape) for name, tensor in fields.items()}
            raise DataError(
                "texts",
                f"the tokenizer gave {shapes} for {len(texts)} texts; expected {IDS} and {MASK}, a row for each",
            )
        if not fields[MASK].shape[1]:
            padding = getattr(self.tokenizer, "pad_token_id", None) or 0
            shape = (len(texts), 1)
            fields = {name: tensor.new_full(shape, padding * (name == IDS)) for name, tensor in fields.items()}
        fields[MASK][~fields[MASK].any(dim=1), 0] = 1  # a text without tokens is read as one padding token
        if self.ends_last:
            order = fields[MASK].argsort(dim=1, stable=True)
            fields = {name: tensor.gather(1, order) for name, tensor in fields.items()}
            if PLACES in inspect.signature(self.model.forward).parameters:
                fields[PLACES] = (fields[MASK].cumsum(dim=1) - 1).clamp_min(0)
        special, ids = fields.pop(SPECIAL, None), fields.pop(IDS)
        varies = fields[MASK] if special is None else fields[MASK] * (1 - special)
        varies = torch.where(varies.any(dim=1, keepdim=True), varies, fields[MASK])
        arguments = inspect.signature(self.model.forward).parameters
        takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in arguments.values())
        return Tokens(ids, {name: tensor for name, tensor in fields.items() if takes_any or name in arguments}, varies)

    def logits(self, texts: Sequence[str]) -> Tensor:
        """Return the logits of the tokens of texts, `[N, C]`: texts of equal length together, without padding."""
        tokens, device = self.tokens(texts), self.layer.weight.device
        is_token, logits_by_row = tokens.extra_inputs[MASK] != 0, dict[int, Tensor]()
        lengths = is_token.sum(dim=1)
        for length in lengths.unique().tolist():
            rows = (lengths == length).nonzero().flatten()

            def select(tensor: Tensor, rows: Tensor = rows, length: int = length) -> Tensor:
                return tensor[rows][is_token[rows]].view(len(rows), length).to(device)

            extra_inputs = {name: select(tensor) for name, tensor in tokens.extra_inputs.items()}
            logits = _logits(self.model(**{IDS: select(tokens.ids)}, **extra_inputs))
            logits_by_row |= zip(rows.tolist(), logits, strict=True)
        return torch.stack([logits_by_row[row] for row in range(len(texts))])

    def of_characters(self, digest: str | None = None) -> TextFunction:
        """Return the model as a function of texts, for noise on characters; `digest` is that of its weights."""
        return TextFunction(self.logits, digest, self.facts)

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of the uncut texts, with the marks of their beginning and end."""
        return list(map(len, self.tokenizer(list(texts), truncation=False, verbose=False)[IDS]))

    @cached_property
    def layer(self) -> nn.Embedding:
        ask = getattr(self.model, "get_input_embeddings", None)
        layer = ask() if callable(ask) else None
        if not isinstance(layer, nn.Embedding):
            raise ParameterError(
                f"{type(self.model).__name__} has no get_input_embeddings() that gives a torch.nn.Embedding; make the "
                f"embeddings yourself and give them to brittle.data.array_points(x, extra_inputs=..., mask=...)"
            )
        return layer

    def embed(self, ids: Tensor) -> Tensor:
        """Return embeddings `[N, T, E]` of tokens `[N, T]`, on the CPU."""
        with torch.no_grad():
            return torch.cat([self.layer(part.to(self.layer.weight.device)).cpu() for part in ids.split(ROWS)])

    def extra_inputs(self, tokens: Tokens, inputs: Tensor) -> ExtraInputs:
        return ExtraInputs(None, tokens.extra_inputs, tokens.varies[:, :, None] != 0, inputs)

    @cached_property
    def vocabulary(self) -> Tensor:
        """The embeddings of all tokens, `[V, E]`."""
        count = self.layer.num_embeddings
        return torch.cat([self.embed(part[None])[0] for part in torch.arange(count).split(16 * ROWS)])

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest value of an input: the largest absolute value of an embedding, with both signs."""
        largest = float(self.vocabulary.abs().max())
        return -largest, largest

    @property
    def mask_vector(self) -> Tensor:
        """The embedding of the mask token, `[E]`."""
        place = getattr(self.tokenizer, "mask_token_id", None)
        if place is None:
            raise ParameterError("the tokenizer has no mask token; use --noise token-dropout:0.2 instead")
        return self.vocabulary[place]

    def _find_difference(self, tokens: Tokens) -> tuple[int, float]:
        """Return the text, among the shortest, whose logits from embeddings in a batch differ most from those of its
        tokens alone, and the difference relative to the largest of them, at least 1."""
        device = self.layer.weight.device
        shortest = tokens.extra_inputs[MASK].sum(dim=1).argsort(stable=True)[:COMPARED]
        ids = tokens.ids[shortest].to(device)
        extra_inputs = {name: tensor[shortest].to(device) for name, tensor in tokens.extra_inputs.items()}
        largest = 0, -1.0
        with evaluating(self.model, device), torch.no_grad():
            together = _logits(self.model(**{EMBEDDINGS: self.layer(ids)}, **extra_inputs))
            for row, text in enumerate(shortest.tolist()):
                is_token = extra_inputs[MASK][row] != 0
                row_inputs = {name: tensor[row, is_token][None] for name, tensor in extra_inputs.items()}
                alone = _logits(self.model(**{IDS: ids[row, is_token][None]}, **row_inputs))[0]
                difference = float((alone - together[row]).abs().max()) / max(1.0, float(alone.abs().max()))
                if not difference <= largest[1]:
                    largest = text, math.inf if math.isnan(difference) else difference
        return largest


def _logits(output: Any) -> Tensor:
    return output["logits"] if isinstance(output, Mapping) else getattr(output, "logits", output)


class TextFunction(ArrayModel):
    """A function of texts as a model: its inputs are codes of characters, `[B, L]`, 0 behind the end of a text.

    For noise on characters, and for classifiers without embeddings: a prompted model, a rule. It runs forward only.

        classifier = brittle.Classifier(TextFunction(judge), bounds=None)
        table = brittle.score(classifier, brittle.data.text_points(texts, y), "monte_carlo", noise=Edits("typos", 0.05))

    Args:
        function: maps a list of texts to class scores, `[B, C]`, a tensor or an array; at most `CALLED` at a time.
        digest: digest of its parameters, so that no run goes on with another; by default of its code.
        facts: fields of the run's record about the reading of texts.
    """

    reads_texts = True

    def __init__(
        self, function: Callable[[list[str]], Any], digest: str | None = None, facts: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(function)
        self.digest, self.facts = digest or code_digest(function), dict(facts or {})

    def __call__(self, inputs: Tensor) -> Tensor:
        """Return class scores `[B, C]` of `inputs`, `[B, L]`, on their device."""
        texts = [text_of(row) for row in inputs.detach().cpu()]
        different = list(dict.fromkeys(texts))
        with torch.no_grad():
            parts = [
                as_tensor(self.function(different[start : start + CALLED]), inputs.device)
                for start in range(0, len(different), CALLED)
            ]
        place = {text: row for row, text in enumerate(different)}
        if sum(map(len, parts)) != len(different):
            raise ValueError(f"{len(different)} texts got scores of {sum(map(len, parts))}")
        return torch.cat(parts)[[place[text] for text in texts]]


class TextEstimator(Estimator):
    """A fitted classifier of scikit-learn that reads texts, such as a pipeline that begins with a `TfidfVectorizer`, as
    a model of codes of characters, `[B, L]`.

        classifier = brittle.Classifier(TextEstimator(pipeline), bounds=None)
        table = brittle.score(classifier, brittle.data.text_points(texts, y), "monte_carlo", noise=Edits("typos", 0.05))
    """

    reads_texts = True
    facts: ClassVar[Mapping[str, Any]] = {}

    def as_rows(self, inputs: np.ndarray) -> np.ndarray:
        return np.array([text_of(torch.from_numpy(row)) for row in inputs], dtype=object)


CALLED = 64  # largest number of texts in a call of the function
ROOM = 256  # characters that a copy may have beyond twice the longest text


def codes_of(texts: Sequence[str], length: int | None = None) -> Tensor:
    """Return the codes of the characters of texts, `[N, L]`, float32; 0 behind their ends. Texts may not hold the
    character of code 0. By default `L` leaves room for longer copies."""
    longest = max(map(len, texts), default=0)
    length = 2 * longest + ROOM if length is None else length
    if longest > length or any("\0" in text for text in texts):
        fault = f"has {longest:,} characters, more than the limit of {length:,}" if longest > length else "holds a NUL"
        raise DataError("texts", f"a text {fault}; shorten it, or leave it out")
    codes = torch.zeros(len(texts), length, dtype=torch.float32)
    for row, text in enumerate(texts):
        codes[row, : len(text)] = torch.tensor([ord(character) for character in text], dtype=torch.float32)
    return codes


def text_of(codes: Tensor) -> str:
    """Return the text with these codes, `[L]`."""
    return "".join(chr(int(code)) for code in codes.tolist() if code > 0)
