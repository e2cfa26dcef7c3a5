"""From names and numbers, as the command line takes them, to scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import product
from typing import TypeVar

from brittle.errors import ParameterError, UsageError
from brittle.estimate import FLIP_PROBABILITY
from brittle.model.loading.named_code import unknown
from brittle.noise import Noise
from brittle.scores.base import NoiseScore, Score
from brittle.scores.catalogue import CATALOGUE
from brittle.scores.monte_carlo import MonteCarlo
from brittle.scores.options import Option, by_name, options_of
from brittle.scores.outside import check_alone, check_scores, find_family, find_score

RUNGS = (6, 10, 20, 50, 100, 200, 500)
"""Budgets of draws, with 100 times their numbers, at which a comparison also reads off what the draws so far say."""

Made = TypeVar("Made", Score, Noise)

Given = Mapping[str, object]
"""Options by name, or fields by name, with their values."""


def choose(
    names: Sequence[str],
    sigmas: Sequence[float],
    family: str | Sequence[Noise] = "gaussian",
    options: Given | None = None,
    settings: Sequence[str] = (),
) -> list[Score]:
    """The scores that `names` stand for, at every sigma.

    Where `monte_carlo` is among several scores, the estimators are compared with it: every estimator of the flip
    probability that draws is then also recorded at smaller budgets, which are the first draws of the largest and cost
    nothing.

    Args:
        names: of scores, as `brittle.scores.outside.find_score` knows them.
        sigmas: noise levels in pixel units.
        family: name of the noise family, as `brittle.scores.outside.find_family` knows it; or noises as they are, which
            have levels of their own.
        options: by the names of `brittle.scores.options`; None, False and () leave every score its own default, and
            several values make several scores.
        settings: of one score or of the noise family alone, such as `mmse.antithetic=false`.

    Raises:
        UsageError: a name or a word that nothing is called by, or an option that no chosen score takes.
        ParameterError: a number out of range, or code from outside that cannot be used.
    """
    kinds = _kinds(names)
    noise, ready = (find_family(family), []) if isinstance(family, str) else (None, list(family))
    given = {name: value for name, value in (options or {}).items() if _is_given(value)}
    known = _shared(by_name({**CATALOGUE, **kinds}.items()))
    _check_words(given, known)
    _check_all_taken(given, kinds, known)
    own = _settings(settings, kinds if noise is None else {**kinds, noise.name: noise})
    noises = ready if noise is None else _of_family(noise, sigmas, own.get(noise.name, {}))
    comparing = MonteCarlo.name in kinds and len(kinds) > 1
    found = [
        score
        for name, kind in kinds.items()
        for variant in _variants(kind, _taken(name, given, known), own.get(name, {}))
        for score in _scores(kind, noises, variant, comparing)
    ]
    check_scores(found)
    return found


def _of_family(family: type[Noise], sigmas: Sequence[float], fields: Given) -> list[Noise]:
    """The family at every sigma."""
    return [_make(family, {"sigma": sigma, **fields}) for sigma in dict.fromkeys(sigmas)]


def _kinds(names: Iterable[str]) -> dict[str, type[Score]]:
    """The classes that `names` stand for, by the names that they call themselves.

    Raises:
        ParameterError: two are one class, or share a name.
    """
    kinds: dict[str, type[Score]] = {}
    for kind in map(find_score, names):
        if kinds.get(kind.name) is kind:
            raise ParameterError(f"{kind.name} is asked for twice; name it once")
        check_alone(kinds, kind.name, kind)
    return kinds


def _shared(known: Mapping[str, Mapping[str, Option]]) -> dict[str, dict[str, Option]]:
    """The options with those scores alone whose field is of the option's kind, and takes its words.

    An option is that of its first score. A field of another score that only has its name is set by `--set`.
    """
    return {
        name: {taker: one for taker, one in takers.items() if _is_like(one, next(iter(takers.values())))}
        for name, takers in known.items()
    }


def _is_like(one: Option, first: Option) -> bool:
    return one.kind is first.kind and (not one.choices or {*one.choices} == {*first.choices})


def _taken(score: str, given: Given, known: Mapping[str, Mapping[str, Option]]) -> dict[str, object]:
    """Those of the given options that reach the fields of a score."""
    return {name: value for name, value in given.items() if score in known.get(name, {})}


def _check_words(given: Given, known: Mapping[str, Mapping[str, Option]]) -> None:
    """Raise where an option that takes so many words only is given another."""
    for name, value in given.items():
        for word in value if isinstance(value, tuple) else (value,):
            _check_word(name, word, next(iter(known.get(name, {}).values()), None))


def _check_word(name: str, word: object, option: Option | None) -> None:
    if option is not None and option.choices and word not in option.choices:
        raise unknown(name.replace("_", " "), str(word), option.choices)


def _check_all_taken(given: Given, kinds: Mapping[str, type[Score]], known: Mapping[str, Mapping[str, Option]]) -> None:
    """Raise where an option would silently change nothing."""
    for name in given:
        if not any(taker in kinds for taker in known.get(name, {})):
            raise UsageError(
                f"--{name.replace('_', '-')} changes none of these scores; it is for {', '.join(known.get(name, {}))}",
            )


def _is_given(value: object) -> bool:
    """Whether a value was chosen; 0 is one, which equals False and is another."""
    return value is not None and value is not False and value != ()


def _settings(settings: Sequence[str], kinds: Mapping[str, type]) -> dict[str, dict[str, object]]:
    """The fields that are set, by the name of the score or of the noise family, from `NAME.FIELD=VALUE` each."""
    found: dict[str, dict[str, object]] = {}
    for setting in settings:
        place, equals, text = setting.partition("=")
        name, dot, field = place.partition(".")
        if not (equals and dot):
            raise UsageError(f"--set takes NAME.FIELD=VALUE; found {setting!r:.80}")
        if name not in kinds:
            raise UsageError(f"--set {setting:.80} changes nothing; chosen are {', '.join(kinds)}")
        own = options_of(kinds[name])
        if field not in own or field == "sigma":
            fields_there = ", ".join(one for one in own if one != "sigma") or "none that can be set"
            raise UsageError(f"{name} has no field {field!r:.60} that can be set; it has {fields_there}")
        value = own[field].read(text, f"--set {place}")
        _check_word(field, value, own[field])
        found.setdefault(name, {})[field] = value
    return found


def _variants(kind: type[Score], given: Given, own: Given) -> Iterator[dict[str, object]]:
    """The fields of the scores that one name stands for: a distance in every norm, a change by every statistic."""
    ways: dict[str, tuple[object, ...]] = {}
    for field, option in options_of(kind).items():
        if field in own:
            ways[field] = (own[field],)
        elif option.flag and option.name in given:
            value = given[option.name]
            several = tuple(dict.fromkeys(value)) if isinstance(value, tuple) else (option.value(value),)
            ways[field] = several
        elif option.every:
            ways[field] = option.every
    return (dict(zip(ways, values, strict=True)) for values in product(*ways.values()))


def _scores(kind: type[Score], noises: Iterable[Noise], given: Given, comparing: bool) -> Iterator[Score]:
    if not issubclass(kind, NoiseScore):
        yield _make(kind, given)
        return
    names = {one.name for one in fields(kind)}
    draws = "draws" in names
    if comparing and "adaptive" in names:  # the copies that are counted are there for every point
        given = {"adaptive": False, **given}
    for noise in noises:
        largest = _make(kind, {"noise": noise, **given})
        if comparing and draws and kind.quantity == FLIP_PROBABILITY:
            for budget in _smaller_budgets(largest.draws):  # type: ignore[attr-defined]
                yield _make(kind, {"noise": noise, **given, "draws": budget})
        yield largest


def _make(kind: type[Made], given: Given) -> Made:
    try:
        return kind(**given)  # type: ignore[arg-type]
    except TypeError as error:
        raise ParameterError(f"{kind.__qualname__} cannot be made: {error}; give its fields defaults") from error


def _smaller_budgets(draws: int) -> list[int]:
    rungs = [*RUNGS, *(100 * rung for rung in RUNGS[1:])]
    return [rung for rung in rungs if rung < draws]
