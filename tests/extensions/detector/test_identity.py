"""The identity of the model of a detector, and the source of its points."""

from __future__ import annotations

import pytest
import torch
from helpers.calibrated import classifier, points
from helpers.problems import linear_network

import brittle
from brittle.errors import ModelError, ParameterError
from brittle.extensions.detector.detector import Detector
from brittle.extensions.detector.identity import Identity, Source


def test_sources_are_the_same_by_digest_and_may_share_by_place() -> None:
    source = Source("a", "test", "data/x")
    assert source.is_same(Source("a", "test", "elsewhere"))
    assert not source.is_same(Source("a", "train", "data/x"))
    assert not source.is_same(Source("b", "test", "data/x"))
    assert source.may_share(Source("b", "test", "data/x")), "the digest of a folder changes with the limit"
    assert not source.may_share(Source("b", "train", "data/x"))
    assert not Source(None, None, None).may_share(Source(None, None, None))
    assert Source.of({"sha256": "a", "split": "test", "path": ""}) == Source("a", "test", None)


def test_another_model_or_preprocessing_is_refused(detector: Detector) -> None:
    weights = linear_network(3, 6, 0, torch.float32)
    classifiers = {
        "state_sha256": classifier(seed=5),
        "mean": brittle.Classifier(weights, mean=0.5, std=0.3),
        "std": brittle.Classifier(weights, mean=0.4, std=0.2),
        "bounds": brittle.Classifier(weights, bounds=(0, 2), mean=0.4, std=0.3),
        "outputs": brittle.Classifier(weights, mean=0.4, std=0.3, outputs="probs"),
    }
    for name, stranger in classifiers.items():
        for use in (detector.wrap, lambda subject: detector.apply(subject, points(8))):
            with pytest.raises(ModelError, match=f"{name} .* here ") as caught:
                use(stranger)
            assert caught.value.code == "other_model"
    with pytest.raises(ModelError, match="state_sha256"):
        detector.wrap(linear_network(3, 6, 5, torch.float32))
    with pytest.raises(ModelError, match=r"torch\.nn\.Module"):
        detector.apply(brittle.Classifier(lambda x: x), points(8))


@pytest.mark.parametrize("decision", ["multilabel:1", "top:2"])
def test_another_decision_has_no_detector(detector: Detector, decision: str) -> None:
    """It is neither fitted on such a run, nor applied to such a classifier."""
    subject = brittle.Classifier(linear_network(3, 6, 0, torch.float32), mean=0.4, std=0.3, decision=decision)
    run = brittle.score(subject, points(30), [brittle.scores.InputMargin(effort="fast")], skip_doctor=True)
    for use in (lambda: detector.apply(subject, points(8)), lambda: Detector.fit(run, epsilon=0.1)):
        with pytest.raises(ModelError, match=f"found the decision {decision}") as caught:
            use()
        assert caught.value.code == "other_model"


def test_bounds_of_a_detector_are_one_pair_or_none() -> None:
    weights = linear_network(3, 6, 0, torch.float32)
    assert Identity.of_classifier(brittle.Classifier(weights, bounds="none")).bounds is None
    assert Identity.of_classifier(brittle.Classifier(weights, bounds=(0, 2))).bounds == (0.0, 2.0)
    with pytest.raises(ParameterError, match="one range for all features, or none") as caught:
        Identity.of_classifier(brittle.Classifier(weights, bounds=([0.0] * 6, [1.0] * 5 + [2.0])))
    assert caught.value.code == "parameter"
