"""What the code of a function or a class is, so that a run does not go on with another one."""

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
    """A digest of what a function or a class is, 16 hexadecimal digits.

    Of a function that is its bytecode, its defaults, what it holds of the function around it, and what it names of its
    module: values, objects, networks, functions of that module; of an object its class and what it holds. Of a class it
    is its methods, its properties and the values that it holds, and those of the classes of its module that it is
    derived from. Modules, classes and functions of other modules that it names are not looked at: the record of a run
    has the digest of the file in which it stands.
    """
    parts = _of_class(thing, set()) if isinstance(thing, type) else _parts(thing, set())
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _parts(value: Any, seen: set[int]) -> Iterator[str]:
    """What a value is, as texts that are the same in every process.

    `seen` holds the places in memory of functions and classes that were looked at, and of values that are being.
    """
    if id(value) in seen:
        yield type(value).__qualname__
    elif isinstance(value, torch.Tensor | np.ndarray):
        yield _numbers(value)
    elif isinstance(value, type):
        yield value.__qualname__
    elif (inside := _inside(value, seen)) is not None:
        seen.add(id(value))
        for one in inside:
            yield from _parts(one, seen)
        if not inspect.isfunction(value):
            seen.discard(id(value))
    elif isinstance(value, set | frozenset):
        yield from sorted(map(repr, value))
    else:
        yield re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def _inside(value: Any, seen: set[int]) -> Iterable[Any] | None:
    """What a function, a call with fixed arguments, a container or an object is made of; None of other values.

    An object is what it holds where it is called, or where its text says nothing of it.
    """
    if inspect.isfunction(value):
        return _of_function(value)
    if isinstance(value, partial):
        return (value.func, value.args, value.keywords)
    if inspect.ismethod(value):
        return (value.__func__, value.__self__)
    if isinstance(value, Mapping):
        return [one for key in sorted(value, key=str) for one in (key, value[key])]
    if isinstance(value, tuple | list):
        return (f"{len(value)} values", *value)
    own = type(value)
    told = own.__repr__ is not object.__repr__ and not callable(value) and not hasattr(own, "__dataclass_fields__")
    held = object.__getstate__(value)
    if told or inspect.ismodule(value) or (held is None and not hasattr(value, "__dict__")):
        return None
    return (own.__qualname__, *_of_class(own, seen), held)


def _of_class(kind: type, seen: set[int]) -> Iterator[str]:
    """A class and those of its module that it is derived from: methods, properties and values."""
    for one in kind.__mro__:
        if one.__module__ == kind.__module__ and id(one) not in seen:
            seen.add(id(one))
            yield one.__qualname__
            for name, value in sorted(vars(one).items()):
                value = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
                if inspect.isfunction(value) or not name.startswith(("__", "_abc_")):
                    yield name
                    yield from _parts(value, seen)


def _of_function(function: Any) -> Iterator[Any]:
    codes = [function.__code__]
    yield function.__qualname__
    for code in codes:
        codes += [one for one in code.co_consts if inspect.iscode(one)]
        plain = (one for one in code.co_consts if not inspect.iscode(one))
        constants = [sorted(map(repr, one)) if isinstance(one, frozenset) else one for one in plain]
        yield f"{code.co_code.hex()} {code.co_names} {constants!r}"
    held = [cell.cell_contents for cell in function.__closure__ or () if cell != CellType()]  # some are not set yet
    yield [function.__defaults__, function.__kwdefaults__, held]
    for name in sorted({name for code in codes for name in code.co_names} & function.__globals__.keys()):
        value = function.__globals__[name]
        same = inspect.isfunction(value) and value.__module__ == function.__module__
        elsewhere = inspect.ismodule(value) or inspect.isroutine(value) or isinstance(value, type)
        if same or not elsewhere:
            yield from (name, value)


def _numbers(value: torch.Tensor | np.ndarray) -> str:
    if isinstance(value, np.ndarray) and value.dtype.kind not in "biufc":
        return f"{value.dtype} {value.tolist()!r}"
    content = torch.as_tensor(value).detach().cpu()
    content = (content.dequantize() if content.is_quantized else content).to_dense().contiguous()
    digest = hashlib.sha256(content.reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest()
    return f"{content.dtype} {list(content.shape)} {digest}"
