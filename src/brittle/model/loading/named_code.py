"""What a name outside brittle's own lists stands for.

It is an entry point of an installed package, or says where it stands: `FILE.py:NAME`, `PACKAGE.MODULE:NAME`. A file is
run because it is so named, and at no other time; a package that is installed is imported when one of its names is asked
for, or all are listed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from brittle.errors import BrittleError, ParameterError, UsageError
from brittle.model.loading.user_code import defined_in, import_module, line_of, offered, run_file

NAME = re.compile(r"[a-z][a-z0-9_]*")
"""What a thing from outside is called, so that it can stand in tables, in labels and in options."""

T = TypeVar("T")


def find_named(
    name: str, group: str, wanted: Callable[[object], bool] = lambda found: isinstance(found, type)
) -> object:
    """What `name` stands for; None where it stands for nothing.

    Args:
        name: of an entry point, or `FILE.py:NAME`, or `PACKAGE.MODULE:NAME`.
        group: of the entry points.
        wanted: whether something in a file is of the kind that is looked for, for messages; by default any class.

    Raises:
        UsageError: there is no such file, or no such name in it.
        ParameterError: its code fails, or an entry point calls itself by another name.
    """
    if name.endswith(".py"):
        raise UsageError(f"{name} is a file{defined_in(name)}; name a class in it: {name}:CLASS")
    if ":" not in name:
        point = offered(group).get(name)
        return None if point is None else _loaded(point)
    place, _, attribute = name.rpartition(":")
    if place.endswith(".py"):
        try:
            module = _run_once(Path(place).resolve(), Path(place).read_bytes())
        except OSError as error:
            raise UsageError(f"{place} cannot be read: {error.strerror or error}") from error
    else:
        module = import_module(place, attribute, ParameterError)
    if not hasattr(module, attribute):
        found = ((one, value) for one, value in vars(module).items() if wanted(value))
        there = [one for one, value in found if not isinstance(value, type) or value.__module__ == module.__name__]
        raise UsageError(f"{place} has no {attribute}; it has {', '.join(there) or 'nothing such'}")
    return getattr(module, attribute)


def find_installed(group: str, find: Callable[[str], T]) -> tuple[dict[str, T], list[str]]:
    """What installed packages offer in an entry point group, by name, and for each that cannot be used why."""
    found: dict[str, T] = {}
    faults: list[str] = []
    for name in offered(group):
        try:
            found[name] = find(name)
        except BrittleError as error:
            faults.append(str(error.args[0]))
    return found, faults


def check_name(where: str, name: object, example: str) -> None:
    """Raise unless something from outside, found at `where`, is called by a name such as `example`.

    Raises:
        ParameterError: it is not.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise refused(where, f"has the name {name!r:.60}; expected one such as {example}")


def refused(where: str, why: str) -> ParameterError:
    """The error for something from outside, named by `where`, that cannot be used."""
    return ParameterError(f"{where} {why}")


@contextmanager
def failing(kind: type, method: str) -> Iterator[None]:
    """Name the class from outside whose `method` fails within; what fails in brittle's own is a defect, and goes on.

    Raises:
        ParameterError: the method of a class from outside failed.
    """
    try:
        yield
    except BrittleError:
        raise
    except Exception as error:
        if kind.__module__.partition(".")[0] == "brittle":
            raise
        seen = f"{type(error).__name__}: {error}".removesuffix(": ")
        module = sys.modules.get(kind.__module__)
        line = "" if module is None or not hasattr(module, "__file__") else line_of(error, module)
        raise refused(f"{kind.__qualname__}.{method}", f"failed{line}: {seen}") from error


def kind_of(found: object) -> str:
    """What something is, in words."""
    return f"the class {found.__qualname__}" if isinstance(found, type) else f"an object of type {type(found).__name__}"


def unknown(what: str, name: str, known: Sequence[str], hint: str = "") -> UsageError:
    """The error for a name that is on no list."""
    near = get_close_matches(name, known, 1)
    advice = f"did you mean {near[0]}? " if near else "separate names with blanks; " if "," in name else ""
    there = ", ".join(known) or f"no names; a {what} of your own is FILE.py:NAME"
    return UsageError(f"no {what} is called {name!r}; {hint or advice}there are {there}")


@cache
def _run_once(path: Path, source: bytes) -> ModuleType:
    """The module of a file, run once for all that is named of it."""
    return run_file(path, source, ParameterError)


def _loaded(point: EntryPoint) -> object:
    """What an entry point stands for, under the name that it is offered by."""
    package = "a package" if point.dist is None else point.dist.name
    try:
        found = point.load()
    except Exception as error:
        seen = f"{type(error).__name__}: {error}"
        raise ParameterError(f"{point.name} of {package} cannot be loaded ({point.value}): {seen}") from error
    if getattr(found, "name", None) != point.name:
        raise refused(f"{point.value} of {package}", f"is offered as {point.name!r} and calls itself another name")
    return found
