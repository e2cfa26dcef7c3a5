"""The nearest other class of ensembles of trees: against every box, against the model's `predict`, and unfinished."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.small_trees import LENGTHS, nearest_of_all_boxes, small_ensemble

import brittle
from brittle.extensions.certificates.radius import Certified, CertifiedRadius
from brittle.extensions.trees.boxes import BOXES
from brittle.measure import Nearest, NearestPoint
from brittle.measure.forward import look

pytest.importorskip("sklearn")

KINDS = ("forest", "extra", "boosted", "histograms", "xgboost", "lightgbm", "catboost")
LIBRARIES = KINDS[4:]


def clean_of(classifier: brittle.Classifier, points: np.ndarray) -> Any:
    return look(classifier, torch.from_numpy(points), tuple(map(str, range(len(points)))), 0)


def measured(model: Any, points: np.ndarray, need: Any, bounds: Any = None) -> Any:
    classifier = brittle.Classifier(model, bounds)
    return need(classifier, clean_of(classifier, points))


@pytest.mark.every_other
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_distances_are_those_to_the_nearest_of_all_boxes(kind: str, seed: int) -> None:
    if kind in LIBRARIES:
        pytest.importorskip(kind)
    model, points = small_ensemble(kind, seed)
    truth = nearest_of_all_boxes(model, points)
    before = np.ravel(model.predict(points))
    for norm in LENGTHS:
        nearest: NearestPoint = measured(model, points, Nearest(norm, effort="thorough"))
        has_rival = nearest.predicted >= 0
        assert torch.equal(has_rival, nearest.distance.isfinite())
        np.testing.assert_allclose(nearest.distance, truth[norm], rtol=1e-12, atol=1e-9)
        assert nearest.proved is not None
        assert torch.equal(nearest.proved, nearest.distance)
        assert (np.ravel(model.predict(nearest.points.numpy()))[has_rival] != before[has_rival]).all()
        lengths = LENGTHS[norm](nearest.points.numpy() - points)
        np.testing.assert_allclose(lengths[has_rival], nearest.distance[has_rival])


def test_single_precision_points_find_double_precision_inputs() -> None:
    model, points = small_ensemble("histograms", 1)
    single = points.astype(np.float32)
    truth = nearest_of_all_boxes(model, single.astype(np.float64))
    nearest: NearestPoint = measured(model, single, Nearest("l2"))
    np.testing.assert_allclose(nearest.distance, truth["l2"], rtol=1e-12)
    assert (model.predict(nearest.points.numpy()) != model.predict(single.astype(np.float64))).all()


def test_bounds_keep_inputs_inside() -> None:
    model, points = small_ensemble("forest", 7)
    low, high = float(points.min()), float(points.max())
    truth = nearest_of_all_boxes(model, points, low, high)
    nearest: NearestPoint = measured(model, points, Nearest("l1", effort="thorough"), (low, high))
    np.testing.assert_allclose(nearest.distance, truth["l1"], atol=1e-9)
    assert float(nearest.points.min()) >= low
    assert float(nearest.points.max()) <= high
    free: NearestPoint = measured(model, points, Nearest("l1", bounded=False), (low, high))
    assert (free.distance <= nearest.distance).all()


@pytest.fixture(scope="module")
def larger() -> tuple[Any, np.ndarray, torch.Tensor]:
    """Return a forest whose search takes hundreds of boxes, points, and their exact distances."""
    from sklearn.ensemble import RandomForestClassifier

    x = np.random.default_rng(0).random((300, 6))
    y = (np.sin(9 * x).sum(axis=1) > 2).astype(int)
    forest = RandomForestClassifier(15, random_state=0, max_depth=6).fit(x, y)
    exact: NearestPoint = measured(forest, x[:4], Nearest("l2", effort="thorough"))
    assert exact.proved is not None
    assert torch.equal(exact.proved, exact.distance)
    return forest, x[:4], exact.distance


def test_a_search_that_ends_early_bounds_the_distance(
    larger: tuple[Any, np.ndarray, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    forest, points, exact = larger
    before = torch.zeros(4)
    for boxes in (1, 10, 30, 60, 120):
        monkeypatch.setitem(BOXES, "fast", boxes)
        nearest: NearestPoint = measured(forest, points, Nearest("l2", effort="fast"))
        radius: CertifiedRadius = measured(forest, points, Certified("l2", proof="fast"))
        assert nearest.proved is not None
        assert torch.equal(nearest.proved, radius.radius)
        assert (nearest.proved <= exact).all()
        assert (nearest.distance >= exact).all()
        assert (nearest.proved >= before).all()
        before = nearest.proved
    assert (before > 0).any()


def test_a_run_has_the_bound_as_the_low_end(larger: tuple[Any, np.ndarray, torch.Tensor]) -> None:
    forest, points, exact = larger
    table = brittle.score(
        forest, (points, None), [brittle.scores.InputMargin(), brittle.scores.InputMargin(certify=True)]
    )
    rows = table.scores.to_pylist()
    assert len(rows) == 8
    for row, distance in zip(rows, [distance for distance in exact.tolist() for _ in range(2)], strict=True):
        assert row["status"] == "ok"
        assert row["low"] == row["value"] == row["high"] == distance


def test_a_model_that_contradicts_its_trees_is_searched_by_signs() -> None:
    """The search over signs uses the model's predictions, and proves nothing."""
    from sklearn.ensemble import RandomForestClassifier

    model, points = small_ensemble("forest", 0)

    class Other(RandomForestClassifier):
        def predict_proba(self, X: Any) -> np.ndarray:
            return np.asarray(super().predict_proba(X))[:, ::-1]

    Other.__name__, Other.__module__ = "RandomForestClassifier", "sklearn.ensemble"
    model.__class__ = Other
    nearest: NearestPoint = measured(model, points, Nearest("l2", effort="fast"))
    assert nearest.proved is None
