"""Rules of columns in the search of boxes: the nearest input keeps them, and none that does is nearer."""

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
def test_the_search_of_boxes_finds_the_nearest_whole_number_inside_bounds(kind: str) -> None:
    generator = np.random.default_rng(3)
    x = np.stack([generator.integers(0, 9, 150), generator.integers(0, 9, 150)], axis=1).astype(float)
    model = make(kind, 6, 3, 0).fit(x, (x[:, 0] * x[:, 1] + generator.normal(size=150) > 12).astype(int))
    truth = nearest_of_all_boxes(model, x[:20], 0.0, 8.0, integers=(0, 1))
    classifier = brittle.Classifier(model, None, rules={"0": "whole 0..8", "1": "whole, 0..8"})
    grid = np.stack(np.meshgrid(*[np.arange(9.0)] * 2), axis=-1).reshape(-1, 2)
    given, own = model.predict(grid), model.predict(x[:20])
    for norm, length in LENGTHS.items():
        found = brittle.nearest(classifier, torch.from_numpy(x[:20]), norm=norm)
        every = [length(grid[given != one] - row).min() for row, one in zip(x, own, strict=False)]
        np.testing.assert_allclose(found.distance, every, atol=1e-12)
        assert (truth[norm] <= found.distance.numpy() + 1e-12).all()
        assert torch.equal(found.points, found.points.round())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["forest", "boosted", "histograms", "xgboost", "lightgbm", "catboost"])
def test_the_search_of_boxes_is_exact_under_rules_of_several_columns(kind: str) -> None:
    """Of three colours and three numbers that never fall, against every box and combination."""
    if kind in ("xgboost", "lightgbm", "catboost"):
        pytest.importorskip(kind)
    rules = {"0": "one-hot:a", "1": "one-hot:a", "2": "one-hot:a", "3": "at-most:4", "4": "at-most:5"}
    x = related(150)[:, [0, 2, 3, 5, 6, 7]]
    y = (x[:, 0] + x[:, 5] - x[:, 3] + np.random.default_rng(2).normal(0.0, 0.3, 150) > 2.3).astype(int)
    model = make(kind, 4, 3, 0).fit(x, y)
    truth = nearest_under_rules(model, x[:3], [[0, 1, 2]], [[3, 4, 5]])
    free, ruled = (brittle.Classifier(model, "none", rules=one) for one in ({}, rules))
    farther = 0
    for norm, expected in truth.items():
        found, without = (brittle.nearest(one, torch.from_numpy(x[:3]), norm=norm) for one in (ruled, free))
        np.testing.assert_allclose(found.distance, expected, atol=1e-9)
        farther += int((found.distance > without.distance + 1e-9).sum())
        rows = found.points.numpy()
        assert (np.sort(rows[:, :3], axis=1) == [0.0, 0.0, 1.0]).all()
        assert (np.diff(rows[:, 3:], axis=1) >= 0).all()
    assert farther > 0


def test_fixed_columns_stay_and_the_run_is_another_one() -> None:
    x = table(200)
    y = (x[:, 2] + x[:, 3] > 0.9).astype(int)
    forest = make("forest", 6, 3, 0).fit(x, y)
    free, kept = (
        brittle.score(brittle.Classifier(forest, None, rules=rules), points(x[:20]), [InputMargin()])
        for rules in ({}, {"sex": "fixed"})
    )
    one, other = (np.array(run.frame()["input_margin"]) for run in (free, kept))
    assert (other >= one - 1e-12).all()
    assert (other > one).any()
    assert free.record.model.state_sha256 != kept.record.model.state_sha256


def test_what_is_computed_of_trees_is_no_part_of_their_digest() -> None:
    from sklearn.ensemble import RandomForestClassifier

    x = table()
    forest = RandomForestClassifier(5, random_state=0).fit(x, x[:, 4] > 0)
    classifier = brittle.Classifier(forest, "none", rules={"0": "whole"})
    first = brittle.score(
        classifier, (x[:6], None), [InputMargin(effort="fast")], skip_doctor=True
    ).record.model.state_sha256
    again = brittle.score(
        classifier, (x[:6], None), [InputMargin(effort="fast")], skip_doctor=True
    ).record.model.state_sha256
    assert first == again != brittle.Classifier(forest, "none").model.digest  # type: ignore[attr-defined]


def test_a_certificate_is_not_refuted_by_an_input_that_breaks_a_rule() -> None:
    from sklearn.ensemble import RandomForestClassifier

    x = table(200)
    forest = RandomForestClassifier(9, random_state=0).fit(x[:, :2], x[:, 0] > 50)
    classifier = brittle.Classifier(forest, "none", rules={"0": "whole"})
    found = InputMargin(attack="rays", effort="fast", certify=True)(classifier, torch.from_numpy(x[:10, :2]))
    assert int(Status.REFUTED) not in found.status.tolist()
    assert bool((found.low <= found.value * (1 + 1e-6)).all())
