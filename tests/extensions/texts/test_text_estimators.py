"""Scikit-learn classifiers of texts: they are scored as the function of texts that calls them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import brittle
from brittle.cli.commands import main
from brittle.model.texts import TextEstimator, TextFunction
from brittle.noise import Edits
from brittle.scores import MonteCarlo

pytest.importorskip("sklearn")

from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

ESTIMATORS: dict[str, Any] = {
    "words": lambda: make_pipeline(TfidfVectorizer(), LogisticRegression()),
    "characters": lambda: make_pipeline(TfidfVectorizer(analyzer="char", ngram_range=(1, 3)), MultinomialNB()),
    "without probabilities": lambda: make_pipeline(HashingVectorizer(n_features=64), LinearSVC(random_state=0)),
}
TEXTS = [
    f"{word} {place} is a {kind} film" for kind in ("good", "dull") for word in ("this", "that") for place in "abc"
]
TEXTS = TEXTS[:-3]  # so that a text without a known word is no tie
LABELS = ["fine" if "good" in text else "poor" for text in TEXTS]


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_scores_are_those_of_a_function_that_calls_it(kind: str) -> None:
    estimator = ESTIMATORS[kind]().fit(TEXTS, LABELS)
    names, score = sorted(set(LABELS)), MonteCarlo(noise=Edits("typos", 0.3), draws=60, limit=None)
    points = brittle.data.text_points(TEXTS, [names.index(label) for label in LABELS], class_names=names)

    def classes(texts: list[str]) -> np.ndarray:
        return np.eye(2)[[names.index(name) for name in estimator.predict(texts)]]

    models = {"logits": TextEstimator(estimator), "probs": TextFunction(classes)}
    tables = [
        brittle.score(brittle.Classifier(model, None, outputs=outputs), points, [score]).frame()
        for outputs, model in models.items()
    ]
    assert tables[0]["predicted"].tolist() == estimator.predict(TEXTS).tolist()
    assert tables[0]["p_robust"].tolist() == tables[1]["p_robust"].tolist()
    assert tables[0]["p_robust"].min() < 1


def test_a_pipeline_of_texts_is_a_model_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"text": TEXTS, "label": LABELS}).to_csv("films.csv", index=False)
    Path("films.py").write_text(
        "import pandas as pd\nfrom sklearn.feature_extraction.text import TfidfVectorizer\n"
        "from sklearn.linear_model import LogisticRegression\nfrom sklearn.pipeline import make_pipeline\n"
        "def make():\n    data = pd.read_csv('films.csv')\n"
        "    return make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(data.text, data.label)\n"
    )
    options = ["--noise", "typos:0.05", "--scores", "monte_carlo", "--draws", "60", "--quiet", "--out"]
    assert main(["score", "./films.py:make", "films.csv", *options, "run"]) == 0
    assert main(["score", "./films.py:make", "films.csv", *options, "probs", "--outputs", "probs"]) == 0
    first, second = (brittle.read_table(run).frame() for run in ("run", "probs"))
    assert first["correct"].all()
    assert second["p_robust"].tolist() == first["p_robust"].tolist()
    noise = {"noise": "typos:0.05", "draws": 60}
    third = brittle.score("./films.py:make", "films.csv", "monte_carlo", text_column="text", **noise).frame()
    assert third["p_robust"].tolist() == first["p_robust"].tolist()
