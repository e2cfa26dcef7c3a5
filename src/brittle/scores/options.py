"""The fields of scores and of noise as a user sets them: by `--set NAME.FIELD=VALUE`, some by an option of their name;
what differs is said at the field by `option`."""

import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from brittle.errors import UsageError

Value = bool | int | float | str  # values of a field
KEY = "brittle.option"  # key of the settings of `option` in the metadata of a dataclass field

YES_NO = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}  # in `--set`


def option(
    *, choices: Collection[str] = (), variants: tuple[str, ...] = (), alone: bool = False
) -> Mapping[str, Mapping[str, Any] | None]:
    """Return the metadata of a field that is not set by any value of its type: `field(default=…, metadata=option(…))`.

    It takes one of `choices`; where none is given, each of `variants` makes a score. What is set `alone` is set by
    `--set`, and no option of its name means it.
    """
    return {KEY: {"choices": (*choices,), "variants": variants, "alone": alone}}


NO_OPTION: Mapping[str, None] = {KEY: None}
"""The metadata of a field that is given in another way, as the noise is: None under `KEY`."""


@dataclass(frozen=True)
class Option:
    """A field as a user sets it: the `kind` of its value, its `default`, and as for `option`."""

    kind: type[Value]
    default: object
    choices: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    alone: bool = False

    def read(self, text: str, source: str) -> Value:
        """Return the value that `text` writes at the place `source`, which an error names."""
        try:
            return YES_NO[text.lower()] if self.kind is bool else self.kind(text)
        except (KeyError, ValueError) as error:
            expected = {bool: "true or false", int: "a whole number"}.get(self.kind, "a number")
            raise UsageError(f"{source} takes {expected}; found {text!r:.60}") from error


@cache
def options_of(kind: type) -> Mapping[str, Option]:
    """Return the fields of a dataclass of scores or of a noise family that a user sets, by their names."""
    option_by_field = {}
    for member in fields(kind):
        settings, (value, words) = member.metadata.get(KEY, {}), _kind(_hint(kind, member.name))
        if member.init and settings is not None and value is not None:
            option_by_field[member.name] = Option(value, member.default, **({"choices": words} | settings))
    return option_by_field


def _hint(kind: type, name: str) -> object:
    """Return the type of a field; None where it is written in names that exist for type checkers alone."""
    home = next(base for base in kind.__mro__ if name in inspect.get_annotations(base))
    try:
        return inspect.get_annotations(home, eval_str=True)[name]
    except NameError:
        return None


def _kind(hint: object) -> tuple[type[Value] | None, tuple[str, ...]]:
    """Return the type of one value, None where it cannot be written as one, and the words of a `Literal`."""
    if get_origin(hint) in (Union, UnionType):
        members = [member for member in get_args(hint) if member is not NoneType]
        return _kind(members[0]) if len(members) == 1 else (None, ())
    if get_origin(hint) is Literal and all(isinstance(word, str) for word in get_args(hint)):
        return str, get_args(hint)
    return (hint if hint in (bool, int, float, str) else None), ()  # type: ignore[return-value]
