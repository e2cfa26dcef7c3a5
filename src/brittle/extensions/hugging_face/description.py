"""The JSON files in which models of Hugging Face and timm describe themselves."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from brittle.errors import ModelError

CONFIG, WEIGHTS = "config.json", "model.safetensors"
"""Files of the folder of a model, as Hugging Face and timm write it."""

MOST_BYTES = 1 << 24
"""A longer file describes no model."""


def read_description(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty where there is no file."""
    if not path.is_file():
        return {}
    try:
        content = path.read_bytes()
        found = json.loads(content) if len(content) <= MOST_BYTES else None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError("model_file", f"{path} cannot be read as JSON: {str(error).partition(chr(10))[0]}") from error
    if not isinstance(found, dict):
        raise ModelError("model_file", f"{path} describes no model; expected one JSON object")
    return found


def digest_of(files: Iterable[Path]) -> str:
    """The sha256 over the names and the sha256 of files."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path.name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def names(found: Any) -> tuple[str, ...] | None:
    """Names of classes as a tuple; None where they are not texts that differ from one another."""
    plain = isinstance(found, list) and all(isinstance(name, str) and name for name in found)
    return tuple(found) if plain and found and len(set(found)) == len(found) else None


def numbers(value: Any) -> tuple[float, ...] | None:
    """A number or a list of numbers as a tuple; None for anything else."""
    found = value if isinstance(value, list | tuple) else [value]
    plain = all(isinstance(one, int | float) and not isinstance(one, bool) for one in found)
    return tuple(float(one) for one in found) if plain and found else None
