"""The few errors that misuse raises.

Every message says what was found, where, and what to do. A single row that cannot be evaluated is not an error but
a value with a status (see `brittle.estimate.Status`); what is raised here stops the run before it gives a number.
"""

import copyreg
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_PACKAGE = str(Path(__file__).parent) + os.sep


def printable(text: str) -> str:
    """Return `text` in one line that can be read: control, bidirectional and invalid characters as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def listed(names: Sequence[object], shown: int = 5) -> str:
    """Return the first `shown` names in words, and how many more there are."""
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(map(str, names[:shown])) + more


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says, without a full stop."""
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__


class BrittleError(Exception):
    """Error that stops a run: a named `code`, a sentence, and the exit code of the command line.

    Attributes:
        code: short name of the defect, such as `value_range`; stable, so scripts may test it.
        exit_code: what the command line exits with.
    """

    exit_code = 3

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    def __str__(self) -> str:
        return f"{self.code}: {printable(self.args[0])}"

    def __reduce__(self) -> tuple[Any, ...]:
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class BrittleWarning(UserWarning):
    """A note on data or a run from Python: something a user should know that does not stop it.

    The record of a run holds what was noted of it.

    `warnings.simplefilter("ignore", brittle.BrittleWarning)` keeps them silent.
    """


def warn(code: str, sentence: str) -> None:
    """Warn by the category `BrittleWarning`, at the line that called brittle."""
    level, frame = 1, sys._getframe()  # the only way to know where brittle was called
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(f"{code}: {printable(sentence)}", BrittleWarning, stacklevel=level)


class UsageError(BrittleError):
    """The command line does not fit together (a missing option, an unknown name)."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        BrittleError.__init__(self, "usage", message)


class ParameterError(BrittleError, ValueError):
    """A parameter of a score, a noise family or a run is outside its range."""

    def __init__(self, message: str) -> None:
        BrittleError.__init__(self, "parameter", message)


class UnknownNameError(UsageError, ParameterError):
    """A name is not on its list; a usage error on the command line, a parameter from Python."""

    def __init__(self, message: str) -> None:
        BrittleError.__init__(self, "unknown_name", message)


class ModelError(BrittleError):
    """The model cannot be scored as it stands."""


class ArtefactError(ModelError):
    """A file is refused because of what it holds."""

    exit_code = 6


class DataError(BrittleError):
    """The data cannot be scored as they stand."""


class StorageError(BrittleError):
    """A run folder cannot be written or read."""

    exit_code = 7


class MissingRunError(StorageError):
    """A folder that is named as a run holds none; most often its name is mistyped, which is a usage error."""

    exit_code = 2


class ClusterError(BrittleError):
    """A cluster cannot be used as it stands."""


class ClusterLostError(ClusterError):
    """A cluster was there when a run began, and is there no more."""

    exit_code = 7


class ResumeError(BrittleError):
    """A run folder holds another experiment than the one that is to be resumed."""

    exit_code = 5


class DetectorFormatError(BrittleError):
    """A detector file is refused because of what it holds."""

    exit_code = 6
