"""What the code of a function is, so that a run does not go on with another one."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch

DEEPEST = 6
"""Functions and values within one another that are looked at."""

PLAIN = (bool, int, float, complex, str, bytes, tuple, list, torch.Tensor, np.ndarray)
"""What of a module's own names a function is looked at for, beside functions of that module."""


def code_digest(function: Callable[..., Any]) -> str:
    """The first 16 hexadecimal digits of the sha256 of what a function is.

    That is its source, or its bytecode where there is no source; its defaults, and what it holds of the function
    around it; the numbers, texts, arrays and functions of its module that it names; of an object that can be called
    its class and what it holds. Classes and other modules that it names are not looked at: the record of a run has the
    digest of the file in which it stands.

    Args:
        function: anything that can be called.
    """
    content = "\n".join(_Parts().of(function, DEEPEST))
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass
class _Parts:
    """What values are, as texts that are the same in every process.

    Attributes:
        seen: functions that were looked at, by their places in memory.
    """

    seen: set[int] = field(default_factory=set)

    def of(self, value: Any, depth: int) -> Iterator[str]:
        """What a value is."""
        if depth == 0:
            yield type(value).__qualname__
        elif isinstance(value, torch.Tensor | np.ndarray):
            content = torch.as_tensor(value).detach().cpu().contiguous()
            digest = hashlib.sha256(content.reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest()
            yield f"{content.dtype} {list(content.shape)} {digest}"
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
        elif callable(value) and hasattr(value, "__dict__"):
            yield from self.all((type(value), vars(value)), depth)
        else:
            yield re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))

    def all(self, values: Iterable[Any], depth: int) -> Iterator[str]:
        """What some values are, one level deeper."""
        for one in values:
            yield from self.of(one, depth - 1)

    def _function(self, function: Any, depth: int) -> Iterator[str]:
        if id(function) in self.seen:
            yield function.__qualname__
            return
        self.seen.add(id(function))
        yield from _source(function, function.__code__)
        held = tuple(cell.cell_contents for cell in function.__closure__ or ())
        yield from self.all((function.__defaults__, function.__kwdefaults__, held), depth)
        for name in sorted(set(function.__code__.co_names) & function.__globals__.keys()):
            value = function.__globals__[name]
            same = inspect.isfunction(value) and value.__module__ == function.__module__
            if same or isinstance(value, PLAIN):
                yield from self.all((name, value), depth)


def _source(thing: Any, code: Any) -> Iterator[str]:
    """The source of a function or a class; of a function without any its bytecode."""
    yield thing.__qualname__
    try:
        yield inspect.getsource(thing)
    except (OSError, TypeError):
        if code is not None:
            constants = [one for one in code.co_consts if not inspect.iscode(one)]
            yield f"{code.co_code.hex()} {code.co_names} {constants!r}"
