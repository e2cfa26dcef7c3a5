"""What numbers of a detector may be: shares strictly inside, intervals in order, inputs of single precision."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from brittle.detector.ranges import (
    LARGEST,
    SMALLEST,
    check_input_numbers,
    check_interval,
    check_range,
    check_share,
    largest_margin,
)
from brittle.errors import ParameterError


def refuses(check: Callable[..., None], *arguments: object, **options: object) -> bool:
    """Whether a check raises its error, under the name that it was given."""
    code = None
    try:
        check("name", *arguments, **options)
    except ParameterError as error:
        code = error.code
    return code == "name"


def test_the_ends_are_those_of_single_precision() -> None:
    assert float(np.finfo(np.float32).max) == LARGEST
    assert float(np.finfo(np.float32).smallest_subnormal) == SMALLEST


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, 1.1, 1e-320, math.nan, math.inf])
def test_a_share_and_its_complement_lie_strictly_inside(value: float) -> None:
    assert refuses(check_share, value)
    assert not refuses(check_share, 0.5)


@pytest.mark.parametrize("value", [-1e-300, 1.0 + 1e-15, math.nan])
def test_the_ends_of_a_range_belong_to_it(value: float) -> None:
    assert refuses(check_range, value, 0.0, 1.0)
    assert not refuses(check_range, 0.0, 0.0, 1.0)
    assert not refuses(check_range, 1.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("value", "low", "high", "bad"),
    [
        (0.5, 0.4, 0.6, False),
        (0.5, 0.5, 0.5, False),
        (0.5, 0.6, 0.7, True),
        (0.5, 0.3, 0.4, True),
        (None, 0.3, 0.4, False),
        (None, 0.4, 0.3, True),
        (0.5, -0.1, 0.6, True),
        (0.5, 0.4, 1.1, True),
        (0.5, math.nan, 0.6, True),
    ],
)
def test_an_interval_is_in_order_and_inside(value: float | None, low: float, high: float, bad: bool) -> None:
    assert refuses(check_interval, value, low, high, (0.0, 1.0)) == bad


def test_numbers_of_inputs_are_those_that_single_precision_has() -> None:
    assert not refuses(check_input_numbers, None)
    assert not refuses(check_input_numbers, (-LARGEST, 0.0, LARGEST))
    assert not refuses(check_input_numbers, (SMALLEST,), positive=True)
    for numbers in ((), (2 * LARGEST,), (math.nan,)):
        assert refuses(check_input_numbers, numbers)
    assert refuses(check_input_numbers, (SMALLEST / 2,), positive=True)


def test_no_margin_is_larger_than_the_box() -> None:
    assert largest_margin(2.0, "linf", True) == 2.0
    assert largest_margin(2.0, "l2", True) > 2.0 * math.sqrt(3 * 4096 * 4096)
    assert largest_margin(2.0, "linf", False) == LARGEST
