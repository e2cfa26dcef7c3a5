"""How texts become inputs of a model: the embeddings of their tokens, or the codes of their characters."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from brittle.decisions.function_code import code_digest
from brittle.errors import DataError, ModelError, ParameterError
from brittle.model.arrays import ArrayModel, as_tensor
from brittle.model.evaluation_mode import evaluating
from brittle.model.inputs import ExtraInputs

IDS, MASK, SPECIAL, EMBEDDINGS = "input_ids", "attention_mask", "special_tokens_mask", "inputs_embeds"
"""What a tokenizer calls the tokens, which of them exist, and which mark the beginning, the end or padding; and the
argument of a model that takes embeddings in the place of tokens."""

PLACES = "position_ids"
"""The argument of a model that says of each token which one it is in its text."""

ROWS = 256
"""Texts, or tokens of the vocabulary times 16, that are embedded at a time."""

COMPARED = 4
"""Texts whose logits are computed from their tokens, too."""

AGREES = 1e-3
"""Most by which these logits may differ, as a share of the largest of them or of 1, whichever is larger; of two places
for padding the one is taken where they differ less."""

Tokenizer = Callable[..., Mapping[str, Any]]
"""Such as one of Hugging Face: called with texts, it gives `input_ids` and `attention_mask`."""


@dataclass(frozen=True)
class Tokens:
    """Texts as a tokenizer reads them, all as long as the longest.

    `ids` and each of `extra_inputs`, the attention mask among them, are `[N, T]`. `varies`, `[N, T]`, is 1 for the
    tokens that may vary: not padding, and no mark of the beginning or the end; where a text has no others, all but
    padding.
    """

    ids: Tensor
    extra_inputs: Mapping[str, Tensor]
    varies: Tensor

    def rows(self, start: int, stop: int) -> Tokens:
        part = slice(start, stop)
        return Tokens(self.ids[part], {name: one[part] for name, one in self.extra_inputs.items()}, self.varies[part])


@dataclass(frozen=True)
class TextForm:
    """How texts become inputs of a model.

    `length` is the most tokens of a text; longer ones are cut, and None leaves that to the tokenizer. `facts` are
    fields of `brittle.store.record.DataRecord`. Where it `ends_last`, padding stands before a text, so that its last
    token is the last of the row: decoders such as GPT and Llama decide there, and do not find it among embeddings.
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

    def fitted(self, texts: Sequence[str]) -> tuple[TextForm, Tokens]:
        """The form in which embeddings of these texts get the logits of their tokens, and the texts in it."""
        forms = self, replace(self, ends_last=not self.ends_last)
        found = [(form, form.tokens(texts)) for form in forms]
        apart = [form._apart(tokens) for form, tokens in found]
        nearer = min(range(len(forms)), key=lambda place: apart[place][1])
        row, by = apart[nearer]
        if by <= AGREES:
            return found[nearer]
        raise ModelError(
            "texts",
            f"the outputs of {type(self.model).__name__} for text {row} differ by {by:.3g} of their size between its "
            f"tokens alone and their embeddings beside longer texts; noise on embeddings says nothing of such a model",
        )

    def tokens(self, texts: Sequence[str]) -> Tokens:
        """What the tokenizer makes of texts."""
        cut = {} if self.length is None else {"max_length": self.length}
        options = {"padding": True, "truncation": True, "return_special_tokens_mask": True, **cut}
        found = {name: torch.as_tensor(value) for name, value in dict(self.tokenizer(list(texts), **options)).items()}
        missing = [name for name in (IDS, MASK) if name not in found]
        if missing or any(one.dim() != 2 or len(one) != len(texts) for one in found.values()):
            shapes = {name: tuple(one.shape) for name, one in found.items()}
            raise DataError(
                "texts",
                f"the tokenizer gave {shapes} for {len(texts)} texts; expected {IDS} and {MASK}, a row for each",
            )
        if not found[MASK].shape[1]:
            padding = getattr(self.tokenizer, "pad_token_id", None) or 0
            found = {name: one.new_full((len(texts), 1), padding * (name == IDS)) for name, one in found.items()}
        found[MASK][~found[MASK].any(dim=1), 0] = 1  # a text without a token is read as one of padding
        if self.ends_last:
            order = found[MASK].argsort(dim=1, stable=True)
            found = {name: one.gather(1, order) for name, one in found.items()}
            if PLACES in inspect.signature(self.model.forward).parameters:
                found[PLACES] = (found[MASK].cumsum(dim=1) - 1).clamp_min(0)
        special, ids = found.pop(SPECIAL, None), found.pop(IDS)
        varies = found[MASK] if special is None else found[MASK] * (1 - special)
        varies = torch.where(varies.any(dim=1, keepdim=True), varies, found[MASK])
        arguments = inspect.signature(self.model.forward).parameters
        takes_any = any(one.kind is one.VAR_KEYWORD for one in arguments.values())
        return Tokens(ids, {name: one for name, one in found.items() if takes_any or name in arguments}, varies)

    def logits(self, texts: Sequence[str]) -> Tensor:
        """What the model returns for the tokens of texts, `[N, C]`, those of one length together, without padding."""
        tokens, device = self.tokens(texts), self.layer.weight.device
        there, found = tokens.extra_inputs[MASK] != 0, dict[int, Tensor]()
        lengths = there.sum(dim=1)
        for length in lengths.unique().tolist():
            rows = (lengths == length).nonzero().flatten()

            def own(of_all: Tensor, rows: Tensor = rows, length: int = length) -> Tensor:
                return of_all[rows][there[rows]].view(len(rows), length).to(device)

            beside = {name: own(one) for name, one in tokens.extra_inputs.items()}
            found |= zip(rows.tolist(), _logits(self.model(**{IDS: own(tokens.ids)}, **beside)), strict=True)
        return torch.stack([found[row] for row in range(len(texts))])

    def of_characters(self, digest: str | None = None) -> TextFunction:
        """The model as a function of texts, for noise that changes characters; `digest` is that of its weights."""
        return TextFunction(self.logits, digest, self.facts)

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """How many tokens the texts have that are not cut, with the marks of their beginning and end."""
        return list(map(len, self.tokenizer(list(texts), truncation=False, verbose=False)[IDS]))

    @cached_property
    def layer(self) -> nn.Embedding:
        ask = getattr(self.model, "get_input_embeddings", None)
        layer = ask() if callable(ask) else None
        if not isinstance(layer, nn.Embedding):
            raise ParameterError(
                f"{type(self.model).__name__} has no get_input_embeddings() that gives a torch.nn.Embedding; make the "
                f"embeddings yourself and give them to brittle.data.array_points(x, extra_inputs=..., mask=...)",
            )
        return layer

    def embed(self, ids: Tensor) -> Tensor:
        """Embeddings `[N, T, E]` of tokens `[N, T]`, on the CPU."""
        with torch.no_grad():
            return torch.cat([self.layer(part.to(self.layer.weight.device)).cpu() for part in ids.split(ROWS)])

    def extra_inputs(self, tokens: Tokens, inputs: Tensor) -> ExtraInputs:
        """What texts have beside their embeddings `inputs`."""
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
        """The embedding of the token that stands for a hidden one, `[E]`."""
        place = getattr(self.tokenizer, "mask_token_id", None)
        if place is None:
            raise ParameterError("the tokenizer has no mask token; use --noise token-dropout:0.2 instead")
        return self.vocabulary[place]

    def _apart(self, tokens: Tokens) -> tuple[int, float]:
        """The text, among the shortest, whose logits from embeddings beside other texts differ most from those of its
        tokens alone, and by how much, as a share of the largest of them, or of 1 where that is larger."""
        device = self.layer.weight.device
        shortest = tokens.extra_inputs[MASK].sum(dim=1).argsort(stable=True)[:COMPARED]
        ids = tokens.ids[shortest].to(device)
        extra_inputs = {name: one[shortest].to(device) for name, one in tokens.extra_inputs.items()}
        found = 0, -1.0
        with evaluating(self.model, device), torch.no_grad():
            together = _logits(self.model(**{EMBEDDINGS: self.layer(ids)}, **extra_inputs))
            for row, text in enumerate(shortest.tolist()):
                there = extra_inputs[MASK][row] != 0
                own = {name: one[row, there][None] for name, one in extra_inputs.items()}
                alone = _logits(self.model(**{IDS: ids[row, there][None]}, **own))[0]
                apart = float((alone - together[row]).abs().max()) / max(1.0, float(alone.abs().max()))
                if not apart <= found[1]:
                    found = text, apart if apart == apart else math.inf
        return found


def _logits(output: Any) -> Tensor:
    return output["logits"] if isinstance(output, Mapping) else getattr(output, "logits", output)


class TextFunction(ArrayModel):
    """A function of texts as a model: its inputs are the codes of their characters, `[B, L]`, 0 where a text is over.

    For noise that changes characters, and for all that reads texts and is no network with embeddings: a prompted model,
    a service, a rule. It runs forward only.

        classifier = brittle.Classifier(TextFunction(judge), bounds=None)
        table = brittle.score(classifier, brittle.data.text_points(texts, y), "monte_carlo", noise=Edits("typos", 0.05))

    Args:
        function: from a list of texts to class scores, `[B, C]`, a tensor or an array. Of texts that are the same it
            gets one, and at most `CALLED` at a time.
        digest: of what it has learned, so that no run goes on with another; by default of its code.
        facts: what the record of a run says of how texts are read.
    """

    reads_texts = True

    def __init__(
        self, function: Callable[[list[str]], Any], digest: str | None = None, facts: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(function)
        self.digest, self.facts = digest or code_digest(function), dict(facts or {})

    def __call__(self, inputs: Tensor) -> Tensor:
        """Class scores `[B, C]` of `inputs`, `[B, L]`, on their device."""
        texts = [text_of(row) for row in inputs.detach().cpu()]
        different = list(dict.fromkeys(texts))
        with torch.no_grad():
            parts = [
                as_tensor(self.function(different[first : first + CALLED]), inputs.device)
                for first in range(0, len(different), CALLED)
            ]
        place = {text: row for row, text in enumerate(different)}
        if sum(map(len, parts)) != len(different):
            raise ValueError(f"{len(different)} texts got scores of {sum(map(len, parts))}")
        return torch.cat(parts)[[place[text] for text in texts]]


CALLED = 64
"""Texts at most that a function is called with."""

ROOM = 256
"""Characters by which a copy may be longer than twice the longest text."""


def codes_of(texts: Sequence[str], length: int | None = None) -> Tensor:
    """The codes of the characters of texts, `[N, L]`, float32; 0 behind their ends. The texts are without the character
    of code 0. By default `L` leaves room for copies that are longer."""
    longest = max(map(len, texts), default=0)
    length = 2 * longest + ROOM if length is None else length
    if longest > length or any("\0" in text for text in texts):
        what = f"has {longest:,} characters, and there is room for {length:,}" if longest > length else "holds a NUL"
        raise DataError("texts", f"a text {what}; shorten it, or leave it out")
    codes = torch.zeros(len(texts), length, dtype=torch.float32)
    for row, text in enumerate(texts):
        codes[row, : len(text)] = torch.tensor([ord(one) for one in text], dtype=torch.float32)
    return codes


def text_of(codes: Tensor) -> str:
    """The text with these codes, `[L]`."""
    return "".join(chr(int(code)) for code in codes.tolist() if code > 0)
