"""Digests of the code of functions and classes, so that a run does not go on with other code."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import CellType
from typing import Any

import numpy as np
import torch


def code_digest(thing: Callable[..., Any] | type) -> str:
    """Return a digest of the code of a function or a class, 16 hexadecimal digits.

    For a function it covers its bytecode, its defaults, its closure, and the names of its module that it uses: values,
    objects, networks, functions of that module; for an object its class and its state. For a class it covers its
    methods, its properties and its values, and those of its base classes in the same module. Modules, classes and
    functions of other modules are not covered: the record of a run has the digest of the file of the code.
    """
    parts = _class_parts(thing, set()) if isinstance(thing, type) else _parts(thing, set())
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _parts(value: Any, visited: set[int]) -> Iterator[str]:
    """Yield the parts of a value as texts that are the same in every process.

    `visited` holds the places in memory of functions and classes that were looked at, and of values that are being.
    """
    if id(value) in visited:
        yield type(value).__qualname__
    elif isinstance(value, torch.Tensor | np.ndarray):
        yield _number_text(value)
    elif isinstance(value, type):
        yield value.__qualname__
    elif (inside := _inside(value, visited)) is not None:
        visited.add(id(value))
        for part in inside:
            yield from _parts(part, visited)
        if not inspect.isfunction(value):
            visited.discard(id(value))
    elif isinstance(value, set | frozenset):
        yield from sorted(map(repr, value))
    else:
        yield re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def _inside(value: Any, visited: set[int]) -> Iterable[Any] | None:
    """Return the parts of a function, a partial call, a container or an object; None for other values.

    An object counts by its state if it is callable, or if its `repr` does not show the state.
    """
    if inspect.isfunction(value):
        return _function_parts(value)
    if isinstance(value, partial):
        return (value.func, value.args, value.keywords)
    if inspect.ismethod(value):
        return (value.__func__, value.__self__)
    if isinstance(value, Mapping):
        return [entry for key in sorted(value, key=str) for entry in (key, value[key])]
    if isinstance(value, tuple | list):
        return (f"{len(value)} values", *value)
    kind = type(value)
    is_shown = kind.__repr__ is not object.__repr__ and not hasattr(kind, "__dataclass_fields__")
    state = object.__getstate__(value)
    is_empty = state is None and not hasattr(value, "__dict__")
    if (is_shown and not callable(value)) or inspect.ismodule(value) or is_empty:
        return None
    return (kind.__qualname__, *_class_parts(kind, visited), state)


def _class_parts(kind: type, visited: set[int]) -> Iterator[str]:
    """Yield the methods, properties and values of a class and of its base classes in the same module."""
    for base in kind.__mro__:
        if base.__module__ == kind.__module__ and id(base) not in visited:
            visited.add(id(base))
            yield base.__qualname__
            for name, value in sorted(vars(base).items()):
                value = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
                if inspect.isfunction(value) or not name.startswith(("__", "_abc_")):
                    yield name
                    yield from _parts(value, visited)


def _function_parts(function: Any) -> Iterator[Any]:
    codes = [function.__code__]
    yield function.__qualname__
    for code in codes:
        codes += [constant for constant in code.co_consts if inspect.iscode(constant)]
        plain = (constant for constant in code.co_consts if not inspect.iscode(constant))
        constants = [sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant for constant in plain]
        yield f"{code.co_code.hex()} {code.co_names} {constants!r}"
    cells = [cell.cell_contents for cell in function.__closure__ or () if cell != CellType()]  # a cell may be empty yet
    yield [function.__defaults__, function.__kwdefaults__, cells]
    for name in sorted({name for code in codes for name in code.co_names} & function.__globals__.keys()):
        value = function.__globals__[name]
        same = inspect.isfunction(value) and value.__module__ == function.__module__
        elsewhere = inspect.ismodule(value) or inspect.isroutine(value) or isinstance(value, type)
        if same or not elsewhere:
            yield from (name, value)


def _number_text(value: torch.Tensor | np.ndarray) -> str:
    if isinstance(value, np.ndarray) and value.dtype.kind not in "biufc":
        return f"{value.dtype} {value.tolist()!r}"
    content = torch.as_tensor(value).detach().cpu()
    content = (content.dequantize() if content.is_quantized else content).to_dense().contiguous()
    digest = hashlib.sha256(content.reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest()
    return f"{content.dtype} {list(content.shape)} {digest}"
