"""Classes that are less robust than others: by hand, and how often chance finds some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch
from helpers.tables import make_table, with_value

import brittle
from brittle.analysis import class_bias
from brittle.store.schemas import POINTS
from brittle.store.table import Table


def with_labels(table: Table, labels: Sequence[int | None]) -> Table:
    place = table.points.schema.get_field_index("label")
    return replace(table, points=table.points.set_column(place, POINTS.field(place), pa.array(labels, pa.int64())))


def test_class_bias_by_hand() -> None:
    table = with_labels(make_table(points=12, scores=("taylor",), sigmas=(0.1,), classes=2), [0] * 6 + [1] * 6)
    flips = [0.1, 0.2, 0.3, 0.1, 0.2, 0.3, 0.8, 0.9, 0.7, 0.8, 0.9, 0.7]
    found = class_bias(with_value(table, "taylor(sigma=0.1)", flips))
    assert found is not None
    assert found.by == "label"
    assert found.classes["class"].tolist() == [1, 0]
    assert found.classes["name"].tolist() == ["automobile", "airplane"]
    assert found.classes["points"].tolist() == [6, 6]
    assert found.classes["mean"].tolist() == pytest.approx([0.2, 0.8])
    assert found.classes["median"].tolist() == pytest.approx([0.2, 0.8])
    assert found.p_value < 0.2
    assert not found.differ
    assert set(found.least) == set(found.most) == {0, 1}


def test_the_least_robust_class_is_named_once_classes_differ() -> None:
    table = make_table(points=90, scores=("taylor",), sigmas=(0.1,), classes=3, images=False)
    table = with_labels(table, [0] * 30 + [1] * 30 + [2] * 30)
    found = class_bias(with_value(table, "taylor(sigma=0.1)", [0.1, 0.2] * 15 + [0.8, 0.9] * 15 + [0.75, 0.85] * 15))
    assert found is not None
    assert found.differ
    assert (found.least, found.most) == ((1, 2), (0,))


def test_class_bias_without_labels_goes_by_prediction() -> None:
    table = make_table(labels=False)
    found = class_bias(table)
    assert found is not None
    assert found.by == "predicted"
    assert set(found.classes["class"]) == set(table.points["predicted"].to_pylist())


@pytest.mark.parametrize("classes", [1, 2])
def test_class_bias_with_few_classes_and_points(classes: int) -> None:
    found = class_bias(make_table(points=2, classes=classes, scores=("taylor",)))
    assert found is not None
    assert np.isnan(found.p_value) == (len(found.classes) < 2)
    assert not found.differ


@pytest.mark.parametrize(("names", "shown"), [(("0", "1"), "class 1"), (None, "class 1"), (("ant", "bee"), "bee")])
def test_a_class_is_called_alike_whether_or_not_its_name_is_a_number(names: tuple[str, ...] | None, shown: str) -> None:
    x, y = torch.rand(8, 2, generator=torch.Generator().manual_seed(0)), torch.arange(8) % 2
    classifier = brittle.Classifier(torch.nn.Linear(2, 2).eval(), bounds=(0, 1))
    points = brittle.data.array_points(x, y, class_names=names)
    table = brittle.score(classifier, points, [brittle.scores.Shrinkage(sigma=0.1, draws=20)])
    found = class_bias(table)
    assert found is not None
    assert dict(zip(found.classes["class"], found.classes["name"], strict=True))[1] == shown
    assert set(brittle.analysis.point_list(table, of_class=shown)["point"]) == {"1", "3", "5", "7"}
