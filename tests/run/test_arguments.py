"""Arguments of `brittle.score`: labels and scores behind the data, a path, options of reading."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from helpers.data_files import refused
from helpers.problems import inputs, small_classifier
from torch.utils.data import TensorDataset

import brittle
from brittle.data import array_points
from brittle.scores import LogitMargin, Softmax

pytest.importorskip("sklearn")

from sklearn.linear_model import LogisticRegression

pytestmark = pytest.mark.filterwarnings("ignore::brittle.BrittleWarning")

score = partial(brittle.score, skip_doctor=True)
"""Scoring without checks of the model, which are tested elsewhere."""

X = inputs(6)
Y = [0, 3, 1, 2, 0, 1]
FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(6, 2)), columns=["a", "b"])
FORMS: dict[str, Any] = {
    "list": Y, "tuple": tuple(Y), "array": np.array(Y), "column": np.array(Y)[:, None], "tensor": torch.tensor(Y),
    "series": pd.Series(Y),
}  # fmt: skip
SCORES: dict[str, Any] = {
    "name": "softmax", "names": ["softmax", "logit_margin"], "score": [Softmax()], "scores": (Softmax(), LogitMargin()),
}  # fmt: skip


def is_same(table: brittle.Table, expected: brittle.Table) -> bool:
    return table.points.equals(expected.points) and table.scores.equals(expected.scores)


@pytest.mark.parametrize("form", FORMS)
def test_labels_behind_the_data_are_those_of_a_pair(form: str) -> None:
    classifier, y = small_classifier(), FORMS[form]
    expected = score(classifier, (X, y), scores="softmax")
    assert expected.points["label"].to_pylist() == np.asarray(y).reshape(-1).tolist()
    for table in (
        score(classifier, X, y, scores="softmax"),
        score(classifier, X, y, ["softmax"]),
        score(classifier, (X, None), y, "softmax"),
    ):
        assert is_same(table, expected)


@pytest.mark.parametrize("form", SCORES)
def test_scores_behind_the_data_are_those_by_keyword(form: str) -> None:
    classifier, scores = small_classifier(), SCORES[form]
    for data in (X, (X, Y)):
        assert is_same(score(classifier, data, scores), score(classifier, data, scores=scores))


def test_names_of_classes_are_labels() -> None:
    """Even if a class has the name of a score, or scores are named as well."""
    names = ["linear", "ant", "linear", "ant", "linear", "ant"]
    model = LogisticRegression().fit(FRAME, names)
    for table in (
        score(model, FRAME, names, sigma=0.1),
        score(model, FRAME, names, scores=["softmax"]),
    ):
        assert table.frame()["label"].tolist() == names
    short = score(model, FRAME.head(2), ["linear", "ant"], scores="softmax")
    assert short.frame()["label"].tolist() == ["linear", "ant"]


NAMES = np.array(["bee", "ant", "bee", "ant", "bee", "ant"])
NAMED_FORMS: dict[str, Any] = {
    "list": NAMES.tolist(), "array": NAMES, "column": NAMES[:, None], "series": pd.Series(NAMES),
    "frame": pd.DataFrame({"kind": NAMES}), "categories": pd.Series(NAMES, dtype="category"),
}  # fmt: skip


@pytest.mark.parametrize("form", NAMED_FORMS)
def test_names_of_classes_are_labels_in_every_form(form: str) -> None:
    model = LogisticRegression().fit(FRAME, NAMES)
    data_in_forms: tuple[Any, ...] = (FRAME, FRAME.to_numpy())
    for data in data_in_forms:
        assert score(model, data, NAMED_FORMS[form], "softmax").frame()["label"].tolist() == NAMES.tolist()


@pytest.mark.parametrize("missing", [None, np.nan, 3])
def test_a_label_without_a_text_among_texts_is_named(missing: Any) -> None:
    model = LogisticRegression().fit(FRAME, NAMES)
    y = [*NAMES[:5].tolist(), missing]
    refused("labels", f"{missing!r} in row 5", brittle.score, model, FRAME, y, "softmax")


@pytest.mark.parametrize(
    "data",
    [(X, Y), array_points(X, Y), TensorDataset(X, torch.tensor(Y)), "x.npz", Path("x.npz")],
    ids=("pair", "points", "dataset", "text", "path"),
)
def test_labels_that_are_given_twice_are_refused(data: Any) -> None:
    refused("parameter", "labels", brittle.score, small_classifier(), data, Y)


def test_labels_beside_a_column_of_them_are_refused() -> None:
    model = LogisticRegression().fit(FRAME, Y)
    refused("parameter", "label_column", brittle.score, model, FRAME, Y, label_column="a")


def test_a_path_is_read_by_the_options_of_reading(tmp_path: Path) -> None:
    images = torch.rand(6, 1, 4, 4)
    np.savez(tmp_path / "x.npz", x=images.permute(0, 2, 3, 1).numpy(), y=np.array(Y))
    classifier = brittle.Classifier(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 4)))
    read = score(classifier, tmp_path / "x.npz", scores="softmax", layout="nhwc", sample=4)
    assert read.record.data.reading["layout"] == "nhwc"
    assert len(read.points) == 4
    rows = read.points["row"].to_pylist()
    values = score(classifier, images[rows], scores="softmax")["softmax"].value
    assert read["softmax"].value.tolist() == pytest.approx(values.tolist())
    refused("parameter", "text_column", brittle.score, classifier, tmp_path / "x.npz", text_column="a")


@pytest.mark.parametrize(
    ("word", "hint"), [("sigmas", "sigma"), ("text_colunm", "text_column"), ("spilt", "split"), ("score", "scores")]
)
def test_a_misspelt_option_gets_a_suggestion(word: str, hint: str) -> None:
    error = refused("parameter", word, brittle.score, small_classifier(), X, **{word: "test"})
    assert f"{hint}?" in str(error)


@pytest.mark.parametrize(
    "data", [X, (X, Y), FRAME, array_points(X), TensorDataset(X)], ids=("x", "pair", "frame", "points", "dataset")
)
def test_options_of_reading_are_for_paths(data: Any) -> None:
    refused("parameter", "split", brittle.score, small_classifier(), data, split="test")
