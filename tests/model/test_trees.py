"""Trees of fitted classifiers and of files: the class scores of the library itself, at its cuts and beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.small_trees import make, thresholds

import brittle
from brittle.errors import ModelError
from brittle.model.loading.load import load_model
from brittle.model.read_trees import trees_of
from brittle.model.trees import Trees, single_cut

pytest.importorskip("sklearn")

LIBRARIES = ("xgboost", "lightgbm", "catboost")
KINDS = ("forest", "extra", "boosted", "histograms", *LIBRARIES)
pytestmark = pytest.mark.filterwarnings("ignore")


def fitted(kind: str, classes: int) -> tuple[Any, np.ndarray]:
    """A classifier, and rows of which half lie on a cut of one feature, or one number above it."""
    if kind in LIBRARIES:
        pytest.importorskip(kind)
    generator = np.random.default_rng(classes)
    x = generator.normal(size=(200, 4))
    y = (x + generator.normal(size=x.shape)).argmax(axis=1) % classes
    model = make(kind, 8, 3, 0).fit(x, y)
    rows = generator.normal(size=(600, 4))
    for row, place in enumerate(generator.integers(0, len(splits := thresholds(model)), 300)):
        feature, cut = splits[place]
        rows[row, feature] = np.nextafter(cut, np.inf) if row % 2 else cut
    return model, rows


def raw(model: Any, rows: np.ndarray) -> np.ndarray:
    """Sums of the library itself."""
    more = {"XGB": {"output_margin": True}, "LGB": {"raw_score": True}, "Cat": {"prediction_type": "RawFormulaVal"}}
    kind = type(model).__name__[:3]
    if kind in more:
        return np.asarray(model.predict(rows, **more[kind]))
    forest = not hasattr(model, "decision_function")
    return model.predict_proba(rows) * len(model.estimators_) if forest else model.decision_function(rows)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_trees_add_up_to_the_scores_of_the_library(kind: str, classes: int) -> None:
    model, rows = fitted(kind, classes)
    trees = trees_of(model)
    assert isinstance(trees, Trees)
    scores, given = trees.scores(rows), raw(model, rows)
    found = scores if given.ndim == 2 else scores[:, 1] - scores[:, 0]
    assert np.abs(found - given).max() <= trees.slack
    low, high = trees.ends
    held = ((low < rows[:, None]) & (rows[:, None] <= high)).all(axis=2)
    assert (held.sum(axis=1) == len(trees.roots)).all()
    np.testing.assert_allclose(trees.base + held @ trees.value[trees.leaves], scores, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("ending", ["json", "txt", "catboost.json"])
def test_a_file_has_the_classes_of_the_model(ending: str, classes: int, tmp_path: Path) -> None:
    kind = {"json": "xgboost", "txt": "lightgbm"}.get(ending, "catboost")
    model, rows = fitted(kind, classes)
    file = tmp_path / f"model.{ending}"
    if kind == "lightgbm":
        model.booster_.save_model(str(file))
    else:
        model.save_model(str(file), **({"format": "json"} if ending == "catboost.json" else {}))
    loaded = load_model(file)
    assert loaded.provenance["runs_code"] is False
    assert isinstance(loaded.module, Trees)
    assert (np.ravel(loaded.module.predict(rows)) == np.ravel(model.predict(rows))).all()
    table = brittle.score(loaded.module, (rows[:20], None), noise="per-feature", sigma=0.1)
    own = brittle.score(model, (rows[:20], None), noise="per-feature", sigma=0.1)
    one, other = (each.frame()["p_robust"] for each in (table, own))
    np.testing.assert_allclose(one, other, atol=1e-5)


XGBOOST: dict[str, Any] = {
    "learner": {
        "attributes": {},
        "feature_names": ["a", "b"],
        "learner_model_param": {"base_score": "5E-1", "num_class": "0", "num_feature": "2"},
        "objective": {"name": "binary:logistic"},
        "gradient_booster": {
            "name": "gbtree",
            "model": {
                "tree_info": [0],
                "trees": [
                    {
                        "left_children": [1, -1, -1],
                        "right_children": [2, -1, -1],
                        "split_conditions": [0.1, -2.0, 3.0],
                        "split_indices": [1, 0, 0],
                        "tree_param": {"size_leaf_vector": "1"},
                    }
                ],
            },
        },
    }
}
"""A stump: -2 where b, in single precision, is smaller than 0.1 in single precision, else 3."""


def write(folder: Path, content: Any) -> Path:
    file = folder / "model.json"
    file.write_text(json.dumps(content))
    return file


def test_a_file_is_read_without_its_library(tmp_path: Path) -> None:
    loaded = load_model(write(tmp_path, XGBOOST))
    assert loaded.module.feature_names_in_.tolist() == ["a", "b"]
    edge = float(np.float32(0.1))
    rows = np.array([[9.0, np.nextafter(np.float32(0.1), np.float32(0))], [9.0, edge], [9.0, 0.1]])
    assert loaded.module.decision_function(rows)[:, 1].tolist() == [-2.0, 3.0, 3.0]
    assert loaded.module.predict(rows).tolist() == [0, 1, 1]


def tree(**changed: Any) -> dict[str, Any]:
    whole = json.loads(json.dumps(XGBOOST))
    whole["learner"]["gradient_booster"]["model"]["trees"][0] |= changed
    return whole


@pytest.mark.parametrize(
    "content",
    [
        {},
        [],
        tree(left_children=[0, -1, -1]),
        tree(left_children=[2, -1, -1]),
        tree(left_children=[7, -1, -1]),
        tree(split_indices=[5, 0, 0]),
        tree(split_conditions=[0.1, float("nan"), 3.0]),
        tree(split_type=[1, 0, 0]),
        XGBOOST["learner"] | {"oblivious_trees": None},
    ],
)
def test_a_damaged_file_or_another_model_is_refused(content: Any, tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        load_model(write(tmp_path, content))
    assert caught.value.code == "model_file"


def test_a_cut_stands_between_two_numbers_of_single_precision() -> None:
    thresholds = np.random.default_rng(0).normal(size=1000) * 10.0 ** np.arange(-5, 5).repeat(100)
    for strict in (False, True):
        own = thresholds.astype(np.float32).astype(float) if strict else thresholds
        cut = single_cut(own, strict=strict)
        left, right = (one.astype(np.float32).astype(float) for one in (cut, np.nextafter(cut, np.inf)))
        assert ((left < own) if strict else (left <= own)).all()
        assert ((right >= own) if strict else (right > own)).all()
