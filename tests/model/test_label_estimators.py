"""Scikit-learn classifiers of several labels at once: the labels that hold are those that `predict` gives."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from helpers.artefacts import refused

import brittle

pytest.importorskip("sklearn")

from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

ESTIMATORS: dict[str, Any] = {
    "one model a label": lambda: MultiOutputClassifier(LogisticRegression()),
    "one forest a label, whose votes tie": lambda: MultiOutputClassifier(RandomForestClassifier(4, random_state=0)),
    "a forest of all labels, whose votes tie": lambda: RandomForestClassifier(4, random_state=0),
    "a tree": lambda: DecisionTreeClassifier(max_depth=2, random_state=0),
    "neighbours that tie": lambda: KNeighborsClassifier(4),
    "one against the rest": lambda: OneVsRestClassifier(LogisticRegression()),
    "one against the rest, of probabilities alone": lambda: OneVsRestClassifier(GaussianNB()),
    "one against the rest, without probabilities": lambda: OneVsRestClassifier(LinearSVC(random_state=0)),
    "ridge": RidgeClassifier,
    "a chain": lambda: ClassifierChain(LogisticRegression(), random_state=0),
    "a network": lambda: MLPClassifier((8,), max_iter=40, random_state=0),
    "a pipeline": lambda: make_pipeline(StandardScaler(), MultiOutputClassifier(LogisticRegression())),
}


def _data() -> tuple[Any, Any]:
    x = np.random.default_rng(0).normal(size=(80, 5))
    return x, (x[:, :3] + 0.5 * x[:, 2:5] > (0.0, 0.5, -0.5)).astype(int)


def _fitted(kind: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a network that has not converged
        return ESTIMATORS[kind]().fit(*_data())


@pytest.mark.every_other
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_labels_are_those_that_predict_gives(kind: str) -> None:
    estimator, (_, y) = _fitted(kind), _data()
    x: Any = np.random.default_rng(1).normal(size=(80, 5))
    frame = brittle.score(estimator, x, y, "logit_margin", decision="multilabel").frame()
    predicted = np.asarray(estimator.predict(x)).astype(int)
    words = [", ".join(map(str, np.nonzero(row)[0])) or "none" for row in predicted]
    assert frame["decided"].tolist() == words
    assert frame["correct"].tolist() == (predicted == y).all(axis=1).tolist()


def test_the_votes_of_the_forests_tie() -> None:
    probabilities = np.stack(_fitted("a forest of all labels, whose votes tie").predict_proba(_data()[0]))
    assert (probabilities == 0.5).any(), "the law above would not see how a tie is decided"


@pytest.mark.parametrize("value", [0, 1])
def test_a_label_that_training_knew_with_one_value_keeps_it(value: int) -> None:
    x, y = _data()
    y[:, 1] = value
    forest = RandomForestClassifier(5, random_state=0).fit(x, y)
    logits = brittle.Classifier(forest, "none", decision="multilabel").undecided(torch.from_numpy(x))
    assert ((logits.numpy() > 0) == forest.predict(x)).all()


@pytest.mark.parametrize("kind", ["one model a label", "one against the rest", "a network"])
def test_the_probability_of_one_label_is_that_of_predict_proba(kind: str) -> None:
    estimator, (x, y) = _fitted(kind), _data()
    frame = brittle.score(estimator, x, y, "max_probability", decision="multilabel:1").frame()
    probabilities = estimator.predict_proba(x)
    holds = probabilities[1][:, 1] if isinstance(probabilities, list) else probabilities[:, 1]
    assert np.allclose(frame["max_probability"], np.maximum(holds, 1 - holds), atol=1e-6)


@pytest.mark.parametrize("frame", [True, False])
def test_a_frame_of_labels_names_them(frame: bool) -> None:
    pandas, (x, y) = pytest.importorskip("pandas"), _data()
    labels, inputs = pandas.DataFrame(y, columns=["rain", "snow", "fog"]), pandas.DataFrame(x).add_prefix("x")
    estimator = MultiOutputClassifier(LogisticRegression()).fit(inputs if frame else x, labels)
    table = brittle.score(estimator, inputs if frame else x, labels, "logit_margin", decision="multilabel:snow")
    assert set(table.frame()["predicted"]) == {"snow", "not snow"}
    all_labels = brittle.score(estimator, inputs if frame else x, labels, "logit_margin", decision="multilabel")
    expected = [" + ".join(labels.columns[row > 0]) or "none" for row in estimator.predict(inputs if frame else x)]
    assert all_labels.frame()["predicted"].tolist() == expected


def test_what_cannot_be_read_as_labels_is_refused() -> None:
    x, y = _data()
    several, no_probability = _fitted("one model a label"), _fitted("one against the rest, without probabilities")
    for estimator in (several, _fitted("one against the rest")):
        refused("estimator", "decision='multilabel'", brittle.score, estimator, x, noise="per-feature", sigma=0.1)
    single = LogisticRegression().fit(x, y[:, 0])
    refused("estimator", "leave out", brittle.score, single, x, y, "logit_margin", decision="multilabel")
    classes = DecisionTreeClassifier().fit(x, y + np.arange(80)[:, None] % 2)
    refused("estimator", "0 and 1", brittle.score, classes, x, y, "logit_margin", decision="multilabel")
    refused("parameter", "--outputs", brittle.Classifier, several, "none", decision="multilabel", outputs="probs")
    single_label = {"decision": "multilabel:1"}
    refused("parameter", "max_probability", brittle.score, no_probability, x, y, "max_probability", **single_label)
