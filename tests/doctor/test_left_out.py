"""A score that a model cannot have is left out with a note, unless nothing else was asked for."""

from __future__ import annotations

import pytest
from helpers.problems import Wrapped, inputs, small_classifier, small_network
from torch import Tensor, nn

import brittle
from brittle.data import array_points
from brittle.doctor import leave_out
from brittle.errors import BrittleWarning, ModelError
from brittle.scores import FeatureDistance, FeatureMargin, LogitMargin, Score

COUNT = 12
OTHERS: list[Score] = [LogitMargin()]
READING: list[Score] = [FeatureMargin(), FeatureMargin("linf"), FeatureDistance(effort="fast")]


class Counting(nn.Module):
    """A network that counts its passes, with no linear layer at its end."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.seen = small_network(), 0

    def forward(self, x: Tensor) -> Tensor:
        self.seen += 1
        return self.inner(x).tanh()


def headless() -> nn.Module:
    return Wrapped(lambda x, logits: logits.tanh())


def without_linear() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 4, 6), nn.Flatten())


def left(network: object, scores: list[Score], **declared: str) -> tuple[list[Score], list[str]]:
    classifier = brittle.Classifier(network, **declared)  # pyright: ignore[reportArgumentType] the words are known
    kept, found = leave_out(scores, classifier, array_points(inputs(COUNT), None))
    return [*kept], [one.code for one in found]


@pytest.mark.parametrize("network", [headless, without_linear, lambda: small_network().forward])
def test_scores_of_features_are_left_out_beside_others(network) -> None:
    assert left(network(), [*READING, *OTHERS]) == (OTHERS, ["score_left_out"])


def test_where_there_is_a_head_nothing_is_left_out() -> None:
    assert left(small_network(), [*READING, *OTHERS]) == ([*READING, *OTHERS], [])


def test_a_layer_that_was_named_is_an_error_of_the_run() -> None:
    assert left(headless(), [*READING, *OTHERS], head="nowhere") == ([*READING, *OTHERS], [])
    with pytest.raises(ModelError, match="no linear layer called 'nowhere'"):
        brittle.score(brittle.Classifier(headless(), head="nowhere"), inputs(COUNT), [FeatureMargin(), LogitMargin()])


def test_the_run_has_the_others_and_says_which_it_lacks() -> None:
    with pytest.warns(BrittleWarning, match=r"score_left_out: left out: feature_margin\(norm=l2\); the logits are not"):
        table = brittle.score(brittle.Classifier(headless()), inputs(COUNT), [FeatureMargin(), *OTHERS])
    alone = brittle.score(brittle.Classifier(headless()), inputs(COUNT), OTHERS)
    assert [one.score for one in table.record.scores] == ["logit_margin"]
    assert table.record.account.passes == alone.record.account.passes
    assert table[OTHERS[0]].value.equals(alone[OTHERS[0]].value)
    assert [note.code for note in table.record.warnings].count("score_left_out") == 1


def test_the_model_is_left_as_it_was() -> None:
    network = Counting().train()
    assert left(network, [*READING, *OTHERS])[1] == ["score_left_out"]
    assert network.seen == 0
    assert network.training
    classifier = small_classifier()
    leave_out([*READING, *OTHERS], classifier, array_points(inputs(COUNT), None))
    assert classifier.passes == 0
