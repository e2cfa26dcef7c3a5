"""A pseudo-margin learns the order that the logit margin misses, is a score, and feeds a detector."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.calibrated import exported, with_margins
from helpers.stand_ins import SMALL, Misleading, everything, margin, points, small
from helpers.tables import first_points
from torch import nn

import brittle
from brittle.analysis.correlation import kendall_tau
from brittle.data import array_points
from brittle.errors import DataError, ModelError, ParameterError
from brittle.extensions.detector.detector import Detector
from brittle.extensions.detector.surrogate import Surrogate
from brittle.scores import LogitMargin


def test_it_orders_points_that_the_logit_margin_confuses(classifier: brittle.Classifier, learned: Surrogate) -> None:
    fresh = points(500, seed=1)
    with torch.no_grad():
        logits, features = classifier.observe(fresh)
    before = kendall_tau(margin(fresh), (logits[:, 0] - logits[:, 1]).abs())
    after = kendall_tau(margin(fresh), learned.predict(features, logits))
    assert before < 0.7
    assert after > 0.9
    assert learned.recipe.validation_loss < 0.01
    assert (learned.recipe.points, learned.recipe.norm, len(learned.points)) == (400, "linf", 400)
    text = repr(learned)
    assert text.startswith("Surrogate(400 points, 3 features, norm=")
    assert len(text) < 120


def test_predictions_are_margins_and_fail_closed(learned: Surrogate) -> None:
    features = torch.randn(50, 3, generator=torch.Generator().manual_seed(0)) * 100
    features[0, 1], features[1, 1] = math.nan, math.inf
    logits = features @ Misleading().head.weight.detach().T
    margins = learned.predict(features, logits)
    assert margins.dtype == torch.float64
    assert margins[:2].isnan().all()
    assert ((margins[2:] >= 0) & (margins[2:] <= learned.regressor.scale)).all()
    torch.testing.assert_close(learned.predict(features[2:3], logits[2:3]), margins[2:3], rtol=1e-5, atol=0.0)


def test_it_is_a_score(classifier: brittle.Classifier, learned: Surrogate) -> None:
    x = points(20, seed=8)
    x[3, 0] = math.nan
    run = brittle.score(classifier, x, [learned.score])
    values = run.scores["value"].to_pylist()
    assert values[3] is None
    with torch.no_grad():
        expected = learned.predict(*classifier.observe(x)[::-1])
    assert np.allclose([v for v in values if v is not None], expected[~expected.isnan()], rtol=1e-5)
    assert run.record.scores[0].parameters == {"sha256": learned.digest, "norm": "linf"}


def test_wrong_features_and_models_are_refused(learned: Surrogate) -> None:
    for wrong_pass, expected in (((torch.rand(2, 4), torch.rand(2, 2)), "features"), ((torch.rand(2, 3),), "logits")):
        with pytest.raises(ParameterError, match=f"expected {expected}"):
            learned.predict(*wrong_pass)
    torch.manual_seed(0)  # some layers give outputs between 0 and 1 alone, which are refused
    linear = brittle.Classifier(nn.Linear(2, 2))
    x = points(60, seed=0)
    run = with_margins(brittle.score(linear, x, [LogitMargin()]), margin(x).tolist())
    data = array_points(x, None, bounds=(0, 1))
    elsewhere = array_points(points(60, seed=1), None, bounds=(0, 1))
    wrong: list[tuple[type[Exception], str, tuple[object, ...]]] = [
        (ModelError, "state_sha256", (run, brittle.Classifier(Misleading()), data)),
        (ModelError, r"mean None here \(0\.5,\)", (run, brittle.Classifier(linear.model, mean=0.5), data)),
        (DataError, r"of the data .*found .*give those of the run", (run, linear, elsewhere)),
        (ParameterError, r"expected the brittle\.Table of a run, found str", ("run", linear, data)),
        (ParameterError, r"expected a brittle\.Classifier, found Linear", (run, linear.model, data)),
        (DataError, r"data\.npz does not exist", (run, linear, "data.npz")),
        (DataError, r"input_margin\(norm=linf\)", (run, linear, data, "l2")),
    ]
    for error, message, arguments in wrong:
        with pytest.raises(error, match=message):
            Surrogate.fit_run(*arguments)  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        Surrogate.fit_run(run, linear, data, form="none")  # type: ignore[arg-type]


def test_points_without_a_margin_are_dropped_and_others_clipped() -> None:
    x = points(100, seed=0)
    distance = margin(x)
    distance[:5] = math.nan
    distance[5:9] = math.inf
    x[9, 0] = math.nan
    learned = Surrogate.fit(x, distance, **small(epochs=2))
    assert learned.recipe.points == 94
    assert float(learned.regressor.scale) == pytest.approx(np.quantile(distance[10:].numpy(), 0.99))


def test_detector_with_a_pseudo_margin(classifier: brittle.Classifier, learned: Surrogate, tmp_path: Path) -> None:
    """Calibrated on other points than it was trained on, it flags far fewer robust points, and can be exported."""
    x = everything()
    run = with_margins(brittle.score(classifier, x, [LogitMargin(), learned.score]), margin(x).tolist())
    by_logits = Detector.fit(run, epsilon=0.1)
    detector = Detector.fit(run, epsilon=0.1, score="pseudo_margin", pseudo_margin=learned)
    assert detector.counts.learned_from == 400
    assert detector.counts.brittle + detector.counts.robust == 600
    assert detector.false_positives.high < by_logits.false_positives.low
    assert detector.verdict.trusted
    detector = Detector.load(detector.save(tmp_path / "detector.json"))
    read = Surrogate.load(learned.save(tmp_path / "pseudo.safetensors"))
    wrapped = detector.wrap(classifier, pseudo_margin=read)
    fresh = points(1000, seed=6)
    wrapped(points(4, 0))
    program = exported(wrapped, points(4, 0))
    flags = detector.apply(classifier, fresh, pseudo_margin=read)
    _, score, brittle_points = wrapped(fresh)
    assert np.array_equal(brittle_points.numpy(), detector.flag(score))
    assert torch.equal(program(fresh)[2], brittle_points)
    assert np.mean(flags["brittle"].to_numpy() == brittle_points.numpy()) > 0.998
    another = Surrogate.fit(points(50, 0), margin(points(50, 0)), **SMALL)
    for wrong, error in ((None, ParameterError), (another, ModelError)):
        with pytest.raises(error, match="pseudo-margin"):
            detector.wrap(classifier, pseudo_margin=wrong)
        with pytest.raises(error, match="pseudo-margin"):
            detector.apply(classifier, fresh, pseudo_margin=wrong)
    with pytest.raises(ParameterError, match="needs the file"):
        Detector.fit(run, epsilon=0.1, score="pseudo_margin")
    for use in (
        lambda: Detector.fit(run, 0.1, pseudo_margin=learned),
        lambda: by_logits.wrap(classifier, pseudo_margin=learned),
        lambda: by_logits.apply(classifier, x, pseudo_margin=learned),
    ):
        with pytest.raises(ParameterError, match="reads no pseudo-margin"):
            use()
    assert learned.recipe.model is not None
    model = replace(learned.recipe.model, state_sha256="0" * 64)
    stranger = replace(learned, recipe=replace(learned.recipe, model=model))
    with pytest.raises(ModelError, match="was learned from the model 0000"):
        Detector.fit(run, 0.1, score="pseudo_margin", pseudo_margin=stranger)
    # Other data have the same row numbers without a meaning; the error counts the points left out where too few remain.
    fit = {"epsilon": 0.1, "score": "pseudo_margin", "pseudo_margin": learned}
    elsewhere = points(500, seed=7)
    fresh_run = with_margins(brittle.score(classifier, elsewhere, [learned.score]), margin(elsewhere).tolist())
    assert Detector.fit(fresh_run, **fit).counts.learned_from == 0  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"found \d+ \(left out: 400 learned from\)"):
        Detector.fit(first_points(run, 420), **fit)  # type: ignore[arg-type]
