"""Noise of texts as characters: slips of the hand, and texts that mean the same."""

from __future__ import annotations

import hashlib
import json
import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from brittle.errors import DataError, ParameterError
from brittle.estimate import Parameters
from brittle.extensions.texts.forms import codes_of, text_of
from brittle.noise.named import NamedNoise, NoiseData
from brittle.noise.tables import READ
from brittle.noise.transform import Transforming, check_share

KEYS = ("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")
"""The rows of a keyboard, each half a key to the right of the one above."""

ALIKE = dict(zip("aceijopsxyABCEHIKMOPSTX", "асеіјорѕхуАВСЕНІКМОРЅТХ", strict=True))
"""Latin letters, and Cyrillic ones that look the same."""


_PLACES = {key: (column + 0.5 * row, row) for row, keys in enumerate(KEYS) for column, key in enumerate(keys)}
NEIGHBOURS = {
    one: "".join(key for key, (x, y) in _PLACES.items() if key != one and abs(x - at) <= 1.0 and abs(y - row) <= 1)
    for one, (at, row) in _PLACES.items()
}
"""The keys beside each key."""

Edit = Callable[[str, int, float], tuple[int, str]]
"""From the characters of a text, the place of one and a number in [0, 1), what stands instead of how many."""


def _slip(text: str, place: int, chance: float) -> tuple[int, str]:
    """One of four with the same probability: the key beside it, two in the other order, none, twice."""
    own, kind, chance = text[place], int(4 * chance), (4 * chance) % 1.0
    if kind == 0:
        keys = NEIGHBOURS.get(own.lower(), own)
        other = keys[int(len(keys) * chance)]
        return 1, other.upper() if own.isupper() else other
    if kind == 1:
        return 2, text[place + 1 : place + 2] + own
    return 1, own * 2 if kind == 3 else ""


class Kind(NamedTuple):
    """A way to change a character."""

    edit: Edit
    explanation: str


EDITS = {
    "typos": Kind(_slip, "A random share of the characters is mistyped: a key beside, swapped, left out or twice"),
    "case": Kind(
        lambda text, at, _: (1, text[at].swapcase()[:1]), "A random share of the letters is written in the other case"
    ),
    "spaces": Kind(
        lambda text, at, _: (1, "" if text[at].isspace() else f"{text[at]} "),
        "A random share of the characters gets a space behind it; of the spaces, is left out",
    ),
    "homoglyphs": Kind(
        lambda text, at, _: (1, ALIKE.get(text[at], text[at])),
        "A random share of the letters becomes Cyrillic ones that look the same",
    ),
}
"""The kinds of edits by their names on the command line."""


@dataclass(frozen=True, init=False)
class _OfTexts(Transforming):
    """Noise of texts whose points are the codes of their characters, `[L]`."""

    of_characters: ClassVar[bool] = True

    def apply(self, x: Tensor, generator: torch.Generator) -> Tensor:
        return codes_of([self.changed(text_of(x), generator)], len(x))[0].to(x)

    @abstractmethod
    def changed(self, text: str, generator: torch.Generator) -> str:
        """A noisy copy of a text."""


@dataclass(frozen=True, init=False)
class Edits(_OfTexts):
    """Each character of a text, one after another, is changed with some probability as `kind` says.

    - `typos`: one of four with the same probability: a key beside it on a keyboard (of letters and digits; others stay
      as they are), its place changed with the next, which then stays (as does the last), left out, or typed twice.
    - `case`: a letter in the other case.
    - `spaces`: a space behind it; a space is left out.
    - `homoglyphs`: a Cyrillic letter that looks the same, of the Latin letters that have one.

    Validity: it has no covariance and no gradient; sampled scores alone serve it.

    Attributes:
        kind: one of these.
        sigma: the probability.

    Raises:
        ParameterError: there is no such kind, or the probability is not above 0 and at most 1.

    Example:
        >>> import torch
        >>> Edits("typos", 0.2).changed("robust", torch.Generator().manual_seed(1))
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
        return EDITS[self.kind].explanation

    def changed(self, text: str, generator: torch.Generator) -> str:
        edit, parts, place = EDITS[self.kind].edit, list[str](), 0
        chances = torch.rand(len(text), 2, generator=generator, dtype=torch.float64).tolist()
        while place < len(text):
            taken, instead = (
                edit(text, place, chances[place][1]) if chances[place][0] < self.sigma else (1, text[place])
            )
            parts.append(instead)
            place += taken
        return "".join(parts)


@dataclass(frozen=True, init=False)
class Paraphrases(_OfTexts):
    """One of the alternatives of a text, each with the same probability: paraphrases, translations, other wordings.

    So `p_robust` is the share of the alternatives that keep the prediction, in the limit of many draws.

    Attributes:
        sigma: 1; the list says how strong it is.
        alternatives: for each text of the data the texts to draw from.
        digest: of these.

    Raises:
        ParameterError: a text has no alternatives.
        DataError: a file is no JSON object of lists of texts.
    """

    alternatives: Mapping[str, Sequence[str]] = field(init=False, repr=False, compare=False)
    digest: str = field(init=False, repr=False)

    name: ClassVar[str] = "paraphrases"
    explanation: ClassVar[str] = "One of the alternatives that a list has for the text"

    def __init__(self, alternatives: Mapping[str, Sequence[str]] | str | os.PathLike[str]) -> None:
        """Draw from these, or from those in a JSON file, an object with a list for each text."""
        if not isinstance(alternatives, Mapping):
            alternatives = _read(Path(alternatives))
        own = {text: tuple(others) for text, others in alternatives.items()}
        if empty := next((text for text, others in own.items() if not others), None):
            raise ParameterError(f"the text {empty!r:.60} has no alternatives; leave it out, or give it some")
        digest = hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:16]
        self._set(sigma=1.0, alternatives=own, digest=digest)

    @property
    def parameters(self) -> Parameters:
        return {"sigma": self.sigma, "noise": f"{self.name}()", "code": self.digest}

    def changed(self, text: str, generator: torch.Generator) -> str:
        others = self.of(text)
        return others[int(torch.randint(len(others), (1,), generator=generator))]

    def of(self, text: str) -> Sequence[str]:
        """The alternatives of a text.

        Raises:
            ParameterError: there are none.
        """
        if text not in self.alternatives:
            raise ParameterError(f"the list of paraphrases has none for the text {text!r:.60}; add it")
        return self.alternatives[text]


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError("texts", f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(found, dict) or not all(
        isinstance(others, list) and all(isinstance(one, str) for one in others) for others in found.values()
    ):
        raise DataError("texts", f'{path} is no list of texts for each text: {{"a text": ["another", ...]}}')
    return found


def _paraphrases(levels: Sequence[float], data: NoiseData) -> list[Paraphrases]:
    noise = Paraphrases(data.text)
    for batch in () if data.points is None else data.points.batches(READ):
        for row in batch.inputs:  # what is missing or too long is said before anything is scored
            codes_of(noise.of(text_of(row)), len(row))
    return [noise]


TYPOS, CASE, SPACES, HOMOGLYPHS = (
    NamedNoise(lambda shares, data, kind=kind: [Edits(kind, one) for one in shares], example=0.05, changes="characters")
    for kind in EDITS
)
PARAPHRASES = NamedNoise(_paraphrases, example="FILE.json", changes="characters")
