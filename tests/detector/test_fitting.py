"""What may be asked of a run, and what the average case shares with the worst."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.calibrated import classifier, points
from helpers.tables import with_scores

import brittle
from brittle.detector import Detector
from brittle.errors import DataError, ModelError, ParameterError
from brittle.scores import LogitMargin
from brittle.store.table import Table


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"epsilon": 0.1, "limit": 0.9},
        *({"limit": limit} for limit in (0.0, 1, "0.9", math.nan)),
        {"limit": 0.9, "margin": "input_margin(norm=l2)"},
        {"epsilon": 0.1, "column": "monte_carlo"},
        {"limit": 0.9, "column": 3},
        {"limit": 0.9, "norm": "l3"},
        {"limit": 0.9, "score": "moments"},
    ],
    ids=str,
)
def test_what_cannot_be_asked_is_refused(noise_table: Table, options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Detector.fit(noise_table, **options)


def test_another_model_is_refused(noise_detector: Detector) -> None:
    with pytest.raises(ModelError, match="state_sha256") as caught:
        noise_detector.wrap(classifier(seed=5))
    assert caught.value.code == "other_model"
    other = brittle.Classifier(classifier().model, mean=0.5, std=0.3)
    with pytest.raises(ModelError, match="mean"):
        noise_detector.apply(other, points(8))


def test_the_flag_comes_from_one_pass_and_fails_closed(noise_detector: Detector, tmp_path: Path) -> None:
    subject, fresh = classifier(), points(200, seed=4)
    fresh[3, 0] = math.nan
    again = Detector.load(noise_detector.save(tmp_path / "detector.json"))
    assert again == noise_detector
    rows = again.apply(subject, fresh)
    assert rows["brittle"][3]
    flags = again.wrap(subject)(fresh)[2]
    assert rows["brittle"].tolist() == flags.tolist()
    assert 1 < int(flags.sum()) < 200


def test_a_pseudo_margin_may_decide_but_does_not_compete(noise_table: Table) -> None:
    """Its file must be given, so it is read where it is named alone, and never on points that it was learned from."""
    subject = classifier()
    learned = brittle.PseudoMargin.fit(points(60, seed=2), torch.rand(60), layers=1, width=4, epochs=1, norm="linf")
    run = brittle.score(subject, points(400), [learned.score, LogitMargin()])
    with pytest.raises(ParameterError, match="needs the file"):
        Detector.fit(noise_table, limit=0.9, score="pseudo_margin", scores=run)
    found = Detector.fit(noise_table, limit=0.9, tpr=0.9, score="pseudo_margin", scores=run, pseudo_margin=learned)
    assert found.parameters["sha256"] == learned.digest
    flags = found.wrap(subject, pseudo_margin=learned)(points(50, seed=3))[2]
    assert flags.tolist() == found.apply(subject, points(50, seed=3), pseudo_margin=learned)["brittle"].tolist()
    assert Detector.fit(noise_table, limit=0.9, tpr=0.9, scores=run).score == "logit_margin"


def test_a_score_that_is_not_there_is_named(noise_table: Table) -> None:
    bare = brittle.score(classifier(), points(400), [LogitMargin()])
    with pytest.raises(DataError, match="holds no flip probability"):
        Detector.fit(bare, limit=0.9)
    only = [one for one in noise_table.record.scores if one.score == "monte_carlo"]
    with pytest.raises(DataError, match="logit_margin"):
        Detector.fit(with_scores(noise_table, only), limit=0.9)
    found = Detector.fit(with_scores(noise_table, only), limit=0.9, tpr=0.9, scores=bare)
    assert (found.score, found.counts.choice) == ("logit_margin", 0)
