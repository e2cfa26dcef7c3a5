"""Estimators that differ in one learned place have two digests or none; copies with the same predictions have one."""

from __future__ import annotations

import functools
import io
import pickle
import re
import threading
from collections import OrderedDict, UserDict, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import brittle
from brittle.decisions.function_code import estimator_digest
from brittle.errors import ModelError
from brittle.extensions.detector.detector import Detector
from brittle.scores import LogitMargin, MonteCarlo

pytest.importorskip("sklearn")

import joblib
from sklearn.ensemble import StackingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import BallTree, KDTree
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

X = np.random.default_rng(0).random((60, 3))
Y = (X[:, 0] > 0.5).astype(int)


class Scale:
    """A number and a method that reads it."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def apply(self, x: Any) -> Any:
        return x * self.factor

    @functools.lru_cache  # noqa: B019
    def cached(self, x: Any) -> Any:
        return x * self.factor


class Words(dict[str, int]):
    """A dictionary with an attribute."""


class Names(list[str]):
    """A list with an attribute."""


class Number(float):
    """A number with an attribute."""


class Measured(np.ndarray):
    """An array with an attribute, which pickle forgets."""


def _set_factor(part: Any, factor: float) -> Any:
    part.factor = factor
    return part


def _make_closure(factor: float) -> Callable[[Any], Any]:
    return lambda x: x * factor


def _default(factor: float) -> Callable[[Any], Any]:
    def scale(x: Any, factor: float = factor) -> Any:
        return x * factor

    return scale


def _circle(factor: float) -> list[Any]:
    circle: list[Any] = [factor]
    circle.append(circle)
    return circle


PARTS: dict[str, Callable[[int], Any]] = {
    "bound method": lambda n: Scale(n).apply,
    "cached method": lambda n: functools.partial(Scale(n).cached),
    "method of an estimator": lambda n: StandardScaler().fit(X + n).transform,
    "method of an array": lambda n: (X + n).__getitem__,
    "closure": _make_closure,
    "default argument": _default,
    "partial": lambda n: functools.partial(np.add, n),
    "pattern": lambda n: re.compile(f"a{n}"),
    "flags of a pattern": lambda n: re.compile("a", re.IGNORECASE if n == 1 else 0),
    "dictionary": lambda n: {"a": n},
    "order of a dictionary": lambda n: {"a": 0, "b": 0} if n == 1 else {"b": 0, "a": 0},
    "order of an ordered dictionary": lambda n: OrderedDict(a=0, b=0) if n == 1 else OrderedDict(b=0, a=0),
    "default_factory": lambda n: defaultdict(int if n == 1 else float),
    "dictionary of a user": lambda n: UserDict(a=n),
    "attribute of a dictionary": lambda n: _set_factor(Words(a=0), n),
    "attribute of a list": lambda n: _set_factor(Names(["a"]), n),
    "attribute of a number": lambda n: _set_factor(Number(0.5), n),
    "attribute of an array": lambda n: _set_factor(X.view(Measured), n),
    "mask": lambda n: np.ma.array([1, 2, 3], mask=[n == 1, n == 2, False]),
    "objects": lambda n: np.array(["a", n], object),
    "type of an array": lambda n: np.zeros(2, np.int64 if n == 1 else np.float64),
    "shape": lambda n: np.zeros((1, 2) if n == 1 else (2, 1)),
    "kind of array": lambda n: X if n == 1 else np.ma.array(X),
    "fields": lambda n: np.array([(n, 0.5)], [("a", "i1"), ("b", "f8")]),
    "text or bytes": lambda n: "a" if n == 1 else b"a",
    "list or tuple": lambda n: [0] if n == 1 else (0,),
    "number or truth": lambda n: 1 if n == 1 else True,
    "sets": lambda n: {"a", f"b{n}"},
    "kind of set": lambda n: {"a"} if n == 1 else frozenset("a"),
    "sets in sets": lambda n: {frozenset("ab"), "c"} if n == 1 else {frozenset("a"), frozenset("bc")},
    "circle": _circle,
    "metric of a tree": lambda n: KDTree(X, metric="euclidean" if n == 1 else "manhattan"),
    "points of a tree": lambda n: BallTree(X + n),
    "torch module": lambda n: torch.nn.Sequential(torch.nn.PReLU(init=n)).eval(),
    "tensor": lambda n: torch.full((2,), float(n)),
    "generator": lambda n: [np.random.RandomState(n)],
    "lock": lambda n: threading.Lock(),
}  # fmt: skip
NEVER = {"closure", "default argument", "lock"}


def _estimator_with(part: Any) -> LogisticRegression:
    estimator = LogisticRegression().fit(X, Y)
    estimator.part_ = [part]
    return estimator


@pytest.mark.parametrize("kind", PARTS)
def test_estimators_that_differ_in_one_place_have_two_digests(kind: str) -> None:
    estimator, changed = (_estimator_with(PARTS[kind](number)) for number in (1, 2))
    digest, changed_digest = estimator_digest(estimator), estimator_digest(changed)
    assert (digest is None) == (changed_digest is None) == (kind in NEVER)
    assert digest is None or digest != changed_digest
    assert estimator_digest(_estimator_with(PARTS[kind](1))) == digest


@pytest.mark.parametrize("kind", sorted({*PARTS} - NEVER - {"attribute of an array"}))
def test_a_pickle_has_the_same_digest(kind: str) -> None:
    estimator = _estimator_with(PARTS[kind](1))
    file = io.BytesIO()
    joblib.dump(estimator, file)
    file.seek(0)
    for copy in (pickle.loads(pickle.dumps(estimator)), joblib.load(file)):
        copy.predict(X)
        assert estimator_digest(copy) == estimator_digest(estimator)


def _texts() -> Any:
    texts = ["a good dog", "a bad cat"] * 5
    return make_pipeline(TfidfVectorizer(stop_words="english"), LogisticRegression()).fit(texts, [0, 1] * 5), texts[:2]


COPIES: dict[str, Callable[[], tuple[Any, Any]]] = {
    "texts": _texts,
    "stack": lambda: (StackingClassifier([("a", GaussianNB()), ("b", GaussianNB())], cv=2).fit(X, Y), X),
    "search": lambda: (GridSearchCV(LogisticRegression(), {"C": [1, 2]}, cv=2).fit(X, Y), X),
    "drawn to fit": lambda: (MLPClassifier(2, max_iter=400, tol=1.0).fit(X, Y), X),
    "scaled by a method": lambda: (
        make_pipeline(FunctionTransformer(StandardScaler().fit(X).transform), LogisticRegression()).fit(X, Y), X
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", COPIES)
def test_copies_that_predict_the_same_have_one_digest(kind: str) -> None:
    """After predictions, a pickle, and draws of NumPy's own generator, which a fit without a seed keeps."""
    estimator, x = COPIES[kind]()
    digest = estimator_digest(estimator)
    assert digest is not None
    copy = pickle.loads(pickle.dumps(estimator))
    for model in (estimator, copy):
        model.predict(x)
        np.random.random(3)  # noqa: NPY002
        assert estimator_digest(model) == digest


class Odd:
    """An object that cannot be pickled."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise self.error


@pytest.mark.parametrize(
    "part", [Odd(ValueError()), Odd(NotImplementedError()), threading.Lock()], ids=["value", "method", "lock"]
)
def test_unpicklable_models_are_scored_and_have_no_detector(part: Any) -> None:
    scores = [MonteCarlo(0.1, draws=100, limit=None), LogitMargin()]
    table = brittle.score(brittle.Classifier(_estimator_with(part)), torch.from_numpy(X), scores, skip_doctor=True)
    assert table.record.model.state_sha256 is None
    with pytest.raises(ModelError) as caught:
        Detector.fit(table, limit=0.7, tpr=0.8)
    assert caught.value.code == "other_model"
