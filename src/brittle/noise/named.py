"""Noise by name: a class that `sigma` alone describes, or a word with levels of its own, such as `rotation:15`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch

from brittle.errors import ParameterError, UsageError
from brittle.model.bounds import BoundsLike
from brittle.noise import FAMILIES, Noise, PerFeature, Sphere, Transform
from brittle.registry import Registry
from brittle.user_code import find_named, unknown

if TYPE_CHECKING:
    from brittle.data import Points


@dataclass(frozen=True)
class NoiseData:
    """Data from which noise is made, beside its levels.

    Attributes:
        bounds: of an input.
        text: what stands behind the colon.
        categories: names of columns that are chosen.
        points: what noise learns from; None where it is only checked, because the data are not open yet.
        texts: how texts become points, where the model reads texts and is open.
        rules: of columns; those of numbers are no categories.
    """

    bounds: BoundsLike
    text: str
    categories: Collection[str] = ()
    points: Points | None = None
    texts: Any = None
    rules: Mapping[str, str] | None = None


@dataclass(frozen=True)
class NamedNoise:
    """A word of `--noise`.

    Attributes:
        make: the noises of these levels, or of these standard deviations.
        example: a level behind a colon, or the name of a file for what has no levels; None where the word has no colon.
        changes: what of a point it changes; columns are learned from.
        sigma: what `--sigma` is in, for a word that needs it where there is no level.
        family: the class that `--sigma` describes where there is no level.
        above: what every level is larger than.
    """

    make: Callable[[Sequence[float], NoiseData], Sequence[Noise]]
    example: float | str | None = None
    changes: Literal["values", "columns", "tokens", "characters"] = "values"
    sigma: str = ""
    family: type[Noise] | None = None
    above: float | None = None

    @property
    def has_levels_alone(self) -> bool:
        """Tell whether it takes no `--sigma`."""
        return not self.sigma and self.family is None


def _spheres(radii: Sequence[float], data: NoiseData) -> list[Sphere]:
    size = 1 if data.points is None else next(iter(data.points.batches(1))).inputs[0].numel()
    return [Sphere.of_radius(radius, size) for radius in radii]


def _per_feature(sigmas: Sequence[float], data: NoiseData) -> list[PerFeature]:
    moving = [column for column, words in (data.rules or {}).items() if "fixed" not in words]
    learned = (
        PerFeature(1.0, torch.ones(1))
        if data.points is None
        else PerFeature.of(data.points, 1.0, data.categories or None, moving)
    )
    return [PerFeature(sigma, learned.scale, learned.still) for sigma in sigmas]


NOISES: Mapping[str, NamedNoise | type[Noise]] = Registry(
    "noise",
    {
        **FAMILIES,
        "sphere": NamedNoise(_spheres, 0.5, family=Sphere, above=0.0),
        "per_feature": NamedNoise(_per_feature, changes="columns", sigma="standard deviations of each feature"),
    },
    NamedNoise,
    Noise,
)
"""Every word of `--noise` by its name with underscores; a class is described by `sigma` alone."""


def changes(text: str) -> str:
    """Return what of a point the noise behind `--noise` changes."""
    word = _word(text)
    return "values" if word is None else word.changes


def family_of(name: str) -> type[Noise] | None:
    """Return the class of noise of this name that `sigma` alone describes; None where there is none."""
    part = NOISES.get(name)
    return part.family if isinstance(part, NamedNoise) else part


def has_level(text: str) -> bool:
    """Whether the noise has its level in the text, or none, so that no `--sigma` belongs to it."""
    word = _word(text)
    if word is None or word.example is None:
        return _function(text) is not None
    return ":" in text or word.has_levels_alone


def check_noise(text: str, sigmas: Sequence[float], categories: Collection[str]) -> None:
    """Raise unless the options of noise fit together."""
    name, word = _plain_name(text), _word(text)
    named = ":" not in text or re.fullmatch(r".*:[\d.,]+", text)
    if named and name not in NOISES and not text.endswith(".py"):
        raise unknown("noise", name, list(NOISES))
    if categories and changes(text) != "columns":
        raise UsageError("--categories is for --noise per-feature and --noise swap:0.1")
    if sigmas and has_level(text):
        alone = word is not None and word.has_levels_alone
        how = f"takes its strength behind a colon, such as --noise {_example(text)}" if alone else ""
        raise UsageError(f"--noise {text:.60} {how or 'says how strong it is by itself'}; leave out --sigma")
    if not sigmas and not has_level(text) and word is not None and word.sigma:
        raise UsageError(f"--noise {text:.60} needs --sigma, such as --sigma 0.1, in {word.sigma}")


def noises(
    text: str,
    sigmas: Sequence[float],
    bounds: BoundsLike,
    categories: Collection[str] = (),
    points: Points | None = None,
    texts: Any = None,
    rules: Mapping[str, str] | None = None,
) -> str | Sequence[Noise]:
    """Make the noise that `--noise` names: ready noises, or the name of a class that standard deviations describe.

    The other arguments are the fields of `NoiseData`.
    """
    function = _function(text)
    if function is not None:
        return [function]
    word = _word(text)
    if word is None or (word.family is not None and not has_level(text)):
        return _plain_name(text) if _plain_name(text) in NOISES else text
    levels = _levels(text, word) if has_level(text) else [*dict.fromkeys(sigmas)]
    return word.make(levels, NoiseData(bounds, text.partition(":")[2], categories, points, texts, rules))


def _plain_name(text: str) -> str:
    """The name in what stands behind `--noise`, with underscores."""
    return text.partition(":")[0].replace("-", "_")


def _word(text: str) -> NamedNoise | None:
    part = NOISES.get(_plain_name(text))
    return part if isinstance(part, NamedNoise) else None


def _levels(text: str, word: NamedNoise) -> list[float]:
    """The levels behind the colon, each once."""
    if isinstance(word.example, str):
        return []
    try:
        levels = [float(level) for level in dict.fromkeys(text.partition(":")[2].split(","))]
    except ValueError as error:
        raise UsageError(
            f"--noise {text:.60} needs a level behind a colon, or several with commas: --noise {_example(text)}",
        ) from error
    if word.above is not None and min(levels) <= word.above:
        raise UsageError(f"--noise {text:.60} needs a level above {word.above:g}; found {min(levels):g}")
    return levels


def _example(text: str) -> str:
    """A word with a level of its own, and such a level."""
    word = _word(text)
    example = None if word is None else word.example
    return f"{text.partition(':')[0]}:{example if isinstance(example, str) else format(example or 0.5, 'g')}"


def _function(text: str) -> Transform | None:
    """The transform that `FILE.py:FUNCTION` or `PACKAGE.MODULE:FUNCTION` stands for; None for anything else."""
    word = _word(text)
    if ":" not in text or (word is not None and word.example is not None):
        return None
    found = find_named(text)
    if isinstance(found, Transform):
        return found
    if not inspect.isfunction(found):
        return None
    if len(inspect.signature(found).parameters) < 2:
        raise ParameterError(f"{text:.80} takes one argument; noise is a function (x, generator)")
    return Transform(found)
