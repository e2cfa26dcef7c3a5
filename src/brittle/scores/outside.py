"""Scores and noise families by name: those of brittle, and of files and packages of the user's.

A name is one of the catalogue, or one that `brittle.user_code` finds: `FILE.py:CLASS`, or `PACKAGE.MODULE:CLASS`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from brittle.decisions.function_code import code_digest
from brittle.noise import Noise, Transform
from brittle.noise.families import FAMILIES
from brittle.noise.named import family_of
from brittle.scores import NoiseScore, Score
from brittle.scores.catalogue import CATALOGUE
from brittle.scores.sound import check_class, check_dataclass, check_score
from brittle.user_code import check_name, digests, find_named, kind_of, refused, unknown

Named = TypeVar("Named", Score, Noise)


def find_score(name: str) -> type[Score]:
    """Return the class of scores that `name` stands for; a `UsageError` where there is none."""
    if name in CATALOGUE:
        kind = check_kind(CATALOGUE[name], name)
        if kind.name != name:
            raise refused(name, f"is the score {kind.name!r}; name the part score.{kind.name}")
        return kind
    kind = find_named(name)
    if kind is None:
        hint = "give its file with --pseudo-margin FILE; " if name.replace("-", "_") == "pseudo_margin" else ""
        raise unknown("score", name, list(CATALOGUE), hint)
    return check_kind(kind, name)


def find_family(name: str) -> type[Noise]:
    """Return the class of noise that `name` stands for, which `sigma` alone must describe; a `UsageError` likewise."""
    kind = family_of(name) or find_named(name)
    if kind is None:
        raise unknown("noise family", name, list(FAMILIES))
    if not (isinstance(kind, type) and issubclass(kind, Noise)):
        raise refused(name, f"is {kind_of(kind)}; expected a subclass of brittle.noise.Noise")
    check_dataclass(kind, name)
    check_name(name, getattr(kind, "name", None), "name = 'speckle'")
    return kind


def code_of(score: Score) -> dict[str, str] | None:
    """Return the sha256 of the files from outside in which the score, its noise and its measurements stand, by their
    names. A class of scores or noise that stands in no file, such as one typed into a session, has a digest of its own
    code. Extensions that the measurements would use and that are missing are told, too, as runs without them differ."""
    noise = getattr(score, "noise", None)
    function_parts = (noise.fn, type(noise.fn)) if isinstance(noise, Transform) else ()
    parts = (score, noise, *score.needs)
    used = [code for need in score.needs for code in need.code]
    files = digests((*function_parts, *used, *(kind for part in parts for kind in type(part).__mro__)))
    kinds = [type(part) for part in (score, noise) if part is not None]
    typed = [kind for kind in kinds if kind.__module__.partition(".")[0] != "brittle" and digests([kind]) is None]
    without = {f"without {name}": "missing" for need in score.needs for name in need.missing}
    return (files or {}) | {f"class {kind.__qualname__}": code_digest(kind) for kind in typed} | without or None


def check_scores(scores: Iterable[Score]) -> None:
    """Raise unless every score says all that tables and reports ask of it, and a table can tell them apart."""
    names: dict[str, type[Score]] = {}
    families: dict[str, type[Noise]] = {}
    transforms: dict[object, Transform] = {}
    for score in scores:
        check_score(score)
        kind = check_kind(type(score), type(score).__qualname__)
        check_alone(names, kind.name, kind)
        if not isinstance(score, NoiseScore):
            continue
        check_alone(families, score.noise.name, type(score.noise))
        if isinstance(score.noise, Transform):  # readers would take two functions of one name for one
            called = score.noise.parameters["noise"]
            if transforms.setdefault(called, score.noise).fn is not score.noise.fn:
                raise refused(f"the noise {called}", "stands for two functions; give one another name, or parameters")


def check_alone(kind_by_name: dict[str, type[Named]], name: str, kind: type[Named]) -> None:
    """Keep `kind` among the `kind_by_name`; raise where another class has its name there."""
    if kind_by_name.setdefault(name, kind) is not kind:
        raise refused(kind.__qualname__, f"is called {name!r} like {kind_by_name[name].__qualname__}; rename one")


def check_kind(kind: object, source: str) -> type[Score]:
    """`kind`, which was named by `source`, if it is a class of scores that can be used."""
    if not (isinstance(kind, type) and issubclass(kind, Score)):
        raise refused(source, f"is {kind_of(kind)}; expected a subclass of brittle.scores.Score")
    check_class(kind, source)
    if CATALOGUE.get(kind.name, kind) is not kind:
        raise refused(source, f"is called {kind.name!r} like a score of brittle; give it another name")
    return kind
