"""Which experiment a run is: the fields of its record that must not change when it is resumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from brittle.errors import ResumeError, listed

IDENTITY = frozenset(
    {
        "format", "brittle", "seed", "confidence", "batch_size", "shard_points", "scores", "machine.device",
        "model.spec", "model.format", "model.state_sha256", "model.sha256", "model.weights_sha256", "model.fixed_batch",
        "model.bounds", "model.mean", "model.std", "model.outputs", "model.head", "model.parameters", "model.dtype",
        "data.format", "data.split", "data.sha256", "data.points", "data.limit", "data.keys", "data.columns",
        "data.layout", "data.scale_uint8", "data.exif", "data.class_names", "data.labelled",
        "versions.torch", "versions.numpy", "versions.scipy", "versions.pyarrow", "versions.pillow",
        "versions.safetensors",
    }
)  # fmt: skip
"""Fields that decide a number, or what it is about."""

RUN_TIME = frozenset(
    {
        "command", "doctor", "created", "finished", "seconds", "passes", "failed_points", "warnings",
        "account.points", "account.failed", "account.failed_early", "account.labelled", "account.correct",
        "account.passes", "account.check_passes", "account.turned", "account.failures",
        "model.file", "model.runs_code", "model.written_by_torch", "model.classes", "model.taken", "model.weights",
        "data.path", "data.files", "data.other_files", "data.input_shape",
        "versions.python", "machine.threads", "machine.platform",
    }
)  # fmt: skip
"""Fields that do not: where things lie, how the run was started, what was found out about the model, what became of
the run."""

SHOWN, BEFORE, LISTED = 60, 20, 3
"""Characters of a value, those of them before two values differ, and labels of a list, in a message."""


def check_same(recorded: Mapping[str, Any], now: Mapping[str, Any], folder: str) -> None:
    """Raise unless two records are of one experiment.

    Args:
        recorded: the record of the run that is to be resumed.
        now: the record that a new run would have.
        folder: where the first one lies, for the message.

    Raises:
        ResumeError: they are not; every field that differs is named, with both values, or the labels of scores that
            only one has.
    """
    seen = differences(recorded, now, ("there", "now"))
    if seen:
        raise ResumeError(
            "other_run", f"{folder} holds another run: {'; '.join(seen)}; repeat its command, or choose another folder"
        )


def differences(
    one: Mapping[str, Any], other: Mapping[str, Any], places: tuple[str, str], also: Sequence[str] = ()
) -> list[str]:
    """Where the identities of two records differ: each field in words, with both values.

    A field of no known kind is part of the identity.

    Args:
        one: a record.
        other: another one.
        places: what the two are called.
        also: fields to compare that are no part of the identity.
    """
    old, new = (
        {name: value for name, value in fields(record) if name not in RUN_TIME or name in also}
        for record in (one, other)
    )
    differing = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return [_difference(name, old.get(name), new.get(name), places) for name in differing]


def fields(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The fields of a record: dotted name and value, one level of its mappings opened."""
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{inside}", one) for inside, one in value.items())
        else:
            yield name, value


def _difference(name: str, old: Any, new: Any, places: tuple[str, str]) -> str:
    """A field that differs, in words; of lists of things with labels the labels that only one has, the last first."""
    one, other = _labels(old), _labels(new)
    if one is not None and other is not None and set(one) != set(other):
        gone, come = ([label for label in reversed(a) if label not in b] for a, b in ((one, other), (other, one)))
        return f"{name} {_listed(gone)} only {places[0]}, {_listed(come)} only {places[1]}"
    there, now = _about_where_they_part(old, new)
    return f"{name} {there} {places[0]}, {now} {places[1]}"


def _labels(value: Any) -> list[str] | None:
    """The labels of a list of things that all have one."""
    if isinstance(value, list) and all(isinstance(one, Mapping) and "label" in one for one in value):
        return [str(one["label"]) for one in value]
    return None


def _listed(labels: Sequence[str]) -> str:
    return listed(list(map(_short, labels)), LISTED) or "nothing"


def _about_where_they_part(*values: Any) -> list[str]:
    """Two values as texts; of long ones what begins shortly before they differ."""
    texts = ["nothing" if value is None else str(value) for value in values]
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*texts, strict=False)))
    start = max(0, alike - BEFORE) if max(map(len, texts)) > SHOWN else 0
    return [("…" if start else "") + _short(text[start:]) for text in texts]


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
