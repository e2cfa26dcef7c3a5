"""What a model's own files say of its inputs and classes, and the JSON files that say it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brittle.errors import ModelError, listed
from brittle.model.texts import TextReader

CONFIG, WEIGHTS = "config.json", "model.safetensors"
"""Files of the folder of a model, as Hugging Face and timm write it."""

MOST_BYTES = 1 << 24
"""A longer file describes no model."""


@dataclass(frozen=True)
class Declared:
    """What the files of a model say of it. Mean and std are those of inputs in [0, 1], one number a channel; class
    names are in the order of its outputs."""

    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    class_names: tuple[str, ...] | None = None
    texts: TextReader | None = None

    def within(self, low: float, high: float) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
        """Mean and std for inputs in [`low`, `high`]: `low + (high - low) mean` and `(high - low) std`."""
        width = high - low
        mean = None if self.mean is None else tuple(low + width * one for one in self.mean)
        return mean, None if self.std is None else tuple(width * one for one in self.std)

    @property
    def words(self) -> str:
        numbers = (("mean", self.mean), ("std", self.std))
        parts = [f"{name} {' '.join(f'{one:.4g}' for one in found)}" for name, found in numbers if found is not None]
        if self.texts is not None:
            parts.append(self.texts.words)
        elif not parts:
            parts.append("neither mean nor std")
        if self.class_names is not None:
            some = listed([f"{name!r:.40}" for name in self.class_names], 3)
            parts.append(f"{len(self.class_names)} classes ({some})")
        return ", ".join(parts)


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
