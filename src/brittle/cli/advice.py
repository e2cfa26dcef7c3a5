"""What to type instead of a command line that cannot be understood."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from cyclopts import CycloptsError, MissingArgumentError

from brittle.errors import UsageError

_NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
_JOINED = re.compile(rf"{_NUMBER}(,{_NUMBER})+,?")
"""Several numbers with commas between them."""

_MODEL = re.compile(r".+\.(pt2|onnx)|.*[^:]:\w+")
"""What names a model."""


def explained(error: CycloptsError, words: Sequence[str]) -> str:
    """What the parser says of `words`, or what to type instead where that can be told."""
    for place, word in enumerate(words):
        option = next((one for one in reversed(words[:place]) if one.startswith("--")), None)
        name, _, value = word.partition("=")
        if name.startswith("--") and _JOINED.fullmatch(value):
            option, word = name, value
        if option is not None and _JOINED.fullmatch(word):
            apart = " ".join(one for one in word.split(",") if one)
            return f"{option} takes numbers with spaces between them; found {word!r:.60}: write {option} {apart}"
    if isinstance(error, MissingArgumentError) and error.command_chain:
        command = " ".join(("brittle", *error.command_chain))
        what = _missing(error)
        if what:
            return f"{command} needs {what}; {command} --help shows how it is called"
    return str(error)


def _missing(error: MissingArgumentError) -> str:
    """What is missing, as --help calls it: an option by its name, another argument in capitals."""
    argument = error.argument
    if argument is None or argument.tokens:
        return ""
    name = argument.name
    return name.lstrip("-").upper() if argument.index is not None else name


def check_order(model: str, data: Path) -> None:
    """Raise where MODEL is data and DATA names a model.

    Raises:
        UsageError: they look swapped.
    """
    text = str(data)
    if not data.exists() or data.suffix in (".pt2", ".onnx"):
        is_model = bool(_MODEL.fullmatch(text))
        if is_model and Path(model).exists() and not _MODEL.fullmatch(model):
            raise UsageError(
                f"MODEL is {model}, which is data, and DATA is {text}, which is a model; write MODEL first"
            )
