"""The benchmark of suspicious labels: what it flips, how it counts, and that it ranks as the product lists."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from helpers.documents import ROOT
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import brittle
from brittle.analysis import point_list


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "research" / "benchmarks")
    return importlib.import_module("suspicious_labels")


def test_so_many_labels_become_others(benchmark: Any) -> None:
    y = np.arange(300) % 3
    labels, flipped = benchmark.flip(y, np.random.default_rng(0))
    assert flipped.sum() == 15
    assert ((labels != y) == flipped).all()
    assert set(labels) == {0, 1, 2}


def test_a_precision_counts_the_first_ones(benchmark: Any) -> None:
    flipped, suspicion = np.array([True, False, True, False]), np.array([0.9, 0.8, 0.7, 0.1])
    assert [benchmark.precision(flipped, suspicion, count) for count in (1, 2, 3, 4)] == [1.0, 0.5, 2 / 3, 0.5]


def test_the_ranking_of_the_product_is_its_list(benchmark: Any) -> None:
    """Check that wrong points come before all others, and that every ranking of several classes puts flips first."""
    x: Any
    x, y = (np.asarray(part) for part in load_wine(return_X_y=True))
    case = benchmark.Case(x, y, lambda: make_pipeline(StandardScaler(), LogisticRegression()), "per-feature", 0.3)
    model = case.make().fit(x[::2], y[::2])
    labels, flipped = benchmark.flip(y, np.random.default_rng(0))
    frame = benchmark.columns(case, model, x, labels).assign(flipped=flipped)
    table = brittle.score(model, (x, labels), noise="per-feature", sigma=0.3, skip_doctor=True)
    listed = point_list(table, correct="wrong")["row"].to_numpy()
    rankings = benchmark.rankings(frame)
    assert np.argsort(-rankings["show --wrong"])[: len(listed)].tolist() == listed.tolist()
    assert len(rankings) >= 7
    for suspicion in rankings.values():
        assert benchmark.precision(flipped, suspicion, 3) > 0.5
