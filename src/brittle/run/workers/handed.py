"""Workers of a run that was started in Python: each is handed the job, as the objects that it is made of.

What is handed over is pickled by this process, and read by one that it started and from it alone, never from a file.
"""

from __future__ import annotations

import base64
import inspect
import io
import json
import pickle
import sys
from importlib import import_module
from typing import Any, NoReturn

from brittle.decisions.function_code import class_digest, code_digest
from brittle.errors import ParameterError
from brittle.run.job import Job
from brittle.run.workers.crew import Crew
from brittle.run.workers.service import serve


def crew_for(job: Job, size: int) -> Crew:
    """Processes of this machine that compute the shards of a job; each gets a copy of its model and of its data.

    Raises:
        ParameterError: the number of workers is none that can be started, or something in the job cannot be sent to
            another process: it was made by code that stands in no module which another process can import.
    """
    if isinstance(size, bool) or not isinstance(size, int):
        raise ParameterError(f"workers must be a whole number; found {size!r:.40}")
    command = [sys.executable, "-P", "-c", f"from {__name__} import serve_handed; serve_handed()"]
    content, code = _packed(job)
    given = {"path": sys.path, "job": base64.b64encode(content).decode(), "code": code}
    return Crew(command, size, json.dumps(given))


class _Packer(pickle.Pickler):
    """A pickler that refuses what only this process has: what its main program defines.

    Attributes:
        code: digests of the classes and functions of the user's own modules that it met, by module and name.
    """

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.code: dict[str, str] = {}

    def reducer_override(self, value: Any) -> Any:
        if (isinstance(value, type) or inspect.isfunction(value)) and _is_own(value.__module__):
            self.code[f"{value.__module__}:{value.__qualname__}"] = _digest(value)
        if getattr(value, "__module__", None) == "__main__" and hasattr(value, "__qualname__"):
            _refuse(f"{value.__qualname__} is defined in the program that you started, or in a notebook")
        return NotImplemented


def _is_own(module: str) -> bool:
    """Whether a module is no part of Python, of brittle, or of a package that was installed."""
    top = module.partition(".")[0]
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return top not in (*sys.stdlib_module_names, "brittle") and "site-packages" not in file


def _digest(value: Any) -> str:
    """What a class or a function is in this process, with the values that it holds."""
    return class_digest(value) if isinstance(value, type) else code_digest(value)


def _packed(job: Job) -> tuple[bytes, dict[str, str]]:
    """The job for another process, and what the classes and functions are that it finds again there by their names."""
    content = io.BytesIO()
    packer = _Packer(content)
    try:
        packer.dump(job)
    except ParameterError:
        raise
    except Exception as error:  # noqa: BLE001 - objects say in many ways that they cannot be pickled
        _refuse(f"{type(error).__name__}: {str(error).partition(chr(10))[0]:.200}", error)
    return content.getvalue(), packer.code


def _refuse(why: str, error: Exception | None = None) -> NoReturn:
    raise ParameterError(
        f"the model, the data or a score cannot be sent to another process ({why}); put what you define into a module "
        f"that is imported (from mymodel import Net), or leave out workers=",
    ) from error


def serve_handed() -> NoReturn:
    """What a worker does: compute shards of the job that is handed to it."""
    sys.exit(serve(_handed))


def _handed() -> Job:
    """The job that the process which started this one hands over, in the first line."""
    given = json.loads(sys.stdin.readline())
    sys.path[:] = given["path"]
    try:
        job = pickle.loads(base64.b64decode(given["job"]))
    except (ImportError, AttributeError) as error:
        _refuse(f"it finds not all of it again: {error}", error)
    for name, digest in given["code"].items():
        module, _, inside = name.partition(":")
        found: Any = import_module(module)
        for part in inside.split("."):
            found = getattr(found, part)
        if _digest(found) != digest:
            _refuse(f"{name} is not what its module says: it was changed after it was imported")
    return job
