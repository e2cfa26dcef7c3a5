"""Noise by name: a class that `sigma` alone describes, or a word with levels, such as `rotation:15`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch

from brittle.errors import ParameterError, UsageError
from brittle.model.bounds import BoundsLike
from brittle.noise import Noise, PerFeature, Sphere, Transform
from brittle.noise.families import FAMILIES
from brittle.registry import Registry
from brittle.user_code import find_named, unknown

if TYPE_CHECKING:
    from brittle.data import Points


@dataclass(frozen=True)
class NoiseData:
    """Data for making noise, besides its levels.

    Attributes:
        bounds: bounds of an input.
        text: the text behind the colon.
        categories: names of the chosen columns.
        points: points that noise learns from; None before the data are open, when noise is only checked.
        texts: the text form of an open model that reads texts.
        rules: rules of columns; a column with a rule for numbers is not a category.
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
        make: function from levels, or standard deviations, to noises.
        example: a level behind the colon, or a file name for a word without levels; None for a word without colon.
        changes: the part of a point that changes; noise on columns learns from the data.
        sigma: unit of `--sigma`, for a word that needs it where there is no level.
        family: the class that `--sigma` describes where there is no level.
        above: bound that every level exceeds.
    """

    make: Callable[[Sequence[float], NoiseData], Sequence[Noise]]
    example: float | str | None = None
    changes: Literal["values", "columns", "tokens", "characters"] = "values"
    sigma: str = ""
    family: type[Noise] | None = None
    above: float | None = None

    @property
    def has_levels_alone(self) -> bool:
        """True where the word takes no `--sigma`."""
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
"""The words of `--noise` by name, with underscores; `sigma` alone describes a class."""


def changes(text: str) -> str:
    """Return the part of a point that the noise changes."""
    word = _word(text)
    return "values" if word is None else word.changes


def family_of(name: str) -> type[Noise] | None:
    """Return the class of noise of this name that `sigma` alone describes; None where there is none."""
    part = NOISES.get(name)
    return part.family if isinstance(part, NamedNoise) else part


def has_level(text: str) -> bool:
    """Return whether the noise has its level in the text, or none, so that it takes no `--sigma`."""
    word = _word(text)
    if word is None or word.example is None:
        return _function(text) is not None
    return ":" in text or word.has_levels_alone


def check_noise(text: str, sigmas: Sequence[float], categories: Collection[str]) -> None:
    """Raise unless the options of noise fit together."""
    name, word = _plain_name(text), _word(text)
    is_plain_name = ":" not in text or re.fullmatch(r".*:[\d.,]+", text)
    if is_plain_name and name not in NOISES and not text.endswith(".py"):
        raise unknown("noise", name, list(NOISES))
    if categories and changes(text) != "columns":
        raise UsageError("--categories is for --noise per-feature and --noise swap:0.1")
    if sigmas and has_level(text):
        takes_level = word is not None and word.has_levels_alone
        how = f"takes its strength behind a colon, such as --noise {_example(text)}" if takes_level else ""
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
    """Make the noise of `--noise`: finished noises, or the name of a class that standard deviations describe.

    The other arguments are fields of `NoiseData`.
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
    """Return the name in the text of `--noise`, with underscores."""
    return text.partition(":")[0].replace("-", "_")


def _word(text: str) -> NamedNoise | None:
    part = NOISES.get(_plain_name(text))
    return part if isinstance(part, NamedNoise) else None


def _levels(text: str, word: NamedNoise) -> list[float]:
    """Return the distinct levels behind the colon."""
    if isinstance(word.example, str):
        return []
    try:
        levels = [float(level) for level in dict.fromkeys(text.partition(":")[2].split(","))]
    except ValueError as error:
        raise UsageError(
            f"--noise {text:.60} needs a level behind a colon, or several with commas: --noise {_example(text)}"
        ) from error
    if word.above is not None and min(levels) <= word.above:
        raise UsageError(f"--noise {text:.60} needs a level above {word.above:g}; found {min(levels):g}")
    return levels


def _example(text: str) -> str:
    """Return the word with an example of a level."""
    word = _word(text)
    example = None if word is None else word.example
    return f"{text.partition(':')[0]}:{example if isinstance(example, str) else format(example or 0.5, 'g')}"


def _function(text: str) -> Transform | None:
    """Return the transform of `FILE.py:FUNCTION` or `PACKAGE.MODULE:FUNCTION`; None for any other text."""
    word = _word(text)
    if ":" not in text or (word is not None and word.example is not None):
        return None
    value = find_named(text)
    if isinstance(value, Transform):
        return value
    if not inspect.isfunction(value):
        return None
    if len(inspect.signature(value).parameters) < 2:
        raise ParameterError(f"{text:.80} takes one argument; noise is a function (x, generator)")
    return Transform(value)
