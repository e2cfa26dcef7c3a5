"""Tables whose columns obey rules."""

from __future__ import annotations

from typing import Any

import numpy as np

import brittle

NAMES = ["age", "gain", "sex", "share", "free"]


def table(rows: int = 50) -> np.ndarray:
    generator = np.random.default_rng(0)
    age, gain = generator.integers(17, 91, rows), generator.exponential(1.0, rows) * generator.integers(0, 2, rows)
    free = generator.normal(size=rows)
    return np.stack([age, gain, generator.integers(0, 2, rows), generator.random(rows), free], axis=1).astype(float)


def points(x: np.ndarray) -> Any:
    return brittle.data.array_points(x, feature_names=NAMES, bounds=None)


def related(rows: int) -> np.ndarray:
    """Return a table of a one-hot group of three, whole numbers with a later one, and three that never fall."""
    generator = np.random.default_rng(1)
    colours, years = np.eye(3)[generator.integers(0, 3, rows)], np.sort(generator.integers(0, 9, (rows, 2)), axis=1)
    ends = np.sort(generator.normal(3.0, 1.0, (rows, 3)), axis=1)
    return np.column_stack([colours[:, 0], years[:, 0], colours[:, 1:], years[:, 1], ends]).astype(float)
