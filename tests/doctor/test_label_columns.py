"""Columns of labels that were read as features are named, and what is said to type then works."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from torch import nn

import brittle
from brittle.errors import DataError, ModelError

CASES = {
    "names of labels": (["label_a", "label_b"], "multilabel"),
    "only 0 and 1": (["sea", "sun"], "multilabel"),
    "a target by its name": (["target_1"], "within:0.5"),
    "the last column": (["size"], "within:0.5"),
    "a class": (["cultivar"], "class"),
}


def table(place: Path, names: list[str], values: np.ndarray) -> Path:
    """Four features, after those columns whose name says that they are labels, before all others."""
    features = np.random.default_rng(0).uniform(0.1, 0.9, (len(values), 4)).round(3)
    columns = {f"f{at}": features[:, at] for at in range(4)}
    own = dict(zip(names, values.T, strict=True))
    columns = own | columns if names[0].startswith(("label", "target")) else columns | own
    rows = [",".join(f"{column[row]:g}" for column in columns.values()) for row in range(len(values))]
    path = place / "table.csv"
    path.write_text("\n".join([",".join(columns), *rows]))
    return path


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("largest", [1, 300], ids=["within the bounds", "outside"])
def test_the_columns_are_named_and_the_advice_works(tmp_path: Path, name: str, largest: int) -> None:
    names, decision = CASES[name]
    values = np.arange(12).reshape(-1, 1) // np.array([1, 2])[: len(names)] % 2
    if decision != "multilabel":
        values = values * largest
    path = table(tmp_path, names, values)
    outputs = 1 if decision.startswith("within") else 2
    classifier = brittle.Classifier(nn.Linear(4, outputs).eval(), decision=decision, bounds=(0, 1))
    targets = classifier.decision.targets
    with pytest.raises(DataError) as caught:
        brittle.score(classifier, brittle.data.open_points(path, targets=targets), [brittle.scores.Taylor(0.1)])
    assert caught.value.code == "labels"
    typed = re.search(r"label_column='([^']+)'", str(caught.value))
    assert typed is not None
    assert typed[1] == ",".join(names)
    if largest == 1:
        points = brittle.data.open_points(path, targets=targets, label_column=typed[1])
        assert points.batches(12).__next__().inputs.shape == (12, 4)
        brittle.score(classifier, points, [brittle.scores.Taylor(sigma=0.1)])


def test_nothing_is_invented_where_no_width_fits(tmp_path: Path) -> None:
    path = table(tmp_path, ["f4"], np.full((12, 1), 0.5))
    classifier = brittle.Classifier(nn.Linear(9, 2).eval(), decision="multilabel", bounds=(0, 1))
    with pytest.raises(ModelError, match="give inputs of the shape that it takes"):
        brittle.score(classifier, brittle.data.open_points(path, targets=True), [brittle.scores.Taylor(0.1)])
