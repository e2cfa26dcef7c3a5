"""Scores of a probability of classifiers of tables, compared with their own `predict` and `predict_proba`.

    PYTHONPATH=tests python -m checks.classifiers

All classifiers of scikit-learn, with two classes and with three, some of them inside others, and those of XGBoost,
LightGBM and CatBoost. Printed: whether every predicted class is that of `predict`, and by how much a score differs most
from the same number of `predict_proba`; or why the classifier, or a score of a probability, is refused. It exits with 1
where a class differs, or a score by more than rounding.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from inspect import Parameter, signature
from typing import Any

import numpy as np
import torch
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import all_estimators

import brittle
from brittle.errors import BrittleError, ParameterError
from brittle.noise import Gaussian, Stream
from brittle.scores import Entropy, LogitMargin, MaxProbability, ProbabilityChange, ProbabilityMargin, Score, Softmax

FITTED, POINTS, DRAWS, NOISE = 120, 30, 8, Gaussian(0.1)

ROUNDING = 1e-9
"""Largest allowed difference of a score from the number of `predict_proba`."""

Make = Callable[[], Any]
"""Function that makes an unfitted classifier."""


def _two() -> list[tuple[str, Any]]:
    return [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=3, random_state=0))]


def _forest() -> Any:
    return RandomForestClassifier(20, random_state=0)


def in_fifths(rows: np.ndarray) -> np.ndarray:
    """Turn numbers in 0..1 into whole numbers of fifths, which a classifier of categories takes."""
    return (5 * np.asarray(rows)).clip(0, 4).astype(int)


ARGUMENTS: dict[str, Mapping[str, Any]] = {
    "HistGradientBoostingClassifier": {"max_iter": 20},
    "MLPClassifier": {"max_iter": 20, "random_state": 0},
    "NuSVC": {"nu": 0.2},
    "RadiusNeighborsClassifier": {"outlier_label": "most_frequent"},
    "SelfTrainingClassifier": {"estimator": GaussianNB()},
    "StackingClassifier": {"estimators": _two()},
    "VotingClassifier": {"estimators": _two()},
}
"""Arguments of classifiers of scikit-learn that need some; others that take an `estimator` have a regression."""


def _of_scikit_learn(name: str, kind: Any) -> Make:
    if name == "CategoricalNB":
        return lambda: make_pipeline(FunctionTransformer(in_fifths), kind(min_categories=5))
    required = signature(kind).parameters.get("estimator")
    inside = {"estimator": LogisticRegression()} if required is not None and required.default is Parameter.empty else {}
    return lambda: kind(**ARGUMENTS.get(name, inside))


def _of_library(library: str, name: str, **arguments: Any) -> Make:
    return lambda: getattr(import_module(library), name)(**arguments)


NOT_THE_SOFTMAX: dict[str, Make] = {
    "SVC, probability=True": lambda: SVC(**{"probability": True, "random_state": 0}),
    "OneVsRestClassifier": lambda: OneVsRestClassifier(LogisticRegression()),
    "GradientBoostingClassifier, loss='exponential'": lambda: GradientBoostingClassifier(
        loss="exponential", n_estimators=10
    ),
    "LGBMClassifier, boosting_type='rf'": _of_library(
        "lightgbm", "LGBMClassifier", boosting_type="rf", subsample=0.6, subsample_freq=1, n_estimators=9, verbose=-1
    ),
}
"""Classifiers whose probability is not the softmax of their `decision_function`; the third of two classes alone."""

OTHERS: dict[str, Make] = {
    "SVC, break_ties=True": lambda: SVC(break_ties=True),
    "VotingClassifier, voting='soft'": lambda: VotingClassifier(_two(), voting="soft"),
    "pipeline of a regression": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "pipeline of a forest": lambda: make_pipeline(StandardScaler(), _forest()),
    "GridSearchCV of a forest": lambda: GridSearchCV(_forest(), {"max_depth": [2, 4]}),
    "CalibratedClassifierCV, isotonic": lambda: CalibratedClassifierCV(LinearSVC(), method="isotonic"),
    "XGBClassifier": _of_library("xgboost", "XGBClassifier", n_estimators=20),
    "LGBMClassifier": _of_library("lightgbm", "LGBMClassifier", n_estimators=20, verbose=-1),
    "LGBMClassifier, objective='multiclassova'": _of_library(
        "lightgbm", "LGBMClassifier", objective="multiclassova", n_estimators=20, verbose=-1
    ),
    "CatBoostClassifier": _of_library(
        "catboost", "CatBoostClassifier", iterations=20, silent=True, allow_writing_files=False
    ),
}


def catalogue() -> dict[str, Make]:
    """Return all classifiers by name."""
    of_scikit_learn = {name: _of_scikit_learn(name, kind) for name, kind in all_estimators(type_filter="classifier")}
    return of_scikit_learn | NOT_THE_SOFTMAX | OTHERS


def data(classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows in the unit cube, `[FITTED, 3]`, and their classes, which overlap."""
    generator = np.random.default_rng(classes)
    x = generator.random((FITTED, 3))
    return x, ((x[:, 0] + 0.3 * generator.random(FITTED)) / 1.3 * classes).astype(int)


@dataclass(frozen=True)
class Verdict:
    """Outcome of a classifier: whether its classes agree, and the largest `difference` of a score of a probability.

    Both are None where these scores, or all, are refused, with the sentence.
    """

    agrees: bool | None = None
    difference: float | None = None
    refusal: str = ""

    @property
    def holds(self) -> bool:
        return self.agrees is not False and (self.difference is None or self.difference <= ROUNDING)


def verdict(make: Make, classes: int) -> Verdict:
    """Fit a classifier, score points by everything that reads a probability, and compare."""
    x, y = data(classes)
    try:
        estimator = make().fit(x, y)
    except Exception as error:  # noqa: BLE001 - each library raises its own
        return Verdict(refusal=f"cannot be fitted: {error}")
    rows = x[:POINTS]
    try:
        classifier = brittle.Classifier(estimator, bounds="none")
        points = brittle.score(classifier, (rows, None), [LogitMargin()], skip_doctor=True).points.to_pandas()
        predicted = points["predicted"].to_numpy()
        agrees = bool((estimator.classes_[predicted] == np.ravel(estimator.predict(rows))).all())  # CatBoost: [B, 1]
    except BrittleError as error:
        return Verdict(refusal=str(error))
    if not hasattr(estimator, "predict_proba"):
        return Verdict(agrees, refusal=refusal_of_all(classifier, rows))
    expected = dict(by_predict_proba(estimator, rows, predicted))
    columns = brittle.score(classifier, (rows, None), [*expected], skip_doctor=True).columns
    values = {column.label: column.rows["value"].to_numpy() for column in columns}
    differences = [abs(values[score.label] - truth).max() for score, truth in expected.items()]
    return Verdict(agrees, float(np.max(differences)))


def refusal_of_all(classifier: brittle.Classifier, rows: np.ndarray) -> str:
    """Return the sentence that refuses each score of a probability; fail where one is not refused."""
    sentences = []
    for score in (MaxProbability(), ProbabilityMargin(), Entropy(), Softmax(), ProbabilityChange(noise=NOISE)):
        try:
            brittle.score(classifier, (rows, None), [score], skip_doctor=True)
        except ParameterError as error:
            sentences.append(str(error))
        else:
            raise AssertionError(f"{score.name} has a number without a predict_proba")
    return sentences[0]


def by_predict_proba(estimator: Any, x: np.ndarray, predicted: np.ndarray) -> Iterator[tuple[Score, np.ndarray]]:
    """Compute every score of a probability, `[B]`, from `predict_proba` of rows `[B, n]` and of their noisy copies.

    Only the noise is drawn by `brittle`.
    """
    place = np.arange(len(x))
    shares = np.asarray(estimator.predict_proba(x), np.float64)
    shares /= shares.sum(axis=1, keepdims=True)  # 1, but for rounding and for each class by itself
    chosen_share, other_shares = shares[place, predicted], shares.copy()
    other_shares[place, predicted] = -1.0
    roots = np.sqrt(shares)
    yield MaxProbability(), shares.max(axis=1)
    yield ProbabilityMargin(), chosen_share - other_shares.max(axis=1)
    yield Entropy(), -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=1)
    yield Softmax(), 1.0 - chosen_share
    yield Softmax(temperature=2.0), 1.0 - roots[place, predicted] / roots.sum(axis=1)
    half = Stream(NOISE, torch.from_numpy(x), [str(at) for at in place], 0, "sample").draw(DRAWS // 2).numpy()
    change = np.empty((len(x), DRAWS // 2, 2))
    for member, sign in enumerate((1, -1)):
        copies = (x[:, None] + sign * half).reshape(-1, x.shape[1])
        copied_shares = np.asarray(estimator.predict_proba(copies), np.float64).reshape(*half.shape[:2], -1)
        change[:, :, member] = (copied_shares / copied_shares.sum(axis=2, keepdims=True))[
            place, :, predicted
        ] - chosen_share[:, None]
    mean, within = change.mean(axis=(1, 2)), change.mean(axis=2).var(axis=1, ddof=1) / (DRAWS // 2)
    moments = {
        "mean": mean,
        "absolute": abs(change).mean(axis=(1, 2)),
        "variance": (change**2).mean(axis=(1, 2)) - mean**2 + within,
    }
    for statistic, truth in moments.items():
        yield ProbabilityChange(noise=NOISE, draws=DRAWS, statistic=statistic), truth


def main() -> int:
    """Print a line for each classifier and number of classes, and return 1 where one does not hold."""
    warnings.simplefilter("ignore")
    wrong = 0
    for name, make in catalogue().items():
        for classes in (2, 3):
            outcome = verdict(make, classes)
            wrong += not outcome.holds
            note = outcome.refusal or f"{outcome.difference:.1e}"
            agrees = {True: "yes", False: "NO", None: "-"}[outcome.agrees]
            print(f"{name:46} {classes}  {agrees:3}  {'' if outcome.holds else 'WRONG '}{note:.200}", flush=True)
    print(f"{wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
