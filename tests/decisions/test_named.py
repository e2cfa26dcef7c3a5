"""Decisions by their words, and what they refuse."""

from __future__ import annotations

import pytest
import torch

import brittle
from brittle.decisions import Custom, Decision, MultiLabel, PredictedClass, SameTop, Within, as_decision
from brittle.errors import ParameterError

WORDS: dict[str, Decision] = {
    "class": PredictedClass(),
    "multilabel": MultiLabel(),
    "multilabel:3": MultiLabel(only=3),
    "multilabel:calm": MultiLabel(only="calm"),
    "multilabel:each": MultiLabel(each=True),
    "top:5": SameTop(5),
    "within:0.1": Within(0.1),
    "within:0.1,2": Within((0.1, 2)),
}


@pytest.mark.parametrize("word", WORDS)
def test_a_word_is_a_decision_and_back(word: str) -> None:
    assert as_decision(word) == WORDS[word]
    assert WORDS[word].label == word


def test_nothing_is_the_predicted_class() -> None:
    assert as_decision(None) == PredictedClass() == brittle.Classifier(torch.nn.Linear(2, 2)).decision


@pytest.mark.parametrize(
    "word",
    ["", "classes", "top:x", "top:0", "within", "within:", "within:-1", "class:1", "multilabel:-1", "custom"],
)
def test_other_words_are_refused(word: str) -> None:
    with pytest.raises(ParameterError) as found:
        as_decision(word)
    assert found.value.code == "parameter"


@pytest.mark.parametrize(
    "make",
    [
        lambda: SameTop(1.5),  # type: ignore[arg-type]
        lambda: Within(float("nan")),
        lambda: Within(()),
        lambda: MultiLabel(threshold=float("inf")),
        lambda: MultiLabel(only=True),  # type: ignore[arg-type]
        lambda: MultiLabel(only=""),
        lambda: MultiLabel(only=1, each=True),
        lambda: Custom("overlap"),  # type: ignore[arg-type]
        lambda: as_decision(5),  # type: ignore[arg-type]
        lambda: brittle.Classifier(torch.nn.Linear(2, 2), outputs="probs", decision=Within(0.1)),
        lambda: brittle.Classifier(torch.nn.Linear(2, 2), outputs="binary-logit", decision="multilabel"),
        lambda: brittle.Classifier(torch.nn.Linear(2, 2), outputs="probs", decision=MultiLabel(threshold=1.0)),
        lambda: brittle.Classifier(torch.nn.Linear(2, 2), outputs="probs", decision=MultiLabel(threshold=(0.3, 0.0))),
    ],
)
def test_what_is_no_decision_is_refused(make) -> None:
    with pytest.raises(ParameterError) as found:
        make()
    assert found.value.code == "parameter"
