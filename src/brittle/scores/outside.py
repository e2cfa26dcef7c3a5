"""Scores and noise families by name: those of brittle, of installed packages, and of files of the user's.

A name is one of the catalogue, an entry point of the groups `brittle.scores` and `brittle.noise`, or says where the
class stands: `FILE.py:CLASS`, `PACKAGE.MODULE:CLASS`. A file is run because it is so named, and at no other time; a
package that is installed is imported when one of its names is asked for, or all are listed.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from brittle.errors import BrittleError, ParameterError, UsageError
from brittle.model.loading.user_code import import_module, offered, run_file
from brittle.noise import FAMILIES, Noise
from brittle.scores.base import Score
from brittle.scores.catalogue import CATALOGUE
from brittle.scores.options import options_of

SCORES, FAMILIES_GROUP = "brittle.scores", "brittle.noise"
"""Entry point groups in which an installed package offers scores and noise families."""

NAME = re.compile(r"[a-z][a-z0-9_]*")
"""What a score is called: it stands in tables, in labels, and before the dot of `--set`."""

TEXTS = ("title", "quantity", "cost", "reference", "explanation")
"""Class variables of a score that are text."""

Kind = TypeVar("Kind", type[Score], type[Noise])


def find_score(name: str) -> type[Score]:
    """The class of scores that `name` stands for.

    Raises:
        UsageError: there is none.
        ParameterError: its code fails, or it is no score that can be used.
    """
    if name in CATALOGUE:
        return CATALOGUE[name]
    found = _elsewhere(name, SCORES)
    if found is None:
        hint = "give its file with --pseudo-margin FILE; " if name.replace("-", "_") == "pseudo_margin" else ""
        raise unknown("score", name, [*CATALOGUE, *offered(SCORES)], hint)
    return check_score(found, name)


def find_family(name: str) -> type[Noise]:
    """The class of noise that `name` stands for, which `sigma` alone must describe.

    Raises:
        UsageError: there is none.
        ParameterError: its code fails, or it is no noise family that can be used.
    """
    if name in FAMILIES:
        return FAMILIES[name]
    found = _elsewhere(name, FAMILIES_GROUP)
    if found is None:
        raise unknown("noise family", name, [*FAMILIES, *offered(FAMILIES_GROUP)])
    return check_family(found, name)


def installed_scores() -> tuple[dict[str, type[Score]], list[str]]:
    """The scores that installed packages offer, by name, and for each that cannot be used why."""
    found: dict[str, type[Score]] = {}
    faults: list[str] = []
    for name in offered(SCORES):
        try:
            found[name] = find_score(name)
        except BrittleError as error:
            faults.append(str(error.args[0]))
    return found, faults


def unknown(what: str, name: str, known: Sequence[str], hint: str = "") -> UsageError:
    """The error for a name that is on no list."""
    near = get_close_matches(name, known, 1)
    advice = f"did you mean {near[0]}? " if near else "separate names with blanks; " if "," in name else ""
    return UsageError("unknown_name", f"no {what} is called {name!r}; {hint or advice}there are {', '.join(known)}")


def check_scores(scores: Iterable[Score]) -> None:
    """Raise unless every score says all that tables and reports ask of it, and a table can tell them apart.

    Raises:
        ParameterError: one does not, two classes share a name, or a field stands in no parameter.
    """
    names: dict[str, type[Score]] = {}
    for score in scores:
        kind = type(score)
        check_score(kind, f"{kind.__module__}.{kind.__qualname__}")
        if names.setdefault(kind.name, kind) is not kind:
            raise _refused(
                kind.__qualname__, f"is called {kind.name!r} like {names[kind.name].__qualname__}; rename one"
            )
        own = options_of(kind)
        hidden = [
            name
            for name in own
            if name not in score.parameters and getattr(score, name) not in (None, own[name].default)
        ]
        if hidden:
            raise _refused(
                kind.__qualname__, f"leaves {', '.join(hidden)} out of its parameters, so no table could tell; add it"
            )


def check_score(kind: object, where: str) -> type[Score]:
    """`kind`, if it is a class of scores that can be used.

    Args:
        kind: what was found.
        where: how it was named, for the message.

    Raises:
        ParameterError: it is no class of scores, no frozen dataclass, has the name of another, or leaves unsaid what
            tables and reports ask of it.
    """
    if not (isinstance(kind, type) and issubclass(kind, Score)):
        raise _refused(where, f"is {_kind(kind)}; expected a subclass of brittle.scores.Score")
    _check_dataclass(kind, where)
    name = getattr(kind, "name", None)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise _refused(where, f"has the name {name!r:.60}; expected one such as name = 'my_score'")
    if CATALOGUE.get(name, kind) is not kind:
        raise _refused(where, f"is called {name!r} like a score of brittle; give it another name")
    unsaid = [one for one in TEXTS if not isinstance(text := getattr(kind, one, None), str) or not text]
    if unsaid:
        raise _refused(where, f"does not say its {', '.join(unsaid)}; expected a text for each")
    _check_sayings(kind, where)
    return kind


def _check_sayings(kind: type[Score], where: str) -> None:
    """Raise where what is no text is none of what it may be; what a score says of itself alone is seen there."""
    places: Mapping[str, tuple[object, str]] = {
        "safer": (kind.safer in ("higher", "lower", None), "'higher', 'lower' or None"),
        "colour": (kind.colour is None or isinstance(kind.colour, int), "a whole number or None"),
        "preference": (kind.preference is None or isinstance(kind.preference, int | float), "a number or None"),
        "model": (kind.model is None or isinstance(kind.model, str), "a text or None"),
    }
    for name, (right, expected) in places.items():
        said = inspect.getattr_static(kind, name)
        if not right and not isinstance(said, property):
            raise _refused(where, f"has {name} = {said!r:.60}; expected {expected}")


def check_family(kind: object, where: str) -> type[Noise]:
    """`kind`, if it is a class of noise that can be used.

    Args:
        kind: what was found.
        where: how it was named, for the message.

    Raises:
        ParameterError: it is no class of noise, no frozen dataclass, or has no name of its own.
    """
    if not (isinstance(kind, type) and issubclass(kind, Noise)):
        raise _refused(where, f"is {_kind(kind)}; expected a subclass of brittle.noise.Noise")
    _check_dataclass(kind, where)
    name = getattr(kind, "name", None)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise _refused(where, f"has the name {name!r:.60}; expected one such as name = 'speckle'")
    return kind


def _check_dataclass(kind: type, where: str) -> None:
    if inspect.isabstract(kind):
        missing = ", ".join(sorted(getattr(kind, "__abstractmethods__", ())))
        raise _refused(where, f"leaves out {missing}; write it")
    parameters = vars(kind).get("__dataclass_params__")
    if parameters is None or not parameters.frozen:
        raise _refused(where, "is no frozen dataclass; write @dataclass(frozen=True) above the class")


def _refused(where: str, why: str) -> ParameterError:
    return ParameterError("outside", f"{where} {why}")


def _kind(found: object) -> str:
    return f"the class {found.__qualname__}" if isinstance(found, type) else f"an object of type {type(found).__name__}"


def _elsewhere(name: str, group: str) -> object | None:
    """What a name outside brittle's own lists stands for; None where it stands for nothing."""
    if ":" in name:
        place, _, attribute = name.rpartition(":")
        module = _run(place) if place.endswith(".py") else _import(place, attribute)
        if not hasattr(module, attribute):
            there = [
                one
                for one, value in vars(module).items()
                if isinstance(value, type) and value.__module__ == module.__name__
            ]
            raise UsageError("unknown_name", f"{place} has no {attribute}; it has {', '.join(there) or 'no class'}")
        return getattr(module, attribute)
    point = offered(group).get(name)
    return None if point is None else _loaded(point)


def _run(place: str) -> ModuleType:
    path = Path(place)
    try:
        source = path.read_bytes()
    except OSError as error:
        raise UsageError("unknown_name", f"{place} cannot be read: {error.strerror or error}") from error
    return _run_once(path.resolve(), source)


@cache
def _run_once(path: Path, source: bytes) -> ModuleType:
    """The module of a file, run once for all classes that are named of it."""
    return run_file(path, source, ParameterError, "outside")


def _import(place: str, attribute: str) -> ModuleType:
    return import_module(place, attribute, ParameterError, "outside", "outside")


def _loaded(point: EntryPoint) -> object:
    """What an entry point stands for, under the name that it is offered by."""
    package = "a package" if point.dist is None else point.dist.name
    try:
        found = point.load()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ParameterError(
            "outside", f"{point.name} of {package} cannot be loaded ({point.value}): {reason}"
        ) from error
    if getattr(found, "name", None) != point.name:
        raise _refused(f"{point.value} of {package}", f"is offered as {point.name!r} and calls itself another name")
    return found
