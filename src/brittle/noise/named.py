"""Noise by name: a family with standard deviations, or one with levels of its own, such as `rotation:15`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from brittle.errors import ParameterError, UsageError
from brittle.model.bounds import Bounds, BoundsLike, check_bounds
from brittle.model.texts import codes_of, text_of
from brittle.noise import (
    FAMILIES,
    Corruption,
    Decibels,
    Edits,
    Noise,
    Paraphrases,
    PerFeature,
    Relative,
    Sphere,
    Swap,
    TokenDropout,
    Transform,
)
from brittle.noise.characters import EDITS
from brittle.noise.corruption import KINDS
from brittle.noise.tables import READ
from brittle.user_code import find_named, unknown

if TYPE_CHECKING:
    from brittle.data import Points
    from brittle.model.texts import TextForm

DECIBELS, SWAP, PER_FEATURE = "decibels", "swap", "per_feature"

TOKENS = {"token_dropout": None, "token_mask": "mask_vector", "token_replacement": "vocabulary"}
"""Families for the tokens of texts: what these become is zeros, or a field of the text form."""

PARAPHRASES = "paraphrases"
OF_CHARACTERS = (*EDITS, PARAPHRASES)
"""Families for texts whose points are the codes of their characters."""

LEVELED = {
    **dict.fromkeys(KINDS, 1.0),
    "rotation": 15,
    DECIBELS: 20,
    SWAP: 0.1,
    **dict.fromkeys(TOKENS, 0.2),
    **dict.fromkeys(EDITS, 0.05),
}
"""Families with levels of their own behind a colon, each with an example."""

RELATIVE, SPHERE = "relative", "sphere"
"""Families that take `--sigma`, or levels behind a colon: root mean squares of each point, and lengths."""

COLUMNS = (PER_FEATURE, SWAP)
"""Families that learn from the columns of the data."""


def plain_name(text: str) -> str:
    """The name of the family in what stands behind `--noise`, with underscores."""
    return text.partition(":")[0].replace("-", "_")


def has_level(text: str) -> bool:
    """Whether the noise has its level in the text, or none, so that no `--sigma` belongs to it."""
    name = plain_name(text)
    return (
        name in (*LEVELED, PARAPHRASES) or (":" in text and name in (RELATIVE, SPHERE)) or _function(text) is not None
    )


def check_noise(text: str, sigmas: Sequence[float], categories: Collection[str]) -> None:
    """Raise unless the options of noise fit together."""
    name = plain_name(text)
    known = (*FAMILIES, PER_FEATURE, RELATIVE, PARAPHRASES, *LEVELED)
    named = ":" not in text or re.fullmatch(r".*:[\d.,]+", text)
    if named and not {name, text} & {*known} and not text.endswith(".py"):
        raise unknown("noise", name, known)
    if categories and name not in COLUMNS:
        raise UsageError("--categories is for --noise per-feature and --noise swap:0.1")
    if sigmas and has_level(text):
        how = f"takes its strength behind a colon, such as --noise {_example(text)}" if name in LEVELED else ""
        raise UsageError(f"--noise {text:.60} {how or 'says how strong it is by itself'}; leave out --sigma")
    if not sigmas and not has_level(text) and name in (PER_FEATURE, RELATIVE):
        of = "standard deviations of each feature" if name == PER_FEATURE else "root mean squares of each point"
        raise UsageError(f"--noise {text:.60} needs --sigma, such as --sigma 0.1, in {of}")


def noises(
    text: str,
    sigmas: Sequence[float],
    bounds: BoundsLike,
    categories: Collection[str] = (),
    points: Points | None = None,
    texts: TextForm | None = None,
    rules: Mapping[str, str] | None = None,
) -> str | Sequence[Noise]:
    """What `--noise` stands for: ready noises, or the name of a family that standard deviations describe.

    Without `points` and `texts`, which are not open yet, noise that learns from them is only checked.
    `rules` are those of columns: ones that are of numbers are no categories to it.
    """
    name = plain_name(text)
    function = _function(text)
    if function is not None:
        return [function]
    if name == PARAPHRASES:
        own = Paraphrases(text.partition(":")[2])
        for batch in () if points is None else points.batches(READ):
            for row in batch.inputs:  # what is missing or too long is said before anything is scored
                codes_of(own.of(text_of(row)), len(row))
        return [own]
    levels = _levels(text) if has_level(text) else [*dict.fromkeys(sigmas)]
    if name in KINDS:
        return [Corruption(name, level, check_bounds(Bounds.of(bounds))) for level in levels]
    if name in EDITS:
        return [Edits(name, level) for level in levels]
    if name == DECIBELS:
        return [Decibels(level) for level in levels]
    if name == SWAP:
        learned = [Swap(share, torch.zeros(1, 1)) for share in levels]
        return learned if points is None else [Swap.of(points, one.sigma, categories or None, rules) for one in learned]
    if name == RELATIVE:
        return [Relative(level) for level in levels]
    if name == SPHERE and has_level(text):
        size = 1 if points is None else next(iter(points.batches(1))).inputs[0].numel()
        return [Sphere.of_radius(level, size) for level in levels]
    if name in TOKENS:
        instead = TOKENS[name]
        vectors = None if texts is None or instead is None else getattr(texts, instead)
        return [TokenDropout(level, vectors) for level in levels]
    if name == PER_FEATURE:
        moving = [column for column, words in (rules or {}).items() if "fixed" not in words]
        own = (
            PerFeature(1.0, torch.ones(1)) if points is None else PerFeature.of(points, 1.0, categories or None, moving)
        )
        return [PerFeature(sigma, own.scale, own.still) for sigma in levels]
    return text


def _levels(text: str) -> list[float]:
    """The levels behind the colon, each once."""
    name, _, levels = text.partition(":")
    try:
        found = [float(level) for level in dict.fromkeys(levels.split(","))]
    except ValueError as error:
        raise UsageError(
            f"--noise {text:.60} needs a level behind a colon, or several with commas: --noise {_example(text)}",
        ) from error
    if name in (RELATIVE, SPHERE) and min(found) <= 0.0:
        raise UsageError(f"--noise {text:.60} needs a level above 0; found {min(found):g}")
    return found


def _example(text: str) -> str:
    """A family with a level of its own, and such a level."""
    return f"{text.partition(':')[0]}:{LEVELED.get(plain_name(text), 0.5):g}"


def _function(text: str) -> Transform | None:
    """The transform that `FILE.py:FUNCTION` or `PACKAGE.MODULE:FUNCTION` stands for; None for anything else."""
    if ":" not in text or plain_name(text) in (*LEVELED, PARAPHRASES, RELATIVE, SPHERE):
        return None
    found = find_named(text)
    if isinstance(found, Transform):
        return found
    if not inspect.isfunction(found):
        return None
    if len(inspect.signature(found).parameters) < 2:
        raise ParameterError(f"{text:.80} takes one argument; noise is a function (x, generator)")
    return Transform(found)
