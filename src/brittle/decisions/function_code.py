"""What the code of a function or a class is, so that a run does not go on with another one."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import CodeType
from typing import Any

import numpy as np
import torch


def code_digest(function: Callable[..., Any]) -> str:
    """The first 16 hexadecimal digits of the sha256 of what a function is.

    That is its bytecode, its defaults, what it holds of the function around it, and what it names of its module:
    values, objects, networks, functions of that module; of an object its class and what it holds. Modules, classes and
    functions of other modules that it names are not looked at: the record of a run has the digest of the file in which
    it stands.

    Args:
        function: anything that can be called.
    """
    return _digest(_parts(function, set()))


def class_digest(kind: type) -> str:
    """The first 16 hexadecimal digits of the sha256 of what a class is.

    That is its methods as `code_digest` has functions, its properties and the values that it holds; and those of the
    classes of its module that it is derived from.
    """
    return _digest(_of_class(kind, set()))


def _digest(parts: Iterator[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _parts(value: Any, seen: set[int]) -> Iterator[str]:
    """What a value is, as texts that are the same in every process.

    `seen` holds the places in memory of functions and classes that were looked at, and of values that are being.
    """
    if id(value) in seen:
        yield type(value).__qualname__
    elif isinstance(value, torch.Tensor | np.ndarray):
        yield _numbers(value)
    elif inspect.isfunction(value):
        seen.add(id(value))
        yield from _of_function(value, seen)
    elif isinstance(value, type):
        yield value.__qualname__
    elif inspect.ismethod(value) or isinstance(value, partial | Mapping | tuple | list) or _has_parts(value):
        seen.add(id(value))
        for one in _inside(value, seen):
            yield from _parts(one, seen)
        seen.discard(id(value))
    elif isinstance(value, set | frozenset):
        yield from sorted(map(repr, value))
    else:
        yield re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def _inside(value: Any, seen: set[int]) -> Iterator[Any]:
    """What a method, a call with fixed arguments, a container or an object is made of."""
    if isinstance(value, partial):
        yield from (value.func, value.args, value.keywords)
    elif inspect.ismethod(value):
        yield from (value.__func__, value.__self__)
    elif isinstance(value, Mapping):
        yield from (one for key in sorted(value, key=str) for one in (key, value[key]))
    elif isinstance(value, tuple | list):
        yield from (f"{len(value)} values", *value)
    else:
        yield from (type(value).__qualname__, *_of_class(type(value), seen), dict(getattr(value, "__dict__", {})))
        yield from (getattr(value, name, None) for one in type(value).__mro__ for name in _slots(one))


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


def _of_function(function: Any, seen: set[int]) -> Iterator[str]:
    yield function.__qualname__
    yield from _bytecode(function.__code__)
    held = [_content(cell) for cell in function.__closure__ or ()]
    yield from _parts([function.__defaults__, function.__kwdefaults__, held], seen)
    for name in sorted(_names(function.__code__) & function.__globals__.keys()):
        value = function.__globals__[name]
        same = inspect.isfunction(value) and value.__module__ == function.__module__
        elsewhere = inspect.ismodule(value) or inspect.isroutine(value) or isinstance(value, type)
        if same or not elsewhere:
            yield name
            yield from _parts(value, seen)


def _numbers(value: torch.Tensor | np.ndarray) -> str:
    """Type, shape and digest of the numbers of an array; the text of one that holds none."""
    if isinstance(value, np.ndarray) and value.dtype.kind not in "biufc":
        return f"{value.dtype} {value.tolist()!r}"
    content = torch.as_tensor(value).detach().cpu()
    content = (content.dequantize() if content.is_quantized else content).to_dense().contiguous()
    digest = hashlib.sha256(content.reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest()
    return f"{content.dtype} {list(content.shape)} {digest}"


def _has_parts(value: Any) -> bool:
    """Whether an object is what it holds: it is called, or its text says nothing of it."""
    own = type(value)
    told = own.__repr__ is not object.__repr__ and not callable(value) and not hasattr(own, "__dataclass_fields__")
    return not told and not inspect.ismodule(value) and (hasattr(value, "__dict__") or any(map(_slots, own.__mro__)))


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _content(cell: Any) -> Any:
    """What a function holds of the one around it; nothing where that is not set yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _names(code: CodeType) -> set[str]:
    """The names that a code reads, and the codes within it."""
    return set(code.co_names).union(*(_names(one) for one in code.co_consts if inspect.iscode(one)))


def _bytecode(code: CodeType) -> Iterator[str]:
    """What a code does, and the codes within it."""
    plain = (one for one in code.co_consts if not inspect.iscode(one))
    constants = [sorted(map(repr, one)) if isinstance(one, frozenset) else one for one in plain]
    yield f"{code.co_code.hex()} {code.co_names} {constants!r}"
    for one in code.co_consts:
        if inspect.iscode(one):
            yield from _bytecode(one)
