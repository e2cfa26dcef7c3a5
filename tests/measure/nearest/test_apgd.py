"""Which descents go on after a round."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from brittle.measure.nearest.apgd import nearest_of_each


@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_nearest_of_each_point_go_on(count: int) -> None:
    """Against a sort of each point by itself; of equal distances the first ones stay, and the order of rows is kept."""
    generator = np.random.default_rng(count)
    rows = generator.permutation(np.repeat(np.arange(20), generator.integers(1, 6, 20)))
    distance = generator.integers(0, 4, len(rows)).astype(float)
    distance[generator.random(len(rows)) < 0.2] = np.inf
    expected = [
        place
        for place, row in enumerate(rows)
        if place in sorted(np.flatnonzero(rows == row), key=lambda one: (distance[one], one))[:count]
    ]
    assert nearest_of_each(torch.from_numpy(rows), torch.from_numpy(distance), count).tolist() == expected
