"""Scikit-learn classifiers and functions of NumPy arrays keep their logits and have no gradients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from helpers.artefacts import refused

import brittle
from brittle.cli.commands import main
from brittle.data import open_points
from brittle.errors import DataError
from brittle.model.arrays import SMALLEST_PROBABILITY
from brittle.scores import MaxProbability, MonteCarlo, Taylor

pytest.importorskip("sklearn")

from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

ESTIMATORS = {
    "forest": lambda: RandomForestClassifier(12, random_state=0),
    "pipeline with a scaler": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "support vectors": SVC,
    "linear support vectors": lambda: LinearSVC(**{"random_state": 0, "dual": True}),
}

NAMES = np.array(["ant", "bee", "cat", "dog"])


def _data(classes: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(classes)
    labels = np.arange(60) % classes
    return (0.6 * generator.random((60, 3, 2)) + 0.4 * labels[:, None, None] / classes).astype(np.float32), labels


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_predictions_are_those_of_the_estimator(kind: str, classes: int) -> None:
    x, y = _data(classes)
    estimator = ESTIMATORS[kind]().fit(x.reshape(60, -1), NAMES[y])
    classifier = brittle.Classifier(estimator)
    assert classifier.class_names == tuple(NAMES[:classes])
    logits = classifier(torch.from_numpy(x))
    assert logits.shape == (60, classes)
    assert logits.dtype == torch.float64
    assert (NAMES[logits.argmax(1).numpy()] == estimator.predict(x.reshape(60, -1).astype(np.float64))).all()


def test_an_estimator_fitted_on_a_frame_gets_column_names(recwarn: pytest.WarningsRecorder) -> None:
    x, y = _data(2)
    frame = pd.DataFrame(x.reshape(60, -1), columns=list("abcdef"))
    forest = RandomForestClassifier(5, random_state=0).fit(frame, NAMES[y])
    logits = brittle.Classifier(forest)(torch.from_numpy(x))
    assert [str(warning.message) for warning in recwarn if "feature names" in str(warning.message)] == []
    assert (NAMES[logits.argmax(dim=1).numpy()] == forest.predict(frame)).all()


@pytest.mark.parametrize("outputs", ["logits", "probs"])
def test_probabilities_become_finite_logarithms(outputs: str) -> None:
    x, y = _data(4)
    forest = RandomForestClassifier(5, random_state=0).fit(x.reshape(60, -1), y)
    logits = brittle.Classifier(forest, outputs=outputs)(torch.from_numpy(x)).numpy()
    expected = forest.predict_proba(x.reshape(60, -1))
    assert (expected == 0).any()
    np.testing.assert_allclose(np.exp(logits), np.maximum(expected, 2.0**-23), rtol=1e-12)
    assert SMALLEST_PROBABILITY == 2.0**-23


@pytest.mark.parametrize("model", [RandomForestClassifier(20, random_state=0), GaussianNB()], ids=repr)
def test_zero_probabilities_pass_the_checks(model: Any) -> None:
    """Probabilities of 0 become a small number, so that sums exceed 1 a little."""
    x = np.random.default_rng(0).random((80, 3))
    model.fit(x, (8 * x[:, 0]).astype(int))
    table = brittle.score(brittle.Classifier(model, outputs="probs"), torch.from_numpy(x), "softmax")
    assert len(table.points) == 80


def test_scores_with_gradients_are_refused() -> None:
    x, y = _data(4)
    classifier, score = brittle.Classifier(GaussianNB().fit(x.reshape(60, -1), y)), Taylor(sigma=0.1)
    sentence = "use scores without gradients"
    refused("not_differentiable", sentence, score, classifier, torch.from_numpy(x))
    refused("not_differentiable", sentence, brittle.score, classifier, (x, y), [score])


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(StandardScaler(), LinearRegression()),
        RandomForestClassifier(),
        MultiOutputClassifier(GaussianNB()).fit([[0.0], [1.0]], [[0, 1], [1, 0]]),
        DecisionTreeClassifier().fit([[0.0], [1.0]], [3, 3]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_models_other_than_fitted_classifiers_are_refused(model: Any) -> None:
    refused("estimator", type(model).__name__, brittle.Classifier, model)


@pytest.mark.parametrize("classes", [3, 4])
def test_one_against_one_scores_are_refused(classes: int) -> None:
    """Three classes have as many pairs as classes."""
    x, y = _data(classes)
    model = make_pipeline(StandardScaler(), SVC(decision_function_shape="ovo")).fit(x.reshape(60, -1), y)
    refused("output_shape", "decision_function_shape='ovr'", brittle.Classifier(model), torch.from_numpy(x))


class Cautious(LogisticRegression):
    """A classifier with a threshold: predicts the second class only where its score is high."""

    def predict(self, X: Any) -> Any:
        return self.classes_[(self.decision_function(X) > 1.0).astype(int)]


def test_predictions_apart_from_the_largest_score_are_refused() -> None:
    """The user may still choose the probability by name."""
    x, y = _data(2)
    model = Cautious().fit(x.reshape(60, -1), y)
    refused("estimator", "decision_function", brittle.Classifier(model), torch.tensor(x))
    assert brittle.Classifier(model, outputs="probs")(torch.from_numpy(x)).shape == (60, 2)


@pytest.mark.parametrize(
    ("classes", "names"),
    [
        ([-1, 0, 7, 100], ("-1", "0", "7", "100")),
        ([1.0, 2.0, 3.0, 4.0], ("1", "2", "3", "4")),
        (["dog", "cat", "bee", "ant"], ("ant", "bee", "cat", "dog")),
    ],
)
def test_labels_are_those_of_the_fit(classes: list[Any], names: tuple[str, ...]) -> None:
    x, y = _data(4)
    labels = np.array(classes)[y]
    estimator = GaussianNB().fit(x.reshape(60, -1), labels)
    classifier = brittle.Classifier(estimator)
    plain_labels = labels.astype(int) if labels.dtype.kind == "f" else labels
    for data_labels in (plain_labels, plain_labels.tolist()):
        table = brittle.score(classifier, (x, data_labels), [MaxProbability()])
        points = table.points.to_pandas()
        predicted = estimator.predict(x.reshape(60, -1).astype(np.float64))
        assert [names[label] for label in points.label] == [str(label) for label in plain_labels]
        assert (points.correct.to_numpy() == (predicted == labels)).all()
        assert table.record.data.class_names == names


def test_labels_unknown_to_the_estimator_are_refused() -> None:
    x, y = _data(4)
    numbers = brittle.Classifier(GaussianNB().fit(x.reshape(60, -1), y + 1))
    pattern = "15 of 60 labels.*1, 2, 3, 4"
    refused("labels", pattern, brittle.score, numbers, (x, y), [MaxProbability()])
    words = brittle.Classifier(GaussianNB().fit(x.reshape(60, -1), NAMES[y]))
    pattern = "eel.*ant, bee"
    refused("labels", pattern, brittle.score, words, (x, np.array(["eel"] * 60)), [MaxProbability()])


def test_labels_of_data_with_names_are_mapped_by_name(tmp_path: Path) -> None:
    x, y = _data(4)
    order = np.array([2, 0, 3, 1])
    np.savez(tmp_path / "d.npz", x=x, y=np.argsort(order)[y], class_names=NAMES[order])
    classifier = brittle.Classifier(GaussianNB().fit(x.reshape(60, -1), NAMES[y]))
    table = brittle.score(classifier, open_points(tmp_path / "d.npz"), [MaxProbability()])
    assert table.points.to_pandas().label.tolist() == y.tolist()
    assert table.record.data.class_names == tuple(NAMES)
    renamed_points = open_points(tmp_path / "d.npz", class_names=[*NAMES[order]])
    assert brittle.score(classifier, renamed_points, [MaxProbability()]).points.to_pandas().label.tolist() != y.tolist()
    np.savez(tmp_path / "d.npz", x=x, y=y, class_names=["ant", "wasp", "cat", "dog"])
    mixed_points = open_points(tmp_path / "d.npz")
    refused("parameter", "wasp", brittle.score, classifier, mixed_points, [MaxProbability()])


def test_columns_in_another_order_are_refused(tmp_path: Path) -> None:
    """A forest that was fitted on a frame, and a table with the same columns turned around."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((40, 2)), columns=["age", "pay"])
    forest = RandomForestClassifier(5, random_state=0).fit(frame, (frame["age"] > 0.5).astype(int))
    frame[["pay", "age"]].to_csv(tmp_path / "turned.csv", index=False)
    frame.to_csv(tmp_path / "data.csv", index=False)
    classifier = brittle.Classifier(forest, bounds=(0, 1))
    scores = [MonteCarlo(sigma=0.1, draws=4, limit=None)]
    assert len(brittle.score(classifier, tmp_path / "data.csv", scores).points) == 40
    with pytest.raises(DataError, match=r"'age'.*'pay'"):
        brittle.score(classifier, tmp_path / "turned.csv", scores)


@pytest.mark.parametrize(
    ("threshold", "method", "refuses"),
    [(0.3, "auto", True), (0.5, "decision_function", True), (0.5, "auto", False), (0.0, "decision_function", False)],
)
def test_an_unusual_threshold_is_refused(threshold: Any, method: Any, refuses: bool) -> None:
    """The rows do not matter; the user may still choose the largest probability by name."""
    x, y = _data(2)
    rows = x.reshape(60, -1)
    model = FixedThresholdClassifier(LogisticRegression(), threshold=threshold, response_method=method).fit(rows, y)
    assert brittle.Classifier(model, outputs="probs")(torch.from_numpy(x)).shape == (60, 2)
    if refuses:
        refused("estimator", str(threshold), brittle.Classifier, model)
    else:
        predictions = brittle.Classifier(model)(torch.from_numpy(x)).argmax(1).numpy()
        assert (model.classes_[predictions] == model.predict(rows)).all()


def test_a_regressor_is_scored_by_changes_of_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of a linear model moves by a normal deviation `sigma |w|`."""
    x = np.random.default_rng(0).normal(size=(12, 2))
    price = x @ [3.0, 4.0]
    table = brittle.score(LinearRegression().fit(x, price), (x, price), "shrinkage", decision="within:0.5", sigma=0.1)
    column = table["shrinkage"]
    assert column.rows["low"].le(0.3173).all()
    assert column.rows["high"].ge(0.3173).all(), "P(|Z| > 1), each interval holds it but for 1 in 100; fixed seed"
    assert table.frame()["correct"].all()
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(x, columns=["a", "b"]).assign(price=price).to_csv("houses.csv", index=False)
    code = "import pandas as pd\nfrom sklearn.linear_model import LinearRegression\nframe = pd.read_csv('houses.csv')\n"
    Path("model.py").write_text(f"{code}model = LinearRegression().fit(frame[['a', 'b']], frame.price)\n")
    options = ["--decision", "within:0.5", "--label-column", "price", "--noise", "per-feature", "--sigma", "0.1"]
    assert main(["score", "./model.py:model", "houses.csv", *options, "--out", "run", "--quiet"]) == 0
    assert brittle.read_table("run").frame()["correct"].all()


def test_regressors_need_a_tolerance_and_one_decision() -> None:
    x = np.random.default_rng(0).normal(size=(12, 2))
    model = LinearRegression().fit(x, x[:, 0])
    refused("estimator", "within:T", brittle.score, model, x, sigma=0.1)
    classifier = brittle.Classifier(model, None, decision="within:1")
    refused("parameter", "decision=", brittle.score, classifier, x, decision="within:1", sigma=0.1)
    refused("estimator", "within:T", brittle.score, model, x, decision="multilabel", sigma=0.1)
    refused("parameter", "name=", brittle.score, classifier, x, name="line", sigma=0.1)


def test_a_model_in_memory_may_be_named() -> None:
    x, y = _data(2)
    table = brittle.score(GaussianNB().fit(x.reshape(60, -1), y), (x, y), ["softmax"], name="bayes of ants")
    assert table.record.model.spec == "bayes of ants"
    assert "bayes of ants" in repr(table)
