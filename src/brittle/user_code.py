"""Code of the user's: run because the command line names it.

A name outside brittle's lists says where it stands: `FILE.py:NAME`, `PACKAGE.MODULE:NAME`. Only naming a file runs it.
"""

import ast
import hashlib
import importlib
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from brittle.errors import BrittleError, ModelError, ParameterError, UsageError, listed
from brittle.registry import missing

DIGEST = "__sha256__"  # attribute of a module made by `run_file` that holds the code that was run
Failure = Callable[[str], BrittleError]  # makes the error to raise of a sentence

_OWN = {"brittle", *sys.stdlib_module_names}

T = TypeVar("T")


def defined_in(path: str | Path) -> str:
    """Name in brackets the classes and functions of a Python file, which is read, not run; empty without any."""
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return ""
    names = [node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    return f" (it defines {listed(names)})" if names else ""


def run_file(path: Path, source: bytes, failure: Failure) -> ModuleType:
    """Run `source`, which lies in the file `path`, as a module: what is run is what is digested, no compiled copy."""
    digest = hashlib.sha256(os.fsencode(path.resolve()) + b"\0" + source).hexdigest()
    module = ModuleType(f"brittle_user_{digest[:16]}")
    module.__file__ = os.fspath(path)
    vars(module)[DIGEST] = hashlib.sha256(source).hexdigest()
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, os.fspath(path), "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        advice = import_advice(error, path)
        raise failure(
            f"running {path} failed{line_of(error, module)}: {type(error).__name__}: {error}{advice}"
        ) from error
    return module


def import_advice(error: BaseException, path: Path) -> str:
    """Return how a module beside the file `path` is found, where `error` says that there is none; else empty."""
    name = (error.name or "" if isinstance(error, ModuleNotFoundError) else "").partition(".")[0]
    beside = name and ((path.parent / f"{name}.py").is_file() or (path.parent / name).is_dir())
    return f"; modules beside the file are found with PYTHONPATH={path.parent}" if beside else ""


def import_module(place: str, name: str, failure: Failure) -> ModuleType:
    """Import the module `place`, such as `package.module`, for its `name`; never from the current folder."""
    try:
        return importlib.import_module(place)
    except (Exception, SystemExit) as error:
        file = Path(*place.split(".")).with_suffix(".py")
        beside = f"; the current folder is not searched: for the file in this folder write ./{file}:{name}"
        advice = beside if file.is_file() else ""
        raise failure(f"importing {place} failed: {type(error).__name__}: {error}{advice}") from error


def import_package(name: str, needed_by: str, advice: str) -> Any:
    """Return a package that `needed_by` needs, or a `ModelError` with what to do where it is not installed."""
    try:
        return importlib.import_module(name)
    except (ImportError, RuntimeError) as error:  # torchvision for another PyTorch raises a RuntimeError
        fault = f"{needed_by} needs {name}, which cannot be imported ({error})"
        raise ModelError("not_installed", f"{fault}; {advice}") from error


def line_of(error: BaseException, module: ModuleType) -> str:
    """Return the last line of the module that was being executed, in words; empty when it was none."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == module.__file__]
    return f" at line {frames[-1].lineno}" if frames else ""


def digests(things: Iterable[object]) -> dict[str, str] | None:
    """Return the sha256 of the files of classes and functions by name, without brittle's and Python's."""
    names = {str(getattr(thing, "__module__", None)) for thing in things}
    digest_by_name: dict[str, set[str]] = {}
    for module in [sys.modules.get(name) for name in names if name.partition(".")[0] not in _OWN]:
        digest = None if module is None else digest_of_module(module)
        if module is not None and digest is not None:
            digest_by_name.setdefault(Path(str(module.__file__)).name, set()).add(digest)
    return {name: " ".join(sorted(digest_by_name[name])) for name in sorted(digest_by_name)} or None


def digest_of_module(module: ModuleType) -> str | None:
    """Return the sha256 of the file of a module, as it was run; None where it has none."""
    path = getattr(module, "__file__", None)
    if DIGEST in vars(module) or path is None or not Path(path).is_file():
        return vars(module).get(DIGEST)
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def find_named(name: str) -> object:
    """Return the object behind `FILE.py:NAME` or `PACKAGE.MODULE:NAME`; None where `name` is neither."""
    if name.endswith(".py"):
        raise UsageError(f"{name} is a file{defined_in(name)}; name a class in it: {name}:CLASS")
    if ":" not in name:
        return None
    place, _, attribute = name.rpartition(":")
    if place.endswith(".py"):
        try:
            module = _run_once(Path(place).resolve(), Path(place).read_bytes())
        except OSError as error:
            raise UsageError(f"{place} cannot be read: {error.strerror or error}") from error
    else:
        module = import_module(place, attribute, ParameterError)
    if not hasattr(module, attribute):
        classes = ((name, value) for name, value in vars(module).items() if isinstance(value, type))
        own_names = [name for name, value in classes if value.__module__ == module.__name__]
        raise UsageError(f"{place} has no {attribute}; it has {', '.join(own_names) or 'nothing such'}")
    return getattr(module, attribute)


@cache
def _run_once(path: Path, source: bytes) -> ModuleType:
    """Return the module of a file, run once for all that is named of it."""
    return run_file(path, source, ParameterError)


def check_name(source: str, name: object, example: str) -> None:
    """Raise a `ParameterError` unless something from outside, found at `source`, is called by a name like `example`."""
    if not isinstance(name, str) or not re.fullmatch("[a-z][a-z0-9_]*", name):
        raise refused(source, f"has the name {name!r:.60}; expected one such as {example}")


def refused(source: str, why: str) -> ParameterError:
    """Return the error for something from outside, named by `source`, that cannot be used."""
    return ParameterError(f"{source} {why}")


@contextmanager
def failing(code: Any, method: str) -> Iterator[None]:
    """Name in a `ParameterError` the class or function from outside of which `method` fails; brittle's own goes on."""
    try:
        yield
    except BrittleError:
        raise
    except Exception as error:
        if code.__module__.partition(".")[0] == "brittle":
            raise
        module = sys.modules.get(code.__module__)
        line = "" if module is None or not hasattr(module, "__file__") else line_of(error, module)
        error_text = f"{type(error).__name__}: {error}".removesuffix(": ")
        name = method if " " in method else f"{code.__qualname__}.{method}"
        raise refused(name, f"failed{line}: {error_text}") from error


def kind_of(value: object) -> str:
    return f"the class {value.__qualname__}" if isinstance(value, type) else f"an object of type {type(value).__name__}"


def unknown(kind: str, name: str, names: Sequence[str], hint: str = "") -> UsageError:
    """Return the error for a name that is on no list; it says where an extension would have it."""
    near, lack = get_close_matches(name, names, 1), missing(kind, name)
    advice = f"did you mean {near[0]}? " if near else "separate names with blanks; " if "," in name else ""
    advice = f"it {lack}; " if lack else advice
    choices = ", ".join(names) or f"no names; a {kind} of your own is FILE.py:NAME"
    return UsageError(f"no {kind} is called {name!r}; {hint or advice}there are {choices}")
