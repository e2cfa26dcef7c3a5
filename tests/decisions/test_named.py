"""Decisions by their text, and refusals."""

from __future__ import annotations

import pytest
import torch

import brittle
from brittle.decisions import Custom, Decision, MultiLabel, PredictedClass, SameTop, Within
from brittle.decisions.kinds import as_decision
from brittle.errors import ParameterError
from brittle.scores import LogitMargin

WORDS: dict[str, Decision] = {
    "class": PredictedClass(),
    "multilabel": MultiLabel(),
    "multilabel:3": MultiLabel(only=3),
    "multilabel:calm": MultiLabel(only="calm"),
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
    with pytest.raises(ParameterError) as caught:
        as_decision(word)
    assert caught.value.code == "parameter"


@pytest.mark.parametrize(
    "make",
    [
        lambda: SameTop(1.5),  # type: ignore[arg-type]
        lambda: Within(float("nan")),
        lambda: Within(()),
        lambda: MultiLabel(threshold=float("inf")),
        lambda: MultiLabel(only=True),  # type: ignore[arg-type]
        lambda: MultiLabel(only=""),
        lambda: Custom("overlap"),  # type: ignore[arg-type]
        lambda: as_decision(5),  # type: ignore[arg-type]
        lambda: brittle.Classifier(torch.nn.Linear(2, 2), outputs="probs", decision=Within(0.1)),
        lambda: brittle.Classifier(torch.nn.Linear(2, 2), outputs="binary-logit", decision="multilabel"),
        lambda: brittle.Classifier(torch.nn.Linear(2, 2), outputs="probs", decision=MultiLabel(threshold=1.0)),
        lambda: brittle.Classifier(torch.nn.Linear(2, 2), outputs="probs", decision=MultiLabel(threshold=(0.3, 0.0))),
    ],
)
def test_invalid_decisions_are_refused(make) -> None:
    with pytest.raises(ParameterError) as caught:
        make()
    assert caught.value.code == "parameter"


X = torch.rand(9, 4, generator=torch.Generator().manual_seed(5))
NAMES = ("rain", "snow", "fog", "wind")


def score_label(network: torch.nn.Module, label: str, names: tuple[str, ...] | None = NAMES) -> brittle.Table:
    points = brittle.data.array_points(X, class_names=names)
    classifier = brittle.Classifier(network, decision=f"multilabel:{label}")
    return brittle.score(classifier, points, [LogitMargin()], skip_doctor=True)


def test_a_label_by_its_name_is_the_label_by_its_position() -> None:
    """Names of the data, then of the model, which take precedence; the records are equal."""
    network = torch.nn.Linear(4, 4)
    by_name, by_place = score_label(network, "fog"), score_label(network, "2")
    assert by_name.record.model == by_place.record.model
    assert by_name["logit_margin"].value.tolist() == by_place["logit_margin"].value.tolist()
    classifier = brittle.Classifier(network, decision=MultiLabel(only="fog"))
    classifier.class_names = tuple(reversed(NAMES))
    with torch.no_grad():
        assert LogitMargin()(classifier, X).value.tolist() == pytest.approx(network(X)[:, 1].abs().tolist())


def test_a_label_is_looked_up_in_the_names_of_each_data_set() -> None:
    """Scoring does not change the classifier."""
    network = torch.nn.Linear(4, 4)
    classifier = brittle.Classifier(network, decision="multilabel:fog")
    for names in (NAMES, tuple(reversed(NAMES))):
        points = brittle.data.array_points(X, class_names=names)
        table = brittle.score(classifier, points, [LogitMargin()], skip_doctor=True)
        with torch.no_grad():
            expected = network(X)[:, names.index("fog")].abs().tolist()
        assert table["logit_margin"].value.tolist() == pytest.approx(expected)


def test_declared_names_without_the_label_are_refused() -> None:
    with pytest.raises(ParameterError):
        brittle.Classifier(torch.nn.Linear(4, 4), decision="multilabel:fogg", class_names=NAMES)


@pytest.mark.parametrize("names", [NAMES, None])
def test_a_name_that_no_label_has_is_refused(names: tuple[str, ...] | None) -> None:
    with pytest.raises(ParameterError, match="fogg"):
        score_label(torch.nn.Linear(4, 4), "fogg", names)
    with pytest.raises(ParameterError, match="fogg"):
        LogitMargin()(brittle.Classifier(torch.nn.Linear(4, 4), decision="multilabel:fogg"), X)


def test_deciding_finds_a_label_by_its_name() -> None:
    network = torch.nn.Linear(2, 3)
    classifier = brittle.Classifier(network, decision="multilabel", class_names=["a", "b", "c"])
    points = torch.rand(4, 2)
    by_name, by_place = (LogitMargin()(classifier.deciding(MultiLabel(only=label)), points) for label in ("c", 2))
    assert torch.equal(by_name.value, by_place.value)
