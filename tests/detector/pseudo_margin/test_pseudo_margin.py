"""A pseudo-margin learns the order that the logit margin misses, is repeatable, and is read without running code."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.calibrated import with_margins, without
from helpers.stand_ins import SMALL, Misleading, everything, margin, points
from torch import nn

import brittle
from brittle.analysis import kendall_tau
from brittle.data import array_points
from brittle.detector import Detector
from brittle.detector.pseudo_margin import PseudoMargin
from brittle.errors import DataError, ModelError, ParameterError
from brittle.scores import LogitMargin


def test_it_orders_points_that_the_logit_margin_does_not(classifier: brittle.Classifier, learned: PseudoMargin) -> None:
    fresh = points(500, seed=1)
    with torch.no_grad():
        logits, features = classifier.observe(fresh)
    before = kendall_tau(margin(fresh), (logits[:, 0] - logits[:, 1]).abs())
    after = kendall_tau(margin(fresh), learned.predict(features))
    assert before < 0.7
    assert after > 0.9
    assert after > before + 0.2
    assert learned.recipe.validation_loss < 0.01
    assert (learned.recipe.points, learned.recipe.norm, len(learned.points)) == (400, "linf", 400)


def test_predictions_are_margins_and_fail_closed(learned: PseudoMargin) -> None:
    features = torch.randn(50, 3, generator=torch.Generator().manual_seed(0)) * 100
    features[0, 1], features[1, 1] = math.nan, math.inf
    found = learned.predict(features)
    assert found.dtype == torch.float64
    assert found[:2].isnan().all()
    assert ((found[2:] >= 0) & (found[2:] <= learned.recipe.scale)).all()
    torch.testing.assert_close(learned.predict(features[2:3]), found[2:3], rtol=1e-5, atol=0.0)


def test_it_is_printed_in_a_line(learned: PseudoMargin) -> None:
    said = repr(learned)
    assert said.startswith(f"PseudoMargin({learned.recipe.points} points, 3 features, norm=")
    assert "\n" not in said
    assert len(said) < 120


def test_wrong_features_and_model(learned: PseudoMargin) -> None:
    with pytest.raises(ParameterError, match=r"\[B, 3\]"):
        learned.predict(torch.rand(2, 4))
    torch.manual_seed(0)  # some layers give outputs between 0 and 1 alone, which are refused
    other = brittle.Classifier(nn.Linear(2, 2))
    x = points(60, seed=0)
    run = with_margins(brittle.score(other, x, [LogitMargin()]), margin(x).tolist())
    data = array_points(x, None, bounds=(0, 1))
    with pytest.raises(ModelError, match="state_sha256"):
        PseudoMargin.fit_run(run, brittle.Classifier(Misleading()), data)
    with pytest.raises(ModelError, match=r"preprocessing: mean None here \(0\.5,\)"):
        PseudoMargin.fit_run(run, brittle.Classifier(other.model, mean=0.5), data)
    with pytest.raises(DataError, match=r"of the data .*found .*give those of the run"):
        PseudoMargin.fit_run(run, other, array_points(points(60, seed=1), None, bounds=(0, 1)))
    with pytest.raises(ParameterError, match=r"expected the brittle\.Table of a run, found str"):
        PseudoMargin.fit_run("run", other, data)  # pyright: ignore[reportArgumentType] misuse is what is tested
    with pytest.raises(ParameterError, match=r"expected a brittle\.Classifier, found Linear"):
        PseudoMargin.fit_run(run, other.model, data)  # pyright: ignore[reportArgumentType] misuse is what is tested
    with pytest.raises(DataError, match=r"data\.npz does not exist"):
        PseudoMargin.fit_run(run, other, "data.npz")  # pyright: ignore[reportArgumentType] misuse is what is tested
    with pytest.raises(ParameterError, match="without their data"):
        PseudoMargin.fit(x, margin(x), points=[str(row) for row in range(60)])
    with pytest.raises(DataError, match=r"its scores: .*input_margin\(norm=linf\)"):
        PseudoMargin.fit_run(run, other, data, norm="l2")


def test_detector_with_a_pseudo_margin(classifier: brittle.Classifier, learned: PseudoMargin, tmp_path: Path) -> None:
    """It is calibrated on points it was not trained on, flags far fewer robust points, and can be exported."""
    x = everything()
    run = with_margins(brittle.score(classifier, x, [LogitMargin(), learned.score]), margin(x).tolist())
    by_logits = Detector.fit(run, epsilon=0.1)
    found = Detector.fit(run, epsilon=0.1, score="pseudo_margin", pseudo_margin=learned)
    assert found.counts.learned_from == 400
    assert found.counts.brittle + found.counts.robust == 600
    assert found.false_positives.high < by_logits.false_positives.low
    assert found.verdict.trusted
    found = Detector.load(found.save(tmp_path / "detector.json"))
    read = PseudoMargin.load(learned.save(tmp_path / "pseudo.safetensors"))
    wrapped = found.wrap(classifier, pseudo_margin=read)
    fresh = points(1000, seed=6)
    wrapped(points(4, 0))
    exported = torch.export.export(
        wrapped, (points(4, 0),), dynamic_shapes={"inputs": {0: torch.export.Dim("batch")}}, strict=False
    ).module()
    flags = found.apply(classifier, fresh, pseudo_margin=read)
    _, score, brittle_points = wrapped(fresh)
    assert np.array_equal(brittle_points.numpy(), found.flag(score))
    assert torch.equal(exported(fresh)[2], brittle_points)
    assert np.mean(flags["brittle"].to_numpy() == brittle_points.numpy()) > 0.998
    assert found.flag(margin(fresh)).dtype == bool
    for wrong in (None, PseudoMargin.fit(points(50, 0), margin(points(50, 0)), **SMALL)):
        with pytest.raises(ModelError, match="pseudo-margin"):
            found.wrap(classifier, pseudo_margin=wrong)
        with pytest.raises(ModelError, match="pseudo-margin"):
            found.apply(classifier, fresh, pseudo_margin=wrong)
    with pytest.raises(ParameterError, match="pseudo_margin"):
        Detector.fit(run, epsilon=0.1, score="pseudo_margin")


def test_only_points_that_were_learned_from_are_left_out(classifier: brittle.Classifier, learned: PseudoMargin) -> None:
    """Other data have the same row numbers, which say nothing; those left out are named where too few remain."""
    x = points(500, seed=7)
    other = with_margins(brittle.score(classifier, x, [learned.score]), margin(x).tolist())
    fit = {"epsilon": 0.1, "score": "pseudo_margin", "pseudo_margin": learned}
    assert Detector.fit(other, **fit).counts.learned_from == 0
    x = everything()
    run = with_margins(brittle.score(classifier, x, [learned.score]), margin(x).tolist())
    with pytest.raises(DataError, match=r"found \d+ \(left out: 400 learned from\)"):
        Detector.fit(without(run, 420), **fit)


def test_a_pseudo_margin_of_another_model_or_norm(classifier: brittle.Classifier, learned: PseudoMargin) -> None:
    x = points(200, seed=7)
    for recipe, code in (({"norm": "l2"}, "other_model"), ({"model": "0" * 64}, "other_model")):
        other = replace(learned, recipe=replace(learned.recipe, **recipe))
        run = with_margins(brittle.score(classifier, x, [other.score]), margin(x).tolist())
        with pytest.raises(ModelError, match="was learned from") as caught:
            Detector.fit(run, 0.1, score="pseudo_margin", pseudo_margin=other)
        assert caught.value.code == code


def test_the_digest_covers_the_scale(learned: PseudoMargin) -> None:
    other = replace(learned, regressor=copy.deepcopy(learned.regressor))
    assert other.digest == learned.digest
    assert learned.regressor.scale == learned.recipe.scale
    again = replace(other)
    again.regressor.scale.mul_(2)
    assert again.digest != learned.digest
