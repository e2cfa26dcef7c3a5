"""Whether margins agree with a strong attack, and what is said of it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from brittle.analysis import sanity
from brittle.errors import ParameterError


@pytest.mark.parametrize(
    ("attacked", "agrees", "words"), [(0.5, True, "agree"), (0.2, False, "too large"), (0.8, False, "weaker")]
)
def test_sanity(attacked: float, agrees: bool, words: str) -> None:
    found = sanity(np.linspace(0.0, 1.0, 200), np.ones(200), 0.5, attacked)
    assert (found.agrees, found.robust_accuracy) == (agrees, 0.5)
    assert found.difference == pytest.approx(0.5 - attacked)
    assert words in found.verdict


def test_sanity_of_nothing() -> None:
    found = sanity([None], [True], 0.5, 0.5)  # pyright: ignore[reportArgumentType] None is no number
    assert not found.agrees
    assert "nothing can be compared" in found.verdict


@pytest.mark.parametrize("attacked", [-0.1, 42.0, math.nan])
def test_sanity_wants_a_share(attacked: float) -> None:
    with pytest.raises(ParameterError, match="between 0 and 1"):
        sanity([0.1], [True], 0.5, attacked)
