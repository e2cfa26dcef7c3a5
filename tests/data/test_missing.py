"""Missing values reach an estimator that accepts them, stay missing throughout, and cost their rows alone elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import brittle
from brittle.data import array_points, open_points
from brittle.measure.forward import hold_missing
from brittle.noise import Gaussian, Noise, PerFeature, Stream, Swap
from brittle.scores import MonteCarlo, Softmax

pytest.importorskip("sklearn")

from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

pytestmark = pytest.mark.filterwarnings("ignore::brittle.BrittleWarning")

RNG = np.random.default_rng(0)
COMPLETE = RNG.normal(size=(60, 4)) * [1, 10, 1, 100]
Y = (COMPLETE[:, 0] + COMPLETE[:, 2] > 0).astype(int)
X: Any = np.where(RNG.random(COMPLETE.shape) < 0.2, np.nan, COMPLETE)
X[0] = [np.nan, *COMPLETE[0, 1:]]


class RecordingTrees(HistGradientBoostingClassifier):
    """A classifier that records its input arrays."""

    def decision_function(self, X: Any) -> Any:
        vars(self).setdefault("arrays", []).append(np.asarray(X))
        return super().decision_function(X)


def make_trees() -> Any:
    return RecordingTrees(max_iter=5, min_samples_leaf=3).fit(X, Y)


def make_imputing_pipeline() -> Any:
    return make_pipeline(SimpleImputer(), LogisticRegression()).fit(X, Y)


@pytest.mark.parametrize("make", [make_trees, make_imputing_pipeline])
def test_scores_with_missing_values_match_the_predictions(make: Callable[[], Any]) -> None:
    model = make()
    table = brittle.score(model, (X, Y), ["monte_carlo", "softmax"], noise="per-feature", sigma=0.1).frame()
    assert table["softmax.status"].eq("ok").all()
    assert table["predicted"].astype(int).tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(table["softmax.p_robust"].astype(float), model.predict_proba(X).max(axis=1), rtol=1e-6)


@pytest.mark.parametrize("noise", [Gaussian(0.2), PerFeature.of(X, 0.2), Swap.of(X, 0.5)], ids=lambda noise: noise.name)
def test_only_missing_values_are_missing_in_every_pass(noise: Noise) -> None:
    model = make_trees()
    MonteCarlo(noise=noise, draws=100, limit=None)(brittle.Classifier(model, bounds=None), torch.from_numpy(X[:1]))
    inputs = np.concatenate(vars(model)["arrays"])
    assert len(inputs) > 60
    assert np.isnan(inputs[:, 0]).all()
    assert np.isfinite(inputs[:, 1:]).all()
    assert len(np.unique(inputs[:, 1])) > 1


def test_a_search_keeps_missing_values_and_its_points_hold() -> None:
    model = make_trees()
    classifier = brittle.Classifier(model, bounds=None)
    nearest = brittle.nearest(classifier, array_points(X[:4], bounds="none"), effort="fast", bounded=False)
    points = nearest.points.numpy()
    has_point = (nearest.predicted >= 0).numpy()
    assert has_point.sum() > 2
    np.testing.assert_array_equal(np.isnan(points), np.isnan(X[:4]))
    assert model.predict(points[has_point]).tolist() == nearest.predicted[has_point].tolist()
    lengths = np.sqrt(np.nansum((points - X[:4]) ** 2, axis=1))
    np.testing.assert_allclose(nearest.distance.numpy()[has_point], lengths[has_point], rtol=1e-5)


def test_exact_distances_of_rows_do_not_depend_on_other_rows() -> None:
    """Complete rows keep the exact distance, whatever the other rows hold."""
    model = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=3).fit(X, Y)
    classifier = brittle.Classifier(model, bounds=None)
    complete = np.flatnonzero(np.isfinite(X).all(axis=1))[:3]
    rows = [*complete, 0]
    joint, complete_only = (
        brittle.nearest(classifier, torch.from_numpy(X[subset]), effort="fast", bounded=False)
        for subset in (rows, complete)
    )
    assert joint.proved is not None
    assert (joint.proved > 0).tolist() == [True, True, True, False]
    torch.testing.assert_close(joint.distance[:3], complete_only.distance, rtol=0, atol=0)
    assert model.predict(joint.points.numpy()).tolist() == joint.predicted.tolist()


def test_refused_missing_values_cost_their_rows_alone() -> None:
    model = LogisticRegression().fit(COMPLETE, Y)
    table = brittle.score(model, X, ["monte_carlo"], sigma=0.1, most_failures=None).frame()
    has_missing = np.isnan(X).any(axis=1)
    assert table["status"].eq("nonfinite_input").tolist() == has_missing.tolist()
    complete_table = brittle.score(model, X[~has_missing], ["softmax"], sigma=None).frame()
    assert table["predicted"][~has_missing].tolist() == complete_table["predicted"].tolist()


def test_a_network_refuses_missing_values_of_a_frame_row_by_row(tmp_path: Path) -> None:
    frame = pd.DataFrame(X.astype(np.float64), columns=[*"abcd"])
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame.to_parquet(tmp_path / "x.parquet")
    network = torch.nn.Linear(4, 2)
    for data in (frame, tmp_path / "x.csv", tmp_path / "x.parquet"):
        table = brittle.score(brittle.Classifier(network, bounds=None), data, [Softmax()], most_failures=None).frame()
        assert table["status"].eq("nonfinite_input").tolist() == np.isnan(X).any(axis=1).tolist()


def test_cells_without_a_value_are_missing_numbers(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b,y\n1,,0\n2,NA,1\nnan,3,0\n", encoding="utf-8")
    inputs = next(iter(open_points(tmp_path / "x.csv").batches(3))).inputs
    assert inputs.isnan().tolist() == [[False, True], [False, True], [True, False]]


def test_noise_is_learned_from_present_values() -> None:
    noise = PerFeature.of(X, 1.0)
    torch.testing.assert_close(noise.scale, torch.from_numpy(np.nanstd(X, axis=0)))
    rows = Swap.of(X, 0.5).rows
    for place in range(4):
        assert {*rows[:, place].tolist()} == {*X[:, place][np.isfinite(X[:, place])].astype(np.float32).tolist()}


def test_a_called_score_is_the_same_run() -> None:
    classifier, score = brittle.Classifier(make_trees(), bounds=None), MonteCarlo(sigma=0.2, draws=20, limit=None)
    robust = brittle.score(classifier, X, [score]).frame()["p_robust"]
    assert [1 - flip for flip in score(classifier, torch.from_numpy(X)).value.tolist()] == robust.tolist()


def test_a_pattern_is_tried_once_and_no_pass_is_counted() -> None:
    classifier = brittle.Classifier(make_trees(), bounds=None)
    points = hold_missing(classifier, array_points(X, bounds="none"))
    batches = [*points.batches(20), *points.batches(60)]
    assert classifier.passes == 0
    assert all(bool(batch.inputs.isfinite().all()) for batch in batches)
    extra = batches[-1].extra_inputs
    assert extra is not None
    np.testing.assert_array_equal(extra.kept(batches[-1].inputs).numpy(), X)
    copies = Stream(Gaussian(1.0), batches[-1].inputs, batches[-1].ids, 0, "test", extra.varies).copies(2)
    assert bool(extra.kept(copies[:, 1, 0]).isnan().eq(torch.from_numpy(X).isnan()).all())
