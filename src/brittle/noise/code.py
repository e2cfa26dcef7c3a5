"""What the code of a function is, so that a run does not go on with another one."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch

DEEPEST = 6
"""Functions and values within one another that are looked at."""


def code_digest(function: Callable[..., Any]) -> str:
    """The first 16 hexadecimal digits of the sha256 of what a function is.

    That is its source, or its bytecode where there is no source; its defaults, and what it holds of the function
    around it; of an object that can be called its class and what it holds. Functions that it calls by a name of their
    module are not looked at: the record of a run has the digest of that file.

    Args:
        function: anything that can be called.
    """
    content = "\n".join(_parts(function, DEEPEST))
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _parts(value: Any, depth: int) -> Iterator[str]:
    """What a value is, as texts that are the same in every process."""
    if depth == 0:
        yield type(value).__qualname__
    elif isinstance(value, torch.Tensor | np.ndarray):
        content = torch.as_tensor(value).detach().cpu().contiguous()
        yield f"{content.dtype} {list(content.shape)} {hashlib.sha256(content.numpy().tobytes()).hexdigest()}"
    elif isinstance(value, partial):
        yield from _all((value.func, value.args, value.keywords), depth)
    elif inspect.ismethod(value):
        yield from _all((value.__func__, value.__self__), depth)
    elif inspect.isfunction(value):
        yield from _source(value, value.__code__)
        held = tuple(cell.cell_contents for cell in value.__closure__ or ())
        yield from _all((value.__defaults__, value.__kwdefaults__, held), depth)
    elif isinstance(value, type):
        yield from _source(value, None)
    elif isinstance(value, Mapping):
        yield from _all([one for key in sorted(value, key=str) for one in (key, value[key])], depth)
    elif isinstance(value, tuple | list):
        yield f"{len(value)} values"
        yield from _all(value, depth)
    elif callable(value) and hasattr(value, "__dict__"):
        yield from _all((type(value), vars(value)), depth)
    else:
        yield re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def _all(values: Any, depth: int) -> Iterator[str]:
    for one in values:
        yield from _parts(one, depth - 1)


def _source(thing: Any, code: Any) -> Iterator[str]:
    """The source of a function or a class; of a function without any its bytecode."""
    yield thing.__qualname__
    try:
        yield inspect.getsource(thing)
    except (OSError, TypeError):
        if code is not None:
            constants = [one for one in code.co_consts if not inspect.iscode(one)]
            yield f"{code.co_code.hex()} {code.co_names} {constants!r}"
