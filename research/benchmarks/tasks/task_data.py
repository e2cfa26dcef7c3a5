"""Real data of other forms than images: read from their files with the standard library, NumPy and PyArrow."""

from __future__ import annotations

import csv
import gzip
import io
import wave
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SOUND = 4096
"""Values to which every recording is cut or padded with zeros at its end: half a second at 8 kHz."""


@dataclass(frozen=True)
class Split:
    """Points to train on and points to test on.

    Attributes:
        x: inputs to train on, `[N, ...]`, and `test_x` to test on.
        y: classes `[N]`, labels `[N, L]` or numbers `[N]`, and `test_y`.
        names: names of the labels or of the columns, if any.
        categories: columns of categories, with their number of values.
    """

    x: np.ndarray
    y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    names: tuple[str, ...] = ()
    categories: tuple[tuple[str, int], ...] = ()


def read_arff(path: Path) -> tuple[list[str], np.ndarray]:
    """Read names of the attributes and the rows of a gzipped ARFF file of numbers alone.

    Raises:
        ValueError: a row is no list of numbers, one for each attribute.
    """
    names, rows, data = [], [], False
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in map(str.strip, lines):
            if not line or line.startswith("%"):
                continue
            if data:
                rows.append([float(cell) for cell in line.split(",")])
            elif line.lower().startswith("@attribute"):
                names.append(line.split()[1])
            data = data or line.lower() == "@data"
    table = np.array(rows, dtype=np.float32)
    if table.shape != (len(rows), len(names)):
        raise ValueError(f"{path.name} has {len(names)} attributes, but its rows have the shape {table.shape}")
    return names, table


def scene(folder: Path, labels: int = 6) -> Split:
    """Read data with several labels: 294 features of colour, between 0 and 1, the last columns are the labels."""
    names, train = read_arff(folder / "scene" / "scene-train.arff.gz")
    _, test = read_arff(folder / "scene" / "scene-test.arff.gz")
    cut = len(names) - labels
    return Split(
        train[:, :cut], train[:, cut:].astype(np.int64), test[:, :cut], test[:, cut:].astype(np.int64),
        tuple(names[cut:]),
    )  # fmt: skip


def census(folder: Path, test: int = 1000) -> Split:
    """Read a table of numbers and categories; these become whole numbers, in the order of their names."""
    with (folder / "census" / "census.csv").open(encoding="utf-8", newline="") as lines:
        header, *rows = list(csv.reader(lines))
    columns, categories = [], []
    for name, *cells in zip(header, *rows, strict=True):
        try:
            columns.append([float(cell) for cell in cells])
        except ValueError:
            values = sorted(set(cells))
            categories.append((name, len(values)))
            columns.append([float(values.index(cell)) for cell in cells])
    order = np.random.default_rng(0).permutation(len(rows))
    table = np.array(columns, dtype=np.float32).T[order]
    x, y = table[:, :-1], table[:, -1].astype(np.int64)
    return Split(x[test:], y[test:], x[:test], y[:test], tuple(header[:-1]), tuple(categories))


def diabetes(test: int = 142) -> Split:
    """Return scikit-learn's data set for regression, inputs and number with mean 0 and deviation 1."""
    from sklearn.datasets import load_diabetes

    diabetes_set: Any = load_diabetes(scaled=False)
    order = np.random.default_rng(0).permutation(len(diabetes_set.target))
    rows = np.column_stack((diabetes_set.data, diabetes_set.target))[order]
    rows = ((rows - rows[test:].mean(0)) / rows[test:].std(0)).astype(np.float32)
    return Split(
        rows[test:, :-1], rows[test:, -1], rows[:test, :-1], rows[:test, -1], tuple(diabetes_set.feature_names)
    )


def decode_wave(content: bytes, length: int = SOUND) -> np.ndarray:
    """Decode a mono recording of 16 bits, between -1 and 1, cut or padded with zeros to `length`.

    Raises:
        ValueError: it has other channels, or another width.
    """
    with wave.open(io.BytesIO(content)) as sound:
        if (sound.getnchannels(), sound.getsampwidth()) != (1, 2):
            raise ValueError("a recording must have one channel and 16 bits")
        values = np.frombuffer(sound.readframes(sound.getnframes()), dtype="<i2").astype(np.float32) / 32768
    return np.pad(values[:length], (0, max(0, length - len(values))))


def spoken_digits(folder: Path) -> Split:
    """Read recordings `[N, 1, SOUND]` of ten spoken digits."""
    from pyarrow import parquet

    parts: list[np.ndarray] = []
    for split in ("train", "test"):
        rows = parquet.read_table(folder / "spoken_digits" / f"{split}.parquet").to_pylist()
        parts.append(np.stack([decode_wave(row["audio"]["bytes"]) for row in rows])[:, None])
        parts.append(np.array([row["label"] for row in rows], dtype=np.int64))
    return Split(parts[0], parts[1], parts[2], parts[3])
