"""Distances as people write them."""

from __future__ import annotations

import math

import pytest

from brittle.errors import (
    ParameterError,
)
from brittle.norms import parse_epsilon


@pytest.mark.parametrize(("text", "value"), [("8/255", 8 / 255), ("0.03", 0.03), (0.5, 0.5), ("0.5/2", 0.25), (1, 1.0)])
def test_parse_epsilon(text: float | str, value: float) -> None:
    assert parse_epsilon(text) == value


@pytest.mark.parametrize("text", ["", "8/", "/255", "8/0", "-1", "nan", "inf", "1e999", "0", "8/255/2", "x", math.nan])
def test_parse_epsilon_refuses(text: float | str) -> None:
    with pytest.raises(ParameterError, match="8/255"):
        parse_epsilon(text)
