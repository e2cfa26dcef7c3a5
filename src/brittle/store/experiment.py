"""Whether two runs are the same experiment: their records are compared, but for what decides no number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from brittle.errors import ResumeError, listed
from brittle.store.record import RunRecord
from brittle.store.strict_json import plain

UNDECISIVE = frozenset(
    {
        *("part", "command", "doctor", "created", "finished", "seconds", "account", "warnings"),
        *("model.file", "model.weights", "model.runs_code", "model.written_by_torch", "model.classes", "model.taken"),
        *("data.path", "data.files", "data.other_files", "data.labels", "data.input_shape", "data.decided_names"),
        *("data.tokenizer", "data.cut_texts", "versions.python", "machine.threads", "machine.platform"),
        *("scores.title", "scores.reference", "scores.explanation", "scores.safer", "scores.colour"),
        *("scores.preference", "scores.model", "scores.noise", "scores.draws"),
    }
)
"""Fields of a record that decide no number: where things lie, how the run was started, what was found out, what became
of it. Every other field is compared, new ones too."""

SHOWN = 3
"""Scores that a message names at most."""


def check_same(recorded: RunRecord, now: RunRecord, folder: str) -> None:
    """Raise unless a run can go on as another one.

    Args:
        recorded: the record of the run that is to be resumed.
        now: the record that a new run would have.
        folder: where the first one lies, for the message.

    Raises:
        ResumeError: every field that differs is named, with both values, or the scores that only one of them has.
    """
    found = differences(recorded, now, ("there", "now"), UNDECISIVE - {"part"})
    if found:
        raise ResumeError(
            "other_run", f"{folder} holds another run: {'; '.join(found)}; repeat its command, or choose another folder"
        )


def differences(
    one: RunRecord, other: RunRecord, places: tuple[str, str], without: frozenset[str] = UNDECISIVE
) -> list[str]:
    """Where two runs are not the same experiment: each field in words, with both values.

    Args:
        one: a record.
        other: another one.
        places: what the two are called.
        without: dotted names of fields that are not compared.
    """
    ours, theirs = (dict(_fields(plain(record) | {"scores": None}, "", without)) for record in (one, other))
    found = _compared(ours, theirs, places)
    there, now = ({score.label: plain(score) for score in record.scores} for record in (one, other))
    alone = [[label for label in mine if label not in others] for mine, others in ((there, now), (now, there))]
    if any(alone):
        only = (f"{listed(labels, SHOWN)} only {place}" for labels, place in zip(alone, places, strict=True) if labels)
        found.append(f"scores {', '.join(only)}")
    elif [*there] != [*now]:
        found.append(f"scores {', '.join(there)} {places[0]}, {', '.join(now)} {places[1]}")
    for label in there.keys() & now.keys():
        ours, theirs = (dict(_fields(score[label], "scores.", without)) for score in (there, now))
        found += _compared(ours, theirs, places)
    return list(dict.fromkeys(found))


def _fields(content: Mapping[str, Any], inside: str, without: frozenset[str]) -> Iterator[tuple[str, Any]]:
    """Dotted names and values of all that is compared, objects opened."""
    for key, value in content.items():
        name = f"{inside}{key}"
        if name in without:
            continue
        if isinstance(value, dict):
            yield from _fields(value, f"{name}.", without)
        else:
            yield name, value


def _compared(ours: Mapping[str, Any], theirs: Mapping[str, Any], places: tuple[str, str]) -> list[str]:
    names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    return [f"{name} {_text(ours.get(name))} {places[0]}, {_text(theirs.get(name))} {places[1]}" for name in names]


def _text(value: Any) -> str:
    return "nothing" if value is None else f"{value!s:.60}"
