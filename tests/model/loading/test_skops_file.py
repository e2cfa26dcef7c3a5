"""Scikit-learn classifiers in files: those of skops are loaded, of trusted types alone."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from helpers.artefacts import refused
from sklearn.ensemble import RandomForestClassifier

import brittle
from brittle.model.loading.load import load_model

X = np.random.default_rng(0).random((30, 4))
Y = np.arange(30) % 3


@pytest.fixture
def skops() -> ModuleType:
    return pytest.importorskip("skops.io")


def test_a_forest_is_not_trusted_but_a_function_may_trust_it(skops: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "forest.skops"
    skops.dump(RandomForestClassifier(3).fit(X, Y), path)
    error = refused("file_refused", r"sklearn\.tree\._tree\.Tree", load_model, path)
    assert error.exit_code == 6
    code = tmp_path / "forest.py"
    load = f"skops.io.load({str(path)!r}, trusted=['sklearn.tree._tree.Tree'])"
    code.write_text(f"import skops.io\n\ndef make():\n    return {load}\n", encoding="utf-8")
    model = load_model(f"{code}:make")
    assert brittle.Classifier(model.module)(torch.from_numpy(X)).shape == (30, 3)
    assert model.provenance["runs_code"] is True


def test_files_without_a_skops_estimator_are_refused(skops: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "model.skops"
    skops.dump({"a": 1}, path)
    refused("model_file", "dict", load_model, path)
    content = path.read_bytes()
    for bad_content in (b"", b"text" * 20, content[:60]):
        path.write_bytes(bad_content)
        refused("model_file", "skops cannot load", load_model, path)
