"""A sample of points knows their ids and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers.tables import make_table

from brittle.analysis import sample_points
from brittle.errors import ParameterError


def test_a_sample_depends_on_seed_and_ids_alone() -> None:
    table = make_table(points=60, images=False)
    found = sample_points(table, 20, seed=3)
    order = np.random.default_rng(0).permutation(60)
    mixed = sample_points(replace(table, points=table.points.take(order)), 20, seed=3)
    other = make_table(points=60, images=False, seed=1, labels=False)
    assert set(mixed["point"]) == set(found["point"])
    assert sample_points(other, 20, seed=3)["point"].tolist() == found["point"].tolist()
    assert set(sample_points(table, 20, seed=4)["point"]) != set(found["point"])
    assert found["row"].is_monotonic_increasing
    assert set(sample_points(table, 10, seed=3)["point"]) < set(found["point"])
    assert len(sample_points(table, 100)) == 60


@pytest.mark.parametrize("count", [0, -1, 2.5, True])
def test_a_sample_of_no_whole_number_is_refused(count: int) -> None:
    with pytest.raises(ParameterError, match="a whole number of points, at least 1; found"):
        sample_points(make_table(points=5, images=False), count)
