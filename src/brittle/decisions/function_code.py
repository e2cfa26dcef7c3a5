"""What the code of a function or a class is, so that a run does not go on with another one."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass
from functools import partial
from types import CodeType
from typing import Any

import numpy as np
import torch

DEEPEST = 40
"""Functions and values within one another that are looked at."""


def code_digest(function: Callable[..., Any]) -> str:
    """The first 16 hexadecimal digits of the sha256 of what a function is.

    That is its source, or its bytecode where there is no source or it has no name of its own; its defaults, and what it
    holds of the function around it; what it names of its module: values, objects, networks, functions of that module;
    of an object its class and what it holds. Modules, classes and functions of other modules that it names are not
    looked at: the record of a run has the digest of the file in which it stands.

    Args:
        function: anything that can be called.
    """
    return _digest(_Parts().of(function, DEEPEST))


def class_digest(kind: type) -> str:
    """The first 16 hexadecimal digits of the sha256 of what a class is.

    That is its source, its methods as `code_digest` has functions, its properties and the values that it holds; and
    those of the classes of its module that it is derived from.
    """
    return _digest(_Parts().of_class(kind, DEEPEST))


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass
class _Parts:
    """What values are, as texts that are the same in every process.

    Attributes:
        seen: functions and classes that were looked at, by their places in memory.
        within: values that are being looked at, likewise.
    """

    seen: set[int] = field(default_factory=set)
    within: set[int] = field(default_factory=set)

    def of(self, value: Any, depth: int) -> Iterator[str]:
        """What a value is."""
        if depth == 0 or id(value) in self.within:
            yield type(value).__qualname__
            return
        self.within.add(id(value))
        yield from self._of(value, depth)
        self.within.discard(id(value))

    def _of(self, value: Any, depth: int) -> Iterator[str]:
        if isinstance(value, torch.Tensor | np.ndarray):
            yield _numbers(value)
        elif isinstance(value, partial):
            yield from self.all((value.func, value.args, value.keywords), depth)
        elif inspect.ismethod(value):
            yield from self.all((value.__func__, value.__self__), depth)
        elif inspect.isfunction(value):
            yield from self._function(value, depth)
        elif isinstance(value, type):
            yield from _source(value, None)
        elif isinstance(value, Mapping):
            yield from self.all([one for key in sorted(value, key=str) for one in (key, value[key])], depth)
        elif isinstance(value, tuple | list):
            yield f"{len(value)} values"
            yield from self.all(value, depth)
        elif isinstance(value, set | frozenset):
            yield from sorted(map(repr, value))
        elif _has_parts(value):
            yield from self._object(value, depth)
        else:
            yield re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))

    def all(self, values: Iterable[Any], depth: int) -> Iterator[str]:
        """What some values are, one level deeper."""
        for one in values:
            yield from self.of(one, depth - 1)

    def of_class(self, kind: type, depth: int) -> Iterator[str]:
        """A class and those of its module that it is derived from: sources, methods, properties and values."""
        for one in kind.__mro__:
            if one.__module__ == kind.__module__ and id(one) not in self.seen:
                self.seen.add(id(one))
                yield from _source(one, None)
                yield from self.all(_members(one), depth)

    def _object(self, value: Any, depth: int) -> Iterator[str]:
        """The classes of an object that stand in the module of the first of them, and what it holds."""
        kind = type(value)
        yield from self.of_class(kind, depth)
        held = {"": kind.__qualname__} | dict(getattr(value, "__dict__", {}))
        slots = [name for one in kind.__mro__ for name in _slots(one) if hasattr(value, name)]
        yield from self.of(held | {name: getattr(value, name) for name in slots}, depth - 1)

    def _function(self, function: Any, depth: int) -> Iterator[str]:
        if id(function) in self.seen:
            yield function.__qualname__
            return
        self.seen.add(id(function))
        yield from _source(function, function.__code__)
        held = tuple(_held(cell) for cell in function.__closure__ or ())
        yield from self.all((function.__defaults__, function.__kwdefaults__, held), depth)
        for name in sorted(_names(function.__code__) & function.__globals__.keys()):
            value = function.__globals__[name]
            same = inspect.isfunction(value) and value.__module__ == function.__module__
            elsewhere = inspect.ismodule(value) or inspect.isroutine(value) or isinstance(value, type)
            if same or not elsewhere:
                yield from self.all((name, value), depth)


def _members(kind: type) -> Iterator[Any]:
    """The functions of a class, those of its properties, and the values that it holds, each after its name."""
    for name, value in sorted(vars(kind).items()):
        if isinstance(value, property):
            yield from (name, value.fget)
        elif isinstance(value, staticmethod | classmethod):
            yield from (name, value.__func__)
        elif inspect.isfunction(value) or not name.startswith(("__", "_abc_")):
            yield from (name, value)


def _numbers(value: torch.Tensor | np.ndarray) -> str:
    """Type, shape and digest of the numbers of an array; the text of one that holds none."""
    if isinstance(value, np.ndarray) and value.dtype.kind not in "biufc":
        return f"{value.dtype} {value.tolist()!r}"
    content = torch.as_tensor(value).detach().cpu()
    content = (content.dequantize() if content.is_quantized else content).to_dense().contiguous()
    digest = hashlib.sha256(content.reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest()
    return f"{content.dtype} {list(content.shape)} {digest}"


def _has_parts(value: Any) -> bool:
    """Whether an object is what it holds: it is called, a network or a data class, or its text says nothing of it."""
    if inspect.ismodule(value):
        return False
    kind: type = type(value)
    known = kind.__repr__ is object.__repr__ or is_dataclass(value) or callable(value)
    return known and (hasattr(value, "__dict__") or any(_slots(one) for one in kind.__mro__))


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _held(cell: Any) -> Any:
    """What a function holds of the one around it; nothing where that is not set yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _names(code: CodeType) -> set[str]:
    """The names that a code reads, and the codes within it."""
    inner = (one for one in code.co_consts if inspect.iscode(one))
    return set(code.co_names).union(*map(_names, inner))


def _source(thing: Any, code: CodeType | None) -> Iterator[str]:
    """The source of a function or a class; of a function without any its bytecode, of one without a name both."""
    yield thing.__qualname__
    try:
        yield inspect.getsource(thing)
    except (OSError, TypeError):
        if code is not None:
            yield from _bytecode(code)
        return
    if code is not None and code.co_name == "<lambda>":
        yield from _bytecode(code)


def _bytecode(code: CodeType) -> Iterator[str]:
    """What a code does, and the codes within it."""
    plain = (one for one in code.co_consts if not inspect.iscode(one))
    constants = [sorted(map(repr, one)) if isinstance(one, frozenset) else one for one in plain]
    yield f"{code.co_code.hex()} {code.co_names} {constants!r}"
    for one in code.co_consts:
        if inspect.iscode(one):
            yield from _bytecode(one)
