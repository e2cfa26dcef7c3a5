"""The JSON files in which models of Hugging Face and timm describe themselves."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from brittle.errors import ModelError

CONFIG, WEIGHTS = "config.json", "model.safetensors"  # in the folder of a model, as Hugging Face and timm write it
MOST_BYTES = 1 << 24  # largest file that is read as a description


def read_description(path: Path) -> dict[str, Any]:
    """Read the object in a JSON file; empty where there is no file."""
    if not path.is_file():
        return {}
    try:
        content = path.read_bytes()
        description = json.loads(content) if len(content) <= MOST_BYTES else None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError("model_file", f"{path} cannot be read as JSON: {str(error).partition(chr(10))[0]}") from error
    if not isinstance(description, dict):
        raise ModelError("model_file", f"{path} is not the description of a model; expected one JSON object")
    return description


def digest_of(files: Iterable[Path]) -> str:
    """Return the sha256 over the names and the sha256 of files."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path.name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def names(value: Any) -> tuple[str, ...] | None:
    """Return names of classes as a tuple; None where they are not distinct texts."""
    plain = isinstance(value, list) and all(isinstance(name, str) and name for name in value)
    return tuple(value) if plain and value and len(set(value)) == len(value) else None


def numbers(value: Any) -> tuple[float, ...] | None:
    """Return a number or a list of numbers as a tuple; None for anything else."""
    values = value if isinstance(value, list | tuple) else [value]
    plain = all(isinstance(number, int | float) and not isinstance(number, bool) for number in values)
    return tuple(float(number) for number in values) if plain and values else None
