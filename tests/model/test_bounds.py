"""The declared range of an input: two increasing numbers, perhaps one infinite, a pair for each feature, or none."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import torch

from brittle.errors import ParameterError
from brittle.model.bounds import Bounds, check_bounds

BAD = [(), (1.0,), (0.0, 1.0, 2.0), (1.0, 0.0), (1.0, 1.0), (math.nan, 1.0), (0.0, math.inf), (-math.inf, 0.0)]


@pytest.mark.parametrize("bounds", BAD, ids=str)
def test_invalid_ranges_are_refused(bounds: tuple[float, ...]) -> None:
    with pytest.raises(ParameterError):
        check_bounds(bounds)


LOWER, UPPER = np.array([0.0, -math.inf, -5.0, 7.0]), np.array([1.0, 2.0, math.inf, 7.0])

KINDS = {
    "one pair": (-1.0, 2.0),
    "per feature": (LOWER, UPPER),
    "of channels": (np.zeros((3, 1, 1)), np.array([1.0, 2.0, 3.0])[:, None, None]),
    "of one side": (np.zeros(4), np.full(4, math.inf)),
    "one pair of one side": (-math.inf, 9.0),
    "none": "none",
}


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_come_back_from_a_record(kind: str) -> None:
    bounds = Bounds.of(KINDS[kind])
    restored = Bounds.from_record(json.loads(json.dumps(bounds.recorded, allow_nan=False)))
    assert restored == bounds
    assert (hash(restored), str(restored)) == (hash(bounds), str(bounds))


def test_each_feature_is_clipped_to_its_bounds() -> None:
    inputs = torch.randn(50, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 10
    bounds = Bounds.of((LOWER, UPPER))
    expected = np.minimum(np.maximum(inputs.numpy(), LOWER), UPPER)
    assert np.array_equal(bounds.clip(inputs).numpy(), expected)
    assert torch.equal(Bounds.of("none").clip(inputs), inputs)
    inside = (inputs.numpy() == expected).all(axis=1)
    assert bounds.contains(inputs).tolist() == inside.tolist()
    assert bounds.contains(torch.from_numpy(expected)).all()


def test_constant_arrays_equal_one_pair() -> None:
    assert Bounds.of((np.full(3, -1.0), np.full(3, 2.0))) == Bounds.of((-1, 2))
    assert Bounds.of((-1, 2)) == (-1, 2)
    assert Bounds.of((np.full(3, -math.inf), np.full(3, math.inf))) == "none"
    assert Bounds.of((np.zeros(3), np.full(3, math.inf))) == Bounds.of((0, math.inf)) != "none"
    assert tuple(Bounds.of((0, 255))) == (0.0, 255.0)


@pytest.mark.parametrize("bounds", list(KINDS.values())[1:], ids=list(KINDS)[1:])
def test_without_bounds_inputs_are_drawn_where_the_points_are(bounds: Any) -> None:
    points = torch.rand(5, 3, 4, 4) if np.ndim(bounds) == 4 else torch.tensor([[0.1, 1.0, 0.0, 7.0], [0.9, 2, 4, 7]])
    finite_bounds = Bounds.of(bounds).closed(points)
    samples = finite_bounds.sample((200, *points.shape[1:]), points)
    assert finite_bounds.finite
    assert samples.isfinite().all()
    assert finite_bounds.contains(points).all()
    assert Bounds.of(bounds).contains(samples).all()
    assert ((samples.amax(0) > samples.amin(0)) | (finite_bounds.lower == finite_bounds.upper)).all()


@pytest.mark.parametrize(
    ("bounds", "match"),
    [
        (([0.0, 1.0], [1.0, 0.5]), "place 1"),
        (([0.0, math.nan], [1.0, 2.0]), "place 1"),
        (([0.0, 1.0], [1.0, 2.0, 3.0]), "of one shape"),
        ((["a", "b"], [1.0, 2.0]), "'a'"),
        ((["0", math.inf], [1.0, math.inf]), "place 1"),
        (([0.0, 0.0], [0.0, 0.0]), "0, 0"),
        ("all", "all"),
        ("01", "01"),
    ],
    ids=str,
)
def test_invalid_bounds_are_refused(bounds: object, match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        Bounds.of(bounds)


def test_bounds_that_do_not_fit_are_refused() -> None:
    for bounds in ("none", (LOWER, UPPER)):
        with pytest.raises(ParameterError, match="bounds"):
            tuple(Bounds.of(bounds))
    with pytest.raises(ParameterError, match=r"\[4\].*\[5\]"):
        Bounds.of((LOWER, UPPER)).check_shape((5,))
