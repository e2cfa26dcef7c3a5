"""The fields of scores and of noise as a user sets them: by `--set NAME.FIELD=VALUE`, some by an option of their name.

What differs is said at the field by `option`. A new field is set with nothing to add elsewhere.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from brittle.errors import UsageError

Value = bool | int | float | str
"""What a field takes."""

KEY = "brittle.option"
"""Where the metadata of a dataclass field hold what `option` says."""

YES_NO = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
"""How a yes or a no is written in `--set`."""


def option(
    *, choices: Collection[str] = (), every: tuple[str, ...] = (), alone: bool = False
) -> Mapping[str, Mapping[str, Any] | None]:
    """The metadata of a field that is not set by any value of its type: `field(default=…, metadata=option(…))`.

    It takes one of `choices`, where these are given; where nothing is given, each value of `every` makes a score of its
    own. What is set `alone` is set by `--set`, and no option of its name means it.
    """
    return {KEY: {"choices": (*choices,), "every": every, "alone": alone}}


NO_OPTION: Mapping[str, None] = {KEY: None}
"""The metadata of a field that is given in another way, as the noise is: None under `KEY`."""


@dataclass(frozen=True)
class Option:
    """A field as a user sets it: the `kind` of its value, its `default`, and as for `option`."""

    kind: type[Value]
    default: object
    choices: tuple[str, ...] = ()
    every: tuple[str, ...] = ()
    alone: bool = False

    def read(self, text: str, where: str) -> Value:
        """The value that `text` writes at the place `where`, which an error names."""
        try:
            return YES_NO[text.lower()] if self.kind is bool else self.kind(text)
        except (KeyError, ValueError) as error:
            what = {bool: "true or false", int: "a whole number"}.get(self.kind, "a number")
            raise UsageError(f"{where} takes {what}; found {text!r:.60}") from error


@cache
def options_of(kind: type) -> Mapping[str, Option]:
    """The fields of a dataclass of scores or of a noise family that a user sets, by their names."""
    found = {}
    for one in fields(kind):
        given, (value, words) = one.metadata.get(KEY, {}), _kind(_hint(kind, one.name))
        if one.init and given is not None and value is not None:
            found[one.name] = Option(value, one.default, **({"choices": words} | given))
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
