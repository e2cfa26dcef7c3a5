"""A pseudo margin as a score of a run."""

from __future__ import annotations

import math

import numpy as np
import torch
from helpers.stand_ins import points

import brittle
from brittle.detector.pseudo_margin import PseudoMargin, PseudoMarginScore


def test_it_is_a_score(classifier: brittle.Classifier, learned: PseudoMargin) -> None:
    x = points(20, seed=8)
    x[3, 0] = math.nan
    run = brittle.score(classifier, x, [PseudoMarginScore(learned)])
    values = run.scores["value"].to_pylist()
    assert values[3] is None
    with torch.no_grad():
        features = classifier.observe(x)[1]
    expected = learned.predict(features)
    assert np.allclose([v for v in values if v is not None], expected[~expected.isnan()], rtol=1e-5)
    assert run.record.scores[0].parameters == {"sha256": learned.digest, "norm": "linf"}
