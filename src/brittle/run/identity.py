"""Which experiment a run is: the fields of its record that must not change when it is resumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from brittle.errors import ResumeError, listed
from brittle.store.record import RunRecord, ScoreRecord
from brittle.store.same_run import decisive_fields

SHOWN, BEFORE, LISTED = 60, 20, 3
"""Characters of a value, those of them before two values differ, and labels of a list, in a message."""


def check_same(recorded: RunRecord, now: RunRecord, folder: str) -> None:
    """Raise unless two records are of one experiment.

    Args:
        recorded: the record of the run that is to be resumed.
        now: the record that a new run would have.
        folder: where the first one lies, for the message.

    Raises:
        ResumeError: they are not; every field that differs is named, with both values, or the scores that only one has.
    """
    found = differences(recorded, now, ("there", "now"))
    if found:
        raise ResumeError(
            "other_run", f"{folder} holds another run: {'; '.join(found)}; repeat its command, or choose another folder"
        )


def differences(
    one: RunRecord | ScoreRecord,
    other: RunRecord | ScoreRecord,
    places: tuple[str, str],
    also: tuple[str, ...] = (),
    inside: str = "",
) -> list[str]:
    """Where the identities of two records differ: each field in words, with both values.

    Args:
        one: a record.
        other: another one of the same kind.
        places: what the two are called.
        also: fields to compare that are no part of the identity, such as `machine.platform`.
        inside: what stands before the names of the fields.
    """
    pairs = zip(decisive_fields(one, also, inside), decisive_fields(other, also, inside), strict=True)
    return [_difference(name, old, new, places) for (name, old), (_, new) in pairs if _identity(old) != _identity(new)]


def _identity(value: Any) -> Any:
    """What of a value is compared: of scores those fields that make a run the same run."""
    if isinstance(value, tuple):
        return tuple(map(_identity, value))
    return dict(decisive_fields(value)) if isinstance(value, ScoreRecord) else value


def _difference(name: str, old: Any, new: Any, places: tuple[str, str]) -> str:
    """A field that differs, in words; of scores those that only one has, the last first."""
    if name == "scores":
        one, other = ({score.label for score in scores} for scores in (old, new))
        if one != other:
            gone = [score for score in reversed(old) if score.label not in other]
            come = [score for score in reversed(new) if score.label not in one]
            return "; ".join(_other_scores(name, gone, come, places))
        parts = [part for a, b in zip(old, new, strict=True) for part in _differences_of_scores(a, b, places)]
        return "; ".join(dict.fromkeys(parts))
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
        return "; ".join(_difference(f"{name}.{key}", old.get(key), new.get(key), places) for key in keys)
    there, now = _shorten_to_difference(old, new)
    return f"{name} {there} {places[0]}, {now} {places[1]}"


def _other_scores(
    name: str, gone: Sequence[ScoreRecord], come: Sequence[ScoreRecord], places: tuple[str, str]
) -> list[str]:
    """What tells scores that only one run has from those that only the other has.

    Where all of one name differ by the same values of some parameters, these; of the others the labels.
    """
    alike: dict[str, list[str]] = {}
    for score in dict.fromkeys(one.score for one in gone):
        sides = ([one.parameters for one in some if one.score == score] for some in (gone, come))
        if changes := _changed_parameters(*sides):
            texts = [_difference(key, old, new, places) for key, (old, new) in changes.items()]
            alike.setdefault("; ".join(texts), []).append(score)
    told = {score for scores in alike.values() for score in scores}
    parts = [f"{name} {_listed(scores)}: {text}" for text, scores in alike.items()]
    rest = [_listed([one.label for one in some if one.score not in told]) for some in (gone, come)]
    only = ", ".join(f"{labels} only {place}" for labels, place in zip(rest, places, strict=True) if labels)
    return [*parts, f"{name} {only}"] if only else parts


def _changed_parameters(
    old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]
) -> dict[str, tuple[Any, Any]]:
    """The parameters with one value in all of `old` and another in all of `new`, where nothing else differs."""
    keys = {key: None for one in (*old, *new) for key in one}
    values = {key: tuple({one.get(key) for one in some} for some in (old, new)) for key in keys}
    changed = {key: sides for key, sides in values.items() if sides[0] != sides[1]}
    if any(len(side) != 1 for sides in changed.values() for side in sides):
        return {}
    rests = [[{key: one.get(key) for key in keys if key not in changed} for one in some] for some in (old, new)]
    if len(old) != len(new) or any(one not in rests[1] for one in rests[0]):
        return {}
    return {key: (next(iter(there)), next(iter(now))) for key, (there, now) in changed.items()}


def _differences_of_scores(old: ScoreRecord, new: ScoreRecord, places: tuple[str, str]) -> list[str]:
    """Where two scores differ; of two in another order the labels."""
    if old.label != new.label:
        return [_difference("scores.label", old.label, new.label, places)]
    return differences(old, new, places, inside="scores.")


def _listed(labels: Sequence[str]) -> str:
    return listed(list(map(_short, labels)), LISTED)


def _shorten_to_difference(*values: Any) -> list[str]:
    """Two values as texts; of long ones what begins shortly before they differ."""
    texts = [_text(value) for value in values]
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*texts, strict=False)))
    start = max(0, alike - BEFORE) if max(map(len, texts)) > SHOWN else 0
    return [("…" if start else "") + _short(text[start:]) for text in texts]


def _text(value: Any) -> str:
    """A value as `run.json` shows it."""
    if isinstance(value, tuple):
        return str(list(value))
    return "nothing" if value is None else str(value)


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
