"""The fields of scores as options: what each is called, what it takes, and what it says of itself.

A score has an option for each of its fields, under the field's name and with the sentence of its class docstring. What
differs is said at the field by `option`. The command line and `brittle.scores.choose` read it here, so a new field is
an option with nothing to add elsewhere.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from brittle.errors import UsageError

Value = bool | int | float | str
"""What an option takes."""

KEY = "brittle.option"
"""Where the metadata of a dataclass field hold what `option` says."""

YES_NO = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
"""How a yes or a no is written in `--set`."""


def option(
    name: str | None = None,
    *,
    text: str | None = None,
    choices: Collection[str] = (),
    several: bool = False,
    every: tuple[str, ...] = (),
) -> Mapping[str, Mapping[str, Any] | None]:
    """The metadata of a field whose option is not simply the field: `field(default=…, metadata=option(…))`.

    Args:
        name: of the option, with underscores; the field's name by default.
        text: its sentence; that of the class docstring by default.
        choices: the words it takes, where there are only so many.
        several: whether several values may be given, each of which makes a score of its own.
        every: values of which each makes a score of its own where nothing is given.
    """
    given = {"name": name, "text": text, "choices": (*choices,), "several": several, "every": every}
    return {KEY: {key: value for key, value in given.items() if value}}


NO_OPTION: Mapping[str, None] = {KEY: None}
"""The metadata of a field that is given in another way, as the noise is: None under `KEY`."""


@dataclass(frozen=True)
class Option:
    """A field of a score as a user chooses it: `field`, the `kind` of its value, its `default`, and as for `option`."""

    name: str
    field: str
    kind: type[Value]
    default: object
    text: str
    choices: tuple[str, ...] = ()
    several: bool = False
    every: tuple[str, ...] = ()

    @property
    def is_switch(self) -> bool:
        """Whether the option is given without a value, and turns the field from its default."""
        return self.kind is bool

    def read(self, text: str, where: str) -> Value:
        """The value that `text` writes at the place `where`, which an error names."""
        try:
            return YES_NO[text.lower()] if self.kind is bool else self.kind(text)
        except (KeyError, ValueError) as error:
            what = {bool: "true or false", int: "a whole number"}.get(self.kind, "a number")
            raise UsageError(f"{where} takes {what}; found {text!r:.60}") from error


@cache
def options_of(kind: type) -> Mapping[str, Option]:
    """The options of a dataclass of scores or of a noise family, by the name of the field."""
    texts, found = attribute_texts(kind), {}
    for one in fields(kind):
        given, (value, words) = one.metadata.get(KEY, {}), _kind(_hint(kind, one.name))
        if one.init and given is not None and value is not None:
            usual = {"name": one.name, "text": texts.get(one.name, ""), "choices": words}
            found[one.name] = Option(field=one.name, kind=value, default=one.default, **(usual | given))
    return found


def _hint(kind: type, name: str) -> object:
    """The type of a field; None where it is written in names that are not there when the program runs."""
    home = next(one for one in kind.__mro__ if name in inspect.get_annotations(one))
    try:
        return inspect.get_annotations(home, eval_str=True)[name]
    except NameError:
        return None


def _kind(hint: object) -> tuple[type[Value] | None, tuple[str, ...]]:
    """The type of one value and, of a `Literal`, its words; None where it cannot be written as one."""
    if get_origin(hint) in (Union, UnionType):
        others = [one for one in get_args(hint) if one is not NoneType]
        return _kind(others[0]) if len(others) == 1 else (None, ())
    if get_origin(hint) is Literal and all(isinstance(word, str) for word in get_args(hint)):
        return str, get_args(hint)
    return (hint if hint in (bool, int, float, str) else None), ()  # type: ignore[return-value]


def attribute_texts(kind: type) -> dict[str, str]:
    """What the docstrings of a class and of those above it say of their fields, under `Attributes:`."""
    found: dict[str, str] = {}
    for one in kind.__mro__:
        section = re.search(r"^Attributes:\n((?:[ ]+.*\n?|\n)+)", inspect.cleandoc(one.__doc__ or ""), re.MULTILINE)
        for name, text in re.findall(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", section[1] if section else "", re.MULTILINE):
            found.setdefault(name, re.sub(r"\s+", " ", text))
    return found


def described(takers: Mapping[str, Option]) -> str:
    """The sentence of an option: that of the first of its takers, the scores by name; then all with their defaults."""
    first = next(iter(takers.values()))
    text = first.text.replace("`", "").rstrip(".") or first.field
    groups: dict[str, list[str]] = {}
    for name, one in takers.items():
        silent = one.is_switch or not isinstance(one.default, Value)
        groups.setdefault("for" if silent else f"{one.default} for", []).append(name)
    whom = "; ".join(f"{default} {', '.join(names)}" for default, names in groups.items())
    return f"{text[0].upper()}{text[1:]} ({whom})."


def by_name(kinds: Iterable[tuple[str, type]]) -> dict[str, dict[str, Option]]:
    """The options of classes of scores, given with their names: for the name of each option the scores that take it."""
    found: dict[str, dict[str, Option]] = {}
    for name, kind in kinds:
        for one in options_of(kind).values():
            found.setdefault(one.name, {})[name] = one
    return found
