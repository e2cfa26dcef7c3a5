"""Numbers over networks in words, and whether they agree with the paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from studies.groups import ADVERSARIAL
from studies.markdown import NOTHING, data_name, decimals
from studies.ranks import spearman_and_chance
from studies.study import Agreement, Tables
from studies.tables import Frame

STRONG = 0.68
"""The smallest tau of the networks that the paper calls strongly margin-consistent (table 1)."""

WEAK = 0.5
"""Tau below which consistency is weak: above that of the paper's two weak networks, 0.43, and below all others'."""

DETECTS = 0.9
"""AUROC that all of those are above (table 1)."""

ALIKE = 0.25
"""Deviation of the distances between classifiers over their mean up to which they count as one distance here."""

NEAR = 0.02
"""Error of the robust accuracy that most of the paper's networks stay within (figures 5, 10 and 11)."""

SURE = 0.05
"""Probability of a rank correlation by chance from which on it counts as none."""

SEVERAL = 10
"""Networks below which no rank correlation over networks is judged: over fewer only a nearly perfect one would show."""

GAP = 0.061, 0.013
"""How far the two robust accuracies differ on the paper's networks for CIFAR-10 at most, and in the mean."""


PAPERS_DATA = (data_name("cifar10"), data_name("cifar100"))
"""Data sets that the paper looks at."""


def frame_of(tables: Tables, name: str) -> Frame:
    """Return a table of the results; without rows where nothing of it was measured."""
    return tables[name].to_pandas() if name in tables else pd.DataFrame()


def where(frame: Frame, **values: object) -> Frame:
    """Return the rows with these values; a frame without rows as it is."""
    for column, value in values.items():
        frame = frame[frame[column] == value] if len(frame) else frame
    return frame


def numbers(values: Iterable[float]) -> NDArray[np.float64]:
    """Return the finite values."""
    array = np.asarray([*values], dtype=np.float64)
    return array[np.isfinite(array)]


def strong(taus: Any) -> NDArray[np.bool_]:
    """Return whether each reaches `STRONG`, rounded like it."""
    return np.round(np.asarray(taus, dtype=np.float64), 2) >= STRONG


def mean(values: Iterable[float]) -> str:
    """Return the mean of the finite values."""
    finite = numbers(values)
    return decimals(float(finite.mean()), 2) if len(finite) else NOTHING


def of_paper(data: str, judgement: Agreement) -> Agreement:
    """Return the judgement on data that the paper looks at, by their name on pages; on others it claims nothing."""
    return judgement if data in PAPERS_DATA else Agreement.UNSAID


def by_dataset(frame: Frame) -> Iterator[tuple[str, Frame]]:
    """Return the adversarially trained networks of each data set with several, under its name."""
    for dataset, rows in where(frame, group=ADVERSARIAL).groupby("dataset") if len(frame) else ():
        if rows["network"].nunique() > 1:
            yield data_name(dataset), rows


def ranks(x: Frame, second: Frame) -> tuple[float, float, int]:
    """Spearman's correlation over networks, its probability by chance, and the networks."""
    correlation, chance, count = spearman_and_chance(x, second)
    return (correlation, chance, count) if count >= SEVERAL else (np.nan, np.nan, count)
