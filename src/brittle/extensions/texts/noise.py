"""Noise of texts: typing errors, texts that mean the same, and replaced tokens."""

import hashlib
import json
import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from brittle.errors import DataError, ParameterError
from brittle.estimate import Parameters
from brittle.extensions.texts.forms import codes_of, text_of
from brittle.noise.families import digest_of_tensors
from brittle.noise.named import NamedNoise, NoiseData
from brittle.noise.tables import READ
from brittle.noise.transform import Transforming, check_share

KEYS = ("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")  # rows of keys, each half a key to the right of that above

ALIKE = dict(zip("aceijopsxyABCEHIKMOPSTX", "асеіјорѕхуАВСЕНІКМОРЅТХ", strict=True))
"""Latin letters, and Cyrillic ones that look the same."""


_PLACES = {key: (column + 0.5 * row, row) for row, keys in enumerate(KEYS) for column, key in enumerate(keys)}
NEIGHBOURS = {
    key: "".join(k for k, (x, y) in _PLACES.items() if k != key and abs(x - at) <= 1.0 and abs(y - row) <= 1)
    for key, (at, row) in _PLACES.items()
}

Edit = Callable[[str, int, float], tuple[int, str]]
"""Map a text, the place of a character and a number in [0, 1) to the count of characters replaced and the new text."""


def _slip(text: str, place: int, chance: float) -> tuple[int, str]:
    """Make one of four typing errors, drawn uniformly: a neighbouring key, a swap, an omission, a repetition."""
    letter, kind, chance = text[place], int(4 * chance), (4 * chance) % 1.0
    if kind == 0:
        keys = NEIGHBOURS.get(letter.lower(), letter)
        neighbour = keys[int(len(keys) * chance)]
        return 1, neighbour.upper() if letter.isupper() else neighbour
    if kind == 1:
        return 2, text[place + 1 : place + 2] + letter
    return 1, letter * 2 if kind == 3 else ""


EDITS: dict[str, tuple[Edit, str]] = {
    "typos": (_slip, "A random share of the characters is mistyped: a key beside, swapped, left out or twice"),
    "case": (
        lambda text, at, _: (1, text[at].swapcase()[:1]),
        "A random share of the letters is written in the other case",
    ),
    "spaces": (
        lambda text, at, _: (1, "" if text[at].isspace() else f"{text[at]} "),
        "A random share of the characters gets a space behind it; a space is left out instead",
    ),
    "homoglyphs": (
        lambda text, at, _: (1, ALIKE.get(text[at], text[at])),
        "A random share of the letters becomes Cyrillic ones that look the same",
    ),
}
"""The kinds of edits by their names on the command line, each with its explanation."""


@dataclass(frozen=True, init=False)
class _CharacterNoise(Transforming):
    """Noise of texts whose points are the codes of their characters, `[L]`."""

    of_characters: ClassVar[bool] = True

    def apply(self, x: Tensor, generator: torch.Generator) -> Tensor:
        return codes_of([self.change(text_of(x), generator)], len(x))[0].to(x)

    @abstractmethod
    def change(self, text: str, generator: torch.Generator) -> str:
        """Return a noisy copy of a text."""


@dataclass(frozen=True, init=False)
class Edits(_CharacterNoise):
    """Change each character of a text, in order, with some probability, by an edit of the given `kind`.

    - `typos`: one of four errors with the same probability: a neighbouring key (letters and digits; other characters
      stay as they are), a swap with the next character, which then stays (so does the last), an omission, a repetition.
    - `case`: the letter in the other case.
    - `spaces`: a space added behind the character; a space is left out.
    - `homoglyphs`: a Cyrillic letter that looks the same, for the Latin letters that have one.

    Validity: the noise has no covariance and no gradient; sampled scores alone apply to it.

    Attributes:
        kind: the kind of edit.
        sigma: the probability.

    Raises:
        ParameterError: there is no such kind, or the probability is not above 0 and at most 1.

    Example:
        >>> import torch
        >>> Edits("typos", 0.2).change("robust", torch.Generator().manual_seed(1))
        'fobust'
    """

    kind: str = field(init=False)

    name: ClassVar[str] = "edits"
    unit: ClassVar[str] = "of the characters"

    def __init__(self, kind: str, share: float) -> None:
        """Change a character with the probability `share`."""
        if kind not in EDITS:
            raise ParameterError(f"edits are {', '.join(EDITS)}; found {kind!r:.40}")
        check_share(share)
        self._set(kind=kind, sigma=float(share))

    @property
    def parameters(self) -> Parameters:
        return {"sigma": self.sigma, "unit": self.unit, "noise": self.kind}

    @property
    def explanation(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return EDITS[self.kind][1]

    def change(self, text: str, generator: torch.Generator) -> str:
        edit, parts, place = EDITS[self.kind][0], list[str](), 0
        chances = torch.rand(len(text), 2, generator=generator, dtype=torch.float64).tolist()
        while place < len(text):
            is_edited, chance = chances[place][0] < self.sigma, chances[place][1]
            length, replacement = edit(text, place, chance) if is_edited else (1, text[place])
            parts.append(replacement)
            place += length
        return "".join(parts)


@dataclass(frozen=True, init=False)
class Paraphrases(_CharacterNoise):
    """Replace a text by one of its alternatives, drawn uniformly: paraphrases, translations, other wordings.

    In the limit of many draws, `p_robust` is the share of the alternatives that keep the prediction.

    Attributes:
        sigma: 1; the list sets the strength of the noise.
        alternatives: the texts to draw from, for each text of the data.
        digest: digest of the alternatives.

    Raises:
        ParameterError: a text has no alternatives.
        DataError: the file is not a JSON object of lists of texts.
    """

    alternatives: Mapping[str, Sequence[str]] = field(init=False, repr=False, compare=False)
    digest: str = field(init=False, repr=False)

    name: ClassVar[str] = "paraphrases"
    explanation: ClassVar[str] = "One of the alternatives that a list has for the text"

    def __init__(self, alternatives: Mapping[str, Sequence[str]] | str | os.PathLike[str]) -> None:
        """Draw from a mapping, or from a JSON file: an object with a list for each text."""
        if not isinstance(alternatives, Mapping):
            alternatives = _read(Path(alternatives))
        variants_by_text = {text: tuple(variants) for text, variants in alternatives.items()}
        if empty := next((text for text, variants in variants_by_text.items() if not variants), None):
            raise ParameterError(f"the text {empty!r:.60} has no alternatives; leave it out, or give it some")
        digest = hashlib.sha256(json.dumps(variants_by_text, sort_keys=True).encode()).hexdigest()[:16]
        self._set(sigma=1.0, alternatives=variants_by_text, digest=digest)

    @property
    def parameters(self) -> Parameters:
        return {"sigma": self.sigma, "noise": f"{self.name}()", "code": self.digest}

    def change(self, text: str, generator: torch.Generator) -> str:
        variants = self.of(text)
        return variants[int(torch.randint(len(variants), (1,), generator=generator))]

    def of(self, text: str) -> Sequence[str]:
        """Return the alternatives of a text.

        Raises:
            ParameterError: there are none.
        """
        if text not in self.alternatives:
            raise ParameterError(f"the list of paraphrases has none for the text {text!r:.60}; add it")
        return self.alternatives[text]


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError("texts", f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(content, dict) or not all(
        isinstance(texts, list) and all(isinstance(text, str) for text in texts) for texts in content.values()
    ):
        raise DataError("texts", f'{path} does not hold a list of texts for each text: {{"a text": ["another", ...]}}')
    return content


def _paraphrases(levels: Sequence[float], data: NoiseData) -> list[Paraphrases]:
    noise = Paraphrases(data.text)
    for batch in () if data.points is None else data.points.batches(READ):
        for row in batch.inputs:  # missing or overlong texts raise before anything is scored
            codes_of(noise.of(text_of(row)), len(row))
    return [noise]


TYPOS, CASE, SPACES, HOMOGLYPHS = (
    NamedNoise(lambda levels, data, kind=kind: [Edits(kind, s) for s in levels], example=0.05, changes="characters")
    for kind in EDITS
)
PARAPHRASES = NamedNoise(_paraphrases, example="FILE.json", changes="characters")


@dataclass(frozen=True, init=False)
class TokenDropout(Transforming):
    """Replace each token with some probability: by zeros, by one embedding, or by a random one of many.

    A point is the embeddings of its tokens, `[T, E]`, as `brittle.data.text_points` makes it; padding and the tokens
    that mark the beginning and the end stay as they are.

    Attributes:
        sigma: probability with which a token is replaced.
        replacements: embeddings to draw from, `[R, E]`: that of the mask token, or the vocabulary; None for zeros.
        digest: digest of the embeddings.

    Raises:
        ParameterError: the probability is not above 0 and at most 1, or the embeddings are not finite or no rows.
    """

    replacements: Tensor | None = field(init=False, repr=False, compare=False)
    digest: str = field(init=False, repr=False)

    of_rows: ClassVar[bool] = True

    name: ClassVar[str] = "token-dropout"
    explanation: ClassVar[str] = "A random share of the tokens is replaced"
    unit: ClassVar[str] = "of the tokens"

    def __init__(self, share: float, replacements: Tensor | None = None) -> None:
        """Set the probability `share` of a replacement."""
        check_share(share)
        rows = None if replacements is None else replacements.detach().cpu().clone()
        if rows is not None:
            rows = rows[None] if rows.dim() == 1 else rows
            if rows.dim() != 2 or not len(rows) or not bool(rows.isfinite().all()):
                raise ParameterError(
                    f"embeddings to replace tokens with must be finite, [R, E]; found {list(rows.shape)}"
                )
        self._set(sigma=share, replacements=rows, digest=digest_of_tensors(*([] if rows is None else [rows])))

    @property
    def parameters(self) -> Parameters:
        """The share, and the digest of the embeddings, if any."""
        parameters: Parameters = {"sigma": self.sigma, "unit": self.unit, "noise": self.name}
        if self.replacements is None:
            return parameters
        by = "one vector" if len(self.replacements) == 1 else "others"
        return parameters | {"unit": f"{self.unit} replaced by {by}", "rows": self.digest}

    def apply(self, x: Tensor, generator: torch.Generator) -> Tensor:
        rows = self.replacements
        if x.dim() != 2 or (rows is not None and rows.shape[1] != x.shape[1]):
            width = "" if rows is None else f" with E = {rows.shape[1]}"
            raise ParameterError(f"tokens are dropped from inputs [T, E]{width}; found inputs {list(x.shape)}")
        chance, choice = torch.rand(len(x), 2, generator=generator, dtype=torch.float64).unbind(dim=1)
        vectors = x.new_zeros(1, x.shape[1]) if rows is None else rows.to(x)
        place = (choice * len(vectors)).long().clamp_max(len(vectors) - 1)
        return torch.where((chance < self.sigma)[:, None], vectors[place], x)


def _make_noises(replacements: str, shares: Sequence[float], data: NoiseData) -> list[TokenDropout]:
    """Return noises that replace tokens by a field of the text form, or by zeros where there is no field or no form."""
    vectors = getattr(data.texts, replacements) if replacements and data.texts is not None else None
    return [TokenDropout(share, vectors) for share in shares]


TOKEN_DROPOUT, TOKEN_MASK, TOKEN_REPLACEMENT = (
    NamedNoise(partial(_make_noises, replacements), example=0.2, changes="tokens")
    for replacements in ("", "mask_vector", "vocabulary")
)
