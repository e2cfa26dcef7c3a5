"""Rules of columns in the search of boxes: the nearest input keeps them, and no input that keeps them is nearer."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.ruled import points, related, table
from helpers.small_trees import LENGTHS, make, nearest_of_all_boxes, nearest_under_rules

import brittle
from brittle.estimate import Status
from brittle.scores import InputMargin

pytest.importorskip("sklearn")


@pytest.mark.parametrize("kind", ["forest", "boosted", "histograms"])
def test_the_search_finds_the_nearest_whole_number_inside_bounds(kind: str) -> None:
    generator = np.random.default_rng(3)
    x = np.stack([generator.integers(0, 9, 150), generator.integers(0, 9, 150)], axis=1).astype(float)
    model = make(kind, 6, 3, 0).fit(x, (x[:, 0] * x[:, 1] + generator.normal(size=150) > 12).astype(int))
    truth = nearest_of_all_boxes(model, x[:20], 0.0, 8.0, integers=(0, 1))
    classifier = brittle.Classifier(model, None, rules={"0": "whole 0..8", "1": "whole, 0..8"})
    grid = np.stack(np.meshgrid(*[np.arange(9.0)] * 2), axis=-1).reshape(-1, 2)
    grid_classes, classes = model.predict(grid), model.predict(x[:20])
    for norm, length in LENGTHS.items():
        nearest = brittle.nearest(classifier, torch.from_numpy(x[:20]), norm=norm)
        distances = [length(grid[grid_classes != label] - row).min() for row, label in zip(x, classes, strict=False)]
        np.testing.assert_allclose(nearest.distance, distances, atol=1e-12)
        assert (truth[norm] <= nearest.distance.numpy() + 1e-12).all()
        assert torch.equal(nearest.points, nearest.points.round())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["forest", "boosted", "histograms", "xgboost", "lightgbm", "catboost"])
def test_the_search_is_exact_under_rules_of_several_columns(kind: str) -> None:
    """Three colours and three numbers that never fall, against every box and combination."""
    if kind in ("xgboost", "lightgbm", "catboost"):
        pytest.importorskip(kind)
    x = related(150)[:, [0, 2, 3, 5, 6, 7]]
    y = (x[:, 0] + x[:, 5] - x[:, 3] + np.random.default_rng(2).normal(0.0, 0.3, 150) > 2.3).astype(int)
    model = make(kind, 4, 3, 0).fit(x, y)
    names = [*getattr(model, "feature_names_in_", map(str, range(6)))]  # LightGBM 4.6 makes some up
    words = [*["one-hot:a"] * 3, f"at-most:{names[4]}", f"at-most:{names[5]}"]
    rules = dict(zip(names, words, strict=False))
    truth = nearest_under_rules(model, x[:3], [[0, 1, 2]], [[3, 4, 5]])
    free, ruled = (brittle.Classifier(model, "none", rules=column_rules) for column_rules in ({}, rules))
    farther = 0
    for norm, expected in truth.items():
        nearest, unruled = (brittle.nearest(model, torch.from_numpy(x[:3]), norm=norm) for model in (ruled, free))
        np.testing.assert_allclose(nearest.distance, expected, atol=1e-9)
        farther += int((nearest.distance > unruled.distance + 1e-9).sum())
        rows = nearest.points.numpy()
        assert (np.sort(rows[:, :3], axis=1) == [0.0, 0.0, 1.0]).all()
        assert (np.diff(rows[:, 3:], axis=1) >= 0).all()
    assert farther > 0


def test_fixed_columns_stay_and_change_the_digest() -> None:
    x = table(200)
    y = (x[:, 2] + x[:, 3] > 0.9).astype(int)
    forest = make("forest", 6, 3, 0).fit(x, y)
    free, fixed = (
        brittle.score(brittle.Classifier(forest, None, rules=rules), points(x[:20]), [InputMargin()])
        for rules in ({}, {"sex": "fixed"})
    )
    free_margins, fixed_margins = (np.array(run.frame()["input_margin"]) for run in (free, fixed))
    assert (fixed_margins >= free_margins - 1e-12).all()
    assert (fixed_margins > free_margins).any()
    assert free.record.model.state_sha256 != fixed.record.model.state_sha256


def test_a_search_does_not_change_the_digest_of_trees() -> None:
    from sklearn.ensemble import RandomForestClassifier

    x = table()
    forest = RandomForestClassifier(5, random_state=0).fit(x, x[:, 4] > 0)
    classifier = brittle.Classifier(forest, "none", rules={"0": "whole"})
    digest = brittle.score(
        classifier, (x[:6], None), [InputMargin(effort="fast")], skip_doctor=True
    ).record.model.state_sha256
    again = brittle.score(
        classifier, (x[:6], None), [InputMargin(effort="fast")], skip_doctor=True
    ).record.model.state_sha256
    assert digest == again != brittle.Classifier(forest, "none").model.digest  # type: ignore[attr-defined]


def test_an_input_that_breaks_a_rule_refutes_no_certificate() -> None:
    from sklearn.ensemble import RandomForestClassifier

    x = table(200)
    forest = RandomForestClassifier(9, random_state=0).fit(x[:, :2], x[:, 0] > 50)
    classifier = brittle.Classifier(forest, "none", rules={"0": "whole"})
    estimate = InputMargin(attack="rays", effort="fast", certify=True)(classifier, torch.from_numpy(x[:10, :2]))
    assert int(Status.REFUTED) not in estimate.status.tolist()
    assert bool((estimate.low <= estimate.value * (1 + 1e-6)).all())
