"""Code of the user's, run because the command line names it, or a package that is installed offers it."""

from __future__ import annotations

import ast
import hashlib
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

from brittle.errors import BrittleError, listed

DIGEST = "__sha256__"
"""Where a module that `run_file` made says what was run."""

Failure = Callable[[str], BrittleError]
"""Makes the error to raise of a sentence."""

_OWN = {"brittle", *sys.stdlib_module_names}


def defined_in(path: str | Path) -> str:
    """In brackets the classes and functions that a file of Python defines, read and not run; empty where none is."""
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return ""
    names = [node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    return f" (it defines {listed(names, 5)})" if names else ""


def run_file(path: Path, source: bytes, failure: Failure) -> ModuleType:
    """Run `source`, which is what lies in the file `path`, as a module.

    What is run is what is digested, so no compiled copy is looked for. Where it fails, `failure` makes the error.
    """
    own = hashlib.sha256(os.fsencode(path.resolve()) + b"\0" + source).hexdigest()
    module = ModuleType(f"brittle_user_{own[:16]}")
    module.__file__ = os.fspath(path)
    vars(module)[DIGEST] = hashlib.sha256(source).hexdigest()
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, os.fspath(path), "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        beside = isinstance(error, ModuleNotFoundError) and (path.parent / f"{error.name}.py").exists()
        advice = f"; modules beside the file are found with PYTHONPATH={path.parent}" if beside else ""
        raise failure(
            f"running {path} failed{line_of(error, module)}: {type(error).__name__}: {error}{advice}"
        ) from error
    return module


def line_of(error: BaseException, module: ModuleType) -> str:
    """The last line of the module that was being executed, in words; empty when it was none."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == module.__file__]
    return f" at line {frames[-1].lineno}" if frames else ""


def import_module(place: str, name: str, failure: Failure) -> ModuleType:
    """Import the module `place`, such as `package.module`, of which `name` is wanted; the current folder is not
    searched. Where it is not there or fails, `failure` makes the error."""
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{place}.".startswith(f"{error.name}."):
            raise failure(f"importing {place} failed: no module {error.name}") from error
        file = Path(*place.split(".")).with_suffix(".py")
        advice = f"for the file in this folder write ./{file}:{name}" if file.is_file() else "is it installed?"
        raise failure(
            f"there is no module {place} (no module {error.name}); the current folder is not searched: {advice}",
        ) from error
    except (Exception, SystemExit) as error:
        raise failure(f"importing {place} failed: {type(error).__name__}: {error}") from error


def offered(group: str) -> dict[str, EntryPoint]:
    """Entry points of a group in installed packages, by name; nothing of them is loaded."""
    return {point.name: point for point in entry_points(group=group)}


def digests(things: Iterable[object]) -> dict[str, str] | None:
    """The sha256 of the files in which classes and functions stand, by the names of the files.

    Those of brittle and of Python's own library are left out, as are those typed into a session; what a file imports is
    not looked at. Files of one name have their digests one after the other. None where no file is left.
    """
    names = {str(getattr(thing, "__module__", None)) for thing in things}
    outside = [name for name in names if name.partition(".")[0] not in _OWN]
    files = {file for name in outside if (file := _file(sys.modules.get(name))) is not None}
    return {name: " ".join(sorted(own for one, own in files if one == name)) for name, _ in sorted(files)} or None


def _file(module: ModuleType | None) -> tuple[str, str] | None:
    """The name of the file of a module, and the sha256 of what was run or else lies there."""
    path = getattr(module, "__file__", None)
    if module is None or path is None:
        return None
    try:
        digest = vars(module).get(DIGEST) or hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return None
    return Path(path).name, digest
