"""Digests of functions and classes of the user's, and of fitted estimators, by which they are recognised."""

import hashlib
import inspect
import io
import marshal
import operator
import pickle
import sys
import tokenize
from collections.abc import Iterator
from types import CellType
from typing import Any

import numpy as np
import torch

CHANGES_NOTHING = frozenset(  # attributes that change no prediction
    ("n_jobs", "verbose", "_sklearn_version", "_stop_words_id", "_has_sorted_indices", "_has_canonical_format")
)


def code_digest(thing: Any) -> str:
    """Return a digest of the code of a function, an object or a class and of what it names in its module, 16 digits."""
    return _digest(thing, getattr(getattr(thing, "func", thing), "__module__", None) or "").hex()[:16]


def estimator_digest(estimator: Any) -> str | None:
    """Return the sha256 over a pickle of a fitted estimator, `CHANGES_NOTHING` left out: a detector is tied to it.

    It is the same in every process, after `pickle` and skops, and after predictions; estimators with one digest load as
    the same one. Functions count by their names, as the code of a network does. None where a part of it cannot be
    pickled, as a lambda, a function with a closure, a lock or a file.
    """
    try:
        return _digest(estimator).hex()
    except Exception:  # noqa: BLE001 parts are pickled by code of their own
        return None


def _digest(value: Any, module: str | None = None) -> bytes:
    file = io.BytesIO()
    _Pickler(file, module).dump(value)
    return hashlib.sha256(file.getbuffer()).digest()


class _Pickler(pickle.Pickler):
    """A pickle that does not depend on which equal texts or arrays are one object, on the order of sets, or on what
    predictions leave behind. `joblib.hash` passes over masks, attributes of arrays and the order of dictionaries. With
    a `module` functions and classes of it count by their code, and what cannot be pickled counts by its type."""

    def __init__(self, file: io.BytesIO, module: str | None) -> None:
        super().__init__(file, protocol=4)
        self.module = module

    def persistent_id(self, part: Any) -> bytes | None:
        """Return the digest that stands for text, bytes, sets and numbers of NumPy."""
        kind = type(part)
        if kind in (str, bytes):
            return _joined(kind, part if kind is bytes else part.encode("utf-8", "surrogatepass"))
        if kind in (set, frozenset):
            return _joined(kind, *sorted(_digest(entry, self.module) for entry in part))
        if isinstance(part, np.dtype):
            return _joined(np.dtype, repr(part).encode())
        plain = kind in (np.ndarray, np.memmap) or (isinstance(part, np.generic) and kind.__module__ == "numpy")
        if plain and not part.dtype.hasobject:
            return _joined(np.ndarray if isinstance(part, np.ndarray) else kind, *_numbers(np.asarray(part)))
        return None

    def reducer_override(self, part: Any) -> Any:
        """Return a stand-in for code, estimators, trees, tensors, masked arrays and arrays with attributes."""
        kind, ours = type(part), type(part).__module__.startswith("sklearn.")
        if self.module is not None and (code := _reduced_code(part, self.module)) is not None:
            return code
        draws = np.random.RandomState if ours else ()  # to fit: no prediction of scikit-learn's own is drawn
        if hasattr(kind, "get_params") or kind.__module__.startswith("scipy.sparse."):
            reduced = part.__reduce_ex__(4)
            if isinstance(reduced, str) or len(reduced) < 3 or not isinstance(reduced[2], dict):
                return reduced
            lasting = {k: v for k, v in reduced[2].items() if k not in CHANGES_NOTHING and not isinstance(v, draws)}
            return (*reduced[:2], lasting, *reduced[3:])
        if ours and kind.__name__ == "Bunch":
            return dict, (), None, None, iter(part.items())  # its attributes are its items
        if ours and hasattr(kind, "get_tree_stats"):
            make, args, state = part.__reduce__()
            return make, args, tuple(value for value in state if not isinstance(value, int))  # it counts its look-ups
        if kind is torch.Tensor:
            plain = part.detach().cpu()
            plain = (plain.dequantize() if plain.is_quantized else plain).to_dense().contiguous()
            numbers = plain.reshape(-1).view(torch.uint8).numpy()
            return kind, (str(part.dtype), tuple(part.shape), part.requires_grad, numbers), vars(part)
        if kind is np.ma.MaskedArray:
            return kind, (part.data, np.ma.getmaskarray(part), part.fill_value, part.hardmask)
        if issubclass(kind, np.ndarray) and not kind.__module__.startswith("numpy") and _reduces_as_array(kind):
            return kind, (part.view(np.ndarray),), vars(part)
        return NotImplemented


def _reduces_as_array(kind: type) -> bool:
    return all(getattr(kind, name) is getattr(np.ndarray, name) for name in ("__reduce__", "__reduce_ex__"))


def _numbers(array: np.ndarray) -> list[bytes]:
    """Type, shape and numbers; of fields one by one, as between them lies what nobody wrote."""
    if array.dtype.names:
        return [part for name in array.dtype.names for part in (name.encode(), *_numbers(array[name]))]
    return [f"{array.dtype!r}{array.shape}".encode(), array.tobytes()]


def _joined(kind: type, *parts: bytes) -> bytes:
    digest = hashlib.sha256(kind.__name__.encode())
    for part in parts:
        digest.update(b" %d " % len(part))
        digest.update(part)
    return digest.digest()


def _reduced_code(part: Any, module: str) -> Any:
    """Return the stand-in for a class or a function of `module`, and for what cannot be pickled; None for others."""
    name = getattr(part, "__qualname__", getattr(part, "__name__", type(part).__qualname__))
    is_code = isinstance(part, type) or inspect.isfunction(part)
    if is_code and ((part.__module__ == module != "builtins") or not _is_found(part, name)):
        return str, (name,), list(_class_parts(part) if isinstance(part, type) else _function_parts(part))
    try:
        if not isinstance(part, type):
            part.__reduce_ex__(4)
    except Exception:  # noqa: BLE001 parts are pickled by code of their own
        return str, (name,)
    return None


def _is_found(part: Any, name: str) -> bool:
    """Return whether pickle finds a class or a function again, by its module and its name."""
    try:
        return operator.attrgetter(name)(sys.modules[part.__module__]) is part
    except (KeyError, AttributeError):
        return False


def _class_parts(kind: type) -> Iterator[Any]:
    """Yield the methods, properties and values of a class and of its base classes in the same module."""
    for base in kind.__mro__:
        for name, value in sorted(vars(base).items()) if base.__module__ == kind.__module__ else ():
            value = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
            if inspect.isfunction(value) or not name.startswith(("__", "_abc_")):
                yield from (name, value)


def _function_parts(function: Any) -> Iterator[Any]:
    """Yield the source of a function, its bytecode where it has none, its defaults, its closure, and what it names."""
    codes = [function.__code__]
    for code in codes:
        codes += [constant for constant in code.co_consts if inspect.iscode(constant)]
    try:
        yield inspect.getsource(function)
    except (OSError, TypeError, SyntaxError, tokenize.TokenError):
        yield marshal.dumps(codes[0], 2)
    if function.__name__ == "<lambda>":  # several may share a line of the source
        for code in codes:
            yield (code.co_code, [part for part in code.co_consts if not inspect.iscode(part)], code.co_names)
    cells = [cell.cell_contents for cell in function.__closure__ or () if cell != CellType()]  # a cell may be empty yet
    yield from (function.__defaults__, function.__kwdefaults__, cells)
    names = {name for code in codes for name in code.co_names} & function.__globals__.keys()
    yield {name: function.__globals__[name] for name in sorted(names)}
