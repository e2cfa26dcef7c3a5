"""The scores of a run: from names and numbers, as the command line takes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TypeVar

from brittle.decisions import Decision
from brittle.errors import ParameterError, UsageError
from brittle.model.bounds import Bounds
from brittle.noise import Noise
from brittle.scores import LogitMargin, MonteCarlo, NoiseScore, Score
from brittle.scores.catalogue import CATALOGUE
from brittle.scores.options import Option, options_of
from brittle.scores.outside import check_alone, check_scores, find_family, find_score
from brittle.user_code import failing, unknown

BY_DEFAULT = ("shrinkage", "softmax", "logit_margin")
"""Scores of a run that names none; decisions without a probability have those that read margins."""

NO_LIMIT = "none"
"""The limit where points are not compared with one, and each has exactly as many draws as were asked for."""

Made = TypeVar("Made", Score, Noise)

Given = Mapping[str, object]
"""Options by name, or fields by name, with their values."""


def usual_names(decision: Decision, random: bool = False, probability: bool = True) -> tuple[str, ...]:
    """Return the default scores of a run by its decision, perhaps of a `random` model, or without a `probability`."""
    if random or not decision.has_margins:
        return (MonteCarlo.name,)
    if decision.has_probability and probability:
        return BY_DEFAULT
    margins = [name for name in BY_DEFAULT if CATALOGUE[name].serves == "all"]
    return tuple(name for name in margins if not (decision.level and name == LogitMargin.name))


def usual_sigma(bounds: Bounds) -> float | None:
    """Return the standard deviation of noise where none is given, a tenth of the value range; None without one."""
    return None if bounds.pair is None else 0.1 * (bounds.pair[1] - bounds.pair[0])


def choose(
    names: Sequence[str],
    sigmas: Sequence[float],
    family: str | Sequence[Noise] = "gaussian",
    options: Given | None = None,
    settings: Sequence[str] = (),
) -> list[Score]:
    """Return the scores that `names` stand for, at every sigma.

    An option that is None or () leaves every score its own default, and several values make several scores, such as
    budgets of draws, of which the smaller are the first draws of the largest and cost nothing. Settings are of one
    score or of the noise alone, such as `mmse.antithetic=false`.
    """
    kinds: dict[str, type[Score]] = {}
    for kind in map(find_score, names):
        if kinds.get(kind.name) is kind:
            raise ParameterError(f"{kind.name} is asked for twice; name it once")
        check_alone(kinds, kind.name, kind)
    noise = find_family(family) if isinstance(family, str) else None
    chosen_options = {name: value for name, value in (options or {}).items() if value not in (None, ())}
    values_by_score = _taken(chosen_options, kinds)
    by_name = _settings(settings, kinds if noise is None else {**kinds, noise.name: noise})
    if noise is None:
        noises = [*family]  # type: ignore[list-item]
    else:
        noises = [_make(noise, {"sigma": sigma, **by_name.get(noise.name, {})}) for sigma in dict.fromkeys(sigmas)]
    chosen = []
    for name, kind in kinds.items():
        variants = {field: option.variants for field, option in options_of(kind).items() if option.variants}
        set_alone = {field: (value,) for field, value in by_name.get(name, {}).items()}
        values_by_field: dict[str, tuple[object, ...]] = {**variants, **values_by_score[name], **set_alone}
        for values in product(*values_by_field.values()):
            variant = dict(zip(values_by_field, values, strict=True))
            chosen += _scores(kind, noises, variant)  # type: ignore[arg-type]
    check_scores(chosen)
    return chosen


def _taken(options: Given, kinds: Mapping[str, type[Score]]) -> dict[str, dict[str, tuple[object, ...]]]:
    """Return the fields that options set, with all their values, by the name of the score.

    An option is that of the first score that has a field of its name. A field of another score that has this name, and
    is of another kind or takes other words, is set by `--set` alone.
    """
    values_by_score: dict[str, dict[str, tuple[object, ...]]] = {name: {} for name in kinds}
    for option, value in options.items():
        option_by_score = {name: options_of(kind).get(option) for name, kind in {**CATALOGUE, **kinds}.items()}
        having = {name: value for name, value in option_by_score.items() if value is not None and not value.alone}
        meaning = next(iter(having.values()), None)
        takers = [
            name
            for name, candidate in having.items()
            if meaning is not None and candidate.kind is meaning.kind and candidate.choices in ((), meaning.choices)
        ]
        words = value if isinstance(value, tuple) else (value,)
        for word in words:
            _check_word(option, word, meaning)
        if not kinds.keys() & set(takers):
            raise UsageError(f"--{option} changes none of these scores; it is for {', '.join(takers) or 'no score'}")
        for name in kinds.keys() & set(takers):
            values_by_score[name][option] = tuple(None if word == NO_LIMIT else word for word in dict.fromkeys(words))
    return values_by_score


def _check_word(name: str, word: object, option: Option | None) -> None:
    if option is not None and option.choices and word not in option.choices:
        raise unknown(name.replace("_", " "), str(word), option.choices)


def _settings(settings: Sequence[str], kinds: Mapping[str, type]) -> dict[str, dict[str, object]]:
    """Return the fields that are set, by the name of the score or of the noise family, from `NAME.FIELD=VALUE` each."""
    values: dict[str, dict[str, object]] = {}
    for setting in settings:
        place, equals, text = setting.partition("=")
        name, dot, field = place.partition(".")
        if not (equals and dot):
            raise UsageError(f"--set takes NAME.FIELD=VALUE; found {setting!r:.80}")
        if name not in kinds:
            raise UsageError(f"--set {setting:.80} changes nothing; chosen are {', '.join(kinds)}")
        options = {key: option for key, option in options_of(kinds[name]).items() if key != "sigma"}
        if field not in options:
            fields_text = ", ".join(options) or "none that can be set"
            raise UsageError(f"{name} has no field {field!r:.60} that can be set; it has {fields_text}")
        value = options[field].read(text, f"--set {place}")
        _check_word(field, value, options[field])
        values.setdefault(name, {})[field] = value
    return values


def _scores(kind: type[Score], noises: Iterable[Noise], fields: Given) -> Iterator[Score]:
    if not issubclass(kind, NoiseScore):
        yield _make(kind, fields)
        return
    for noise in noises:
        yield _make(kind, {"noise": noise, **fields})


def _make(kind: type[Made], fields: Given) -> Made:
    with failing(kind, "__init__"):
        try:
            return kind(**fields)  # type: ignore[arg-type]
        except TypeError as error:
            raise ParameterError(f"{kind.__qualname__} cannot be made: {error}; give its fields defaults") from error
