"""Scores of a probability read that of the model: `predict_proba` of an estimator, not a softmax of its scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.artefacts import refused

import brittle
from brittle.cli.commands import main
from brittle.scores import MaxProbability, MonteCarlo, NoiseScore, ProbabilityChange, Score, Shrinkage, Softmax
from brittle.scores.catalogue import CATALOGUE

pytest.importorskip("sklearn")

from checks.classifiers import NOT_THE_SOFTMAX, POINTS, catalogue, data, verdict

pytestmark = pytest.mark.filterwarnings("ignore:::sklearn", "ignore:::lightgbm")  # of arguments that will go

QUICK = (
    *NOT_THE_SOFTMAX,
    "LogisticRegression",
    "GaussianNB",
    "QuadraticDiscriminantAnalysis",
    "DecisionTreeClassifier",
    "HistGradientBoostingClassifier",
    "CalibratedClassifierCV",
    "pipeline of a forest",
    "XGBClassifier",
)
"""Estimators that differ in their methods, and in the size and precision of their probabilities."""

CLASSES = {"GradientBoostingClassifier, loss='exponential'": (2,)}

WITHOUT = ("LinearSVC", "RidgeClassifier", "Perceptron", "SVC")


def _fit(name: str, classes: int) -> tuple[Any, np.ndarray]:
    x, y = data(classes)
    return catalogue()[name]().fit(x, y), x[:POINTS]


@pytest.mark.every_other
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", QUICK)
def test_scores_are_those_of_predict_proba(name: str, classes: int) -> None:
    """Scores agree at the points and at noisy copies; the class is that of `predict`."""
    comparison = verdict(catalogue()[name], min(classes, max(CLASSES.get(name, (classes,)))))
    assert comparison.holds, comparison
    assert comparison.agrees, comparison
    assert comparison.difference is not None, comparison


@pytest.mark.every_other
@pytest.mark.parametrize("name", NOT_THE_SOFTMAX)
def test_the_softmax_of_scores_is_another_number(name: str) -> None:
    estimator, x = _fit(name, max(CLASSES.get(name, (2, 3))))
    shares = brittle.Classifier(estimator)(torch.from_numpy(x)).softmax(dim=1).numpy()
    assert abs(shares - estimator.predict_proba(x)).max() > 0.1


@pytest.mark.parametrize("name", WITHOUT)
def test_without_predict_proba_there_is_no_probability(name: str) -> None:
    """Each score of a probability is refused by its name, and the default scores are others."""
    estimator, x = _fit(name, 3)
    classifier = brittle.Classifier(estimator)
    for kind in (kind for kind in CATALOGUE.values() if kind.serves == "probability"):
        score = kind(0.1) if issubclass(kind, NoiseScore) else kind()
        refused("parameter", f"{kind.name}.*predict_proba", brittle.score, classifier, (x, None), [score])
    table = brittle.score(classifier, (x, None), sigma=0.1)
    assert [column.score for column in table.columns] == ["shrinkage", "logit_margin"]


MODEL = """import numpy as np
from sklearn.svm import LinearSVC
x = np.random.default_rng(0).random((60, 3))
model = LinearSVC().fit(x, (2 * x[:, 0]).astype(int))
"""


def test_the_command_leaves_the_probability_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(MODEL, encoding="utf-8")
    np.save("data.npy", data(2)[0])
    assert main(["score", "./model.py:model", "data.npy", "--sigma", "0.1", "--out", "run", "--quiet"]) == 0
    assert [column.score for column in brittle.read_table("run").columns] == ["shrinkage", "logit_margin"]


def test_a_class_is_no_label_of_several() -> None:
    """One label of several is another question than a class, with other odds."""
    estimator, x = _fit("LogisticRegression", 3)
    classifier = brittle.Classifier(estimator, decision="multilabel:1")
    refused("estimator", "leave out", brittle.score, classifier, (x, None), "softmax")


def test_another_class_by_probability_is_noted() -> None:
    """Probabilities of support vectors are fitted separately; the note appears only with scores that read them."""
    estimator, x = _fit("SVC, probability=True", 2)
    points = x.repeat(20, axis=0) + np.random.default_rng(0).normal(size=(20 * POINTS, 3), scale=0.2)
    differs = (estimator.decision_function(points) > 0) != (estimator.predict_proba(points)[:, 1] > 0.5)
    points = np.concatenate((points[differs][:3], points[~differs][:17]))
    classifier = brittle.Classifier(estimator, bounds="none")
    notes = brittle.score(classifier, (points, None), [MaxProbability()]).record.warnings
    assert [note.code for note in notes] == ["outputs"]
    assert "3 of 20" in notes[0].sentence
    assert brittle.score(classifier, (points, None), "logit_margin").record.warnings == ()
    margin = brittle.score(classifier, (points, None), "probability_margin").columns[0].rows["value"]
    assert (margin.to_numpy() < 0).tolist() == [True] * 3 + [False] * 17


def test_probabilities_that_do_not_sum_to_1_are_noted() -> None:
    estimator, x = _fit("LGBMClassifier, objective='multiclassova'", 3)
    (note,) = brittle.score(brittle.Classifier(estimator), (x, None), [Softmax()]).record.warnings
    assert (note.code, "shares" in note.sentence) == ("outputs", True)


class Unsure:
    """A classifier that returns no probability for half of its rows."""

    classes_ = np.array([0, 1])

    def fit(self) -> Unsure:
        return self

    def decision_function(self, rows: np.ndarray) -> np.ndarray:
        return rows[:, 0] - 0.5

    def predict(self, rows: np.ndarray) -> np.ndarray:
        return (rows[:, 0] > 0.5).astype(int)

    def predict_proba(self, rows: np.ndarray) -> np.ndarray:
        return np.where(rows[:, 1:] > 0.5, np.nan, np.stack((1.0 - rows[:, 0], rows[:, 0]), axis=1))


def test_a_probability_that_is_not_finite_is_a_status() -> None:
    x = np.array([[0.1, 0.1], [0.1, 0.9], [0.8, 0.1]])
    scores = [MaxProbability(), ProbabilityChange(0.01, draws=1000)]
    for column in brittle.score(brittle.Classifier(Unsure()), (x, None), scores, skip_doctor=True).columns:
        assert column.rows["status"].tolist() == ["ok", "nonfinite_logits", "ok"], column.label
        assert column.rows["value"].isna().tolist() == [False, True, False]


def test_other_scores_change_nothing_and_passes_stay_apart() -> None:
    estimator, x = _fit("GaussianNB", 3)
    scores: list[Score] = [
        ProbabilityChange(0.1, draws=8),
        MonteCarlo(0.1, draws=40, limit=None),
        MonteCarlo(0.1, draws=4, limit=None),
        Shrinkage(0.1, draws=20, limit=None),
    ]

    def columns(*run_scores: Score) -> dict[str, Any]:
        table = brittle.score(brittle.Classifier(estimator), (x, None), run_scores, skip_doctor=True)
        return {column.label: column.rows[["value", "low", "high", "status", "passes"]] for column in table.columns}

    joint_columns = columns(*scores)
    for score in scores:
        single, joint = columns(score)[score.label], joint_columns[score.label]
        assert single[["status", "passes"]].equals(joint[["status", "passes"]])
        np.testing.assert_allclose(single[["value", "low", "high"]], joint[["value", "low", "high"]], rtol=1e-9)
    assert set(joint_columns[scores[0].label]["passes"]) == {2 * (1 + 8)}
    assert set(joint_columns[scores[1].label]["passes"]) == {1 + 40}
