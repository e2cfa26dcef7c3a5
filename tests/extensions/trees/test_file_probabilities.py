"""Probabilities of a classifier of trees in a file are those of the model that wrote the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import brittle
from brittle.model.loading.load import load_model
from brittle.scores import MaxProbability

pytest.importorskip("sklearn")

from checks.classifiers import data

pytestmark = pytest.mark.filterwarnings("ignore:::sklearn", "ignore:::lightgbm")  # of arguments that will go

FILES: dict[str, tuple[str, dict[str, Any], int]] = {
    "XGBClassifier.json": ("xgboost", {}, 3),
    "LGBMClassifier.txt": ("lightgbm", {"sigmoid": 0.4}, 2),
    "LGBMClassifier, each class.txt": ("lightgbm", {"objective": "multiclassova", "sigmoid": 0.4}, 3),
    "CatBoostClassifier, each class.json": ("catboost", {"loss_function": "MultiClassOneVsAll"}, 3),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_the_probabilities_of_the_model_that_wrote_it(name: str, tmp_path: Path) -> None:
    library, options, classes = FILES[name]
    (x, y), kind = data(classes), name.partition("Classifier")[0] + "Classifier"
    quiet = {"silent": True, "allow_writing_files": False} if library == "catboost" else {"verbosity": -1}
    quiet = {} if library == "xgboost" else quiet
    estimator = getattr(pytest.importorskip(library), kind)(n_estimators=9, **options, **quiet).fit(x, y)
    file = str(tmp_path / name)
    saved = {"format": "json"} if library == "catboost" else {}
    (estimator.booster_ if library == "lightgbm" else estimator).save_model(file, **saved)
    shares = estimator.predict_proba(x)
    model = brittle.Classifier(load_model(Path(file)).module, bounds="none")
    (column,) = brittle.score(model, (x, None), [MaxProbability()], skip_doctor=True).columns
    truth = (shares / shares.sum(axis=1, keepdims=True)).max(axis=1)
    np.testing.assert_allclose(column.rows["value"], truth, atol=1e-6 if library == "xgboost" else 1e-9)
