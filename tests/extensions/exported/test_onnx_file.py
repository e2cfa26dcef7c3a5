"""Networks in ONNX files: the numbers are those of the graph, whatever its batch axis, type and shape."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.artefacts import refused

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from helpers.onnx_files import Step, file_of, linear

import brittle
from brittle.model.loading.load import load_model

WEIGHT = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)


def _saved(folder: Path, content: bytes) -> str:
    path = folder / "net.onnx"
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize(("batch", "dtype"), [("rows", np.float64), (1, np.float32), (3, np.float32), (16, np.float32)])
def test_scores_are_those_of_the_graph_for_any_number_of_rows(batch: int | str, dtype: type, tmp_path: Path) -> None:
    weight = WEIGHT.astype(dtype)
    loaded = load_model(_saved(tmp_path, linear(weight, batch, (3, 2, 2))))
    x = torch.rand(7, 3, 2, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for rows in (1, 3, 7):
        scores = brittle.Classifier(loaded.module)(x[:rows])
        assert scores.shape == (rows, 4)
        np.testing.assert_allclose(scores.numpy(), x[:rows].flatten(1).numpy() @ weight.astype(np.float64), atol=1e-5)
    assert loaded.provenance["runs_code"] is False
    assert loaded.provenance["format"] == "onnx"


@pytest.mark.parametrize("batch", ["rows", 1, 2, 5])
def test_several_rows_of_output_for_each_input_are_refused(batch: int | str, tmp_path: Path) -> None:
    """One input gives the output `[5, 3]`, of which one input a pass once scored the first row only."""
    steps: list[Step] = [("Flatten", ["x"], ["flat"], {}), ("MatMul", ["flat", "w"], ["z"], {})]
    steps.append(("Reshape", ["z", "shape"], ["scores"], {}))
    constants = {"w": WEIGHT.repeat(4, axis=1)[:, :15], "shape": np.array([-1, 3], np.int64)}
    classifier = brittle.Classifier(load_model(_saved(tmp_path, file_of(steps, constants, batch, (3, 2, 2)))).module)
    for rows in (1, 2, 5, 15):
        refused("output_shape", r"\d+, 3\]", classifier, torch.rand(rows, 3, 2, 2))


@pytest.mark.parametrize("shape", [(12,), (1, 12), (2, 2, 3)])
def test_images_take_the_layout_of_the_graph(shape: tuple[int, ...], tmp_path: Path) -> None:
    classifier = brittle.Classifier(load_model(_saved(tmp_path, linear(WEIGHT, "rows", shape))).module)
    x = torch.rand(2, 3, 2, 2)
    expected = (x.permute(0, 2, 3, 1) if len(shape) == 3 else x).flatten(1).numpy() @ WEIGHT
    np.testing.assert_allclose(classifier(x).numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("shape", [(4, 3), (3, 2, 3)])
def test_numbers_are_never_put_in_another_order(shape: tuple[int, ...], tmp_path: Path) -> None:
    classifier = brittle.Classifier(load_model(_saved(tmp_path, linear(WEIGHT, 1, (3, 2, 2)))).module)
    refused("input_shape", r"\[3, 2, 2\]", classifier, torch.rand(2, *shape))


def test_weights_in_another_file_are_refused_and_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.bin").write_bytes(WEIGHT.tobytes())
    path = _saved(tmp_path, linear(WEIGHT, 1, (12,), external="secret.bin"))
    refused("file_refused", "save it in one file", load_model, path)


def test_an_error_of_onnxruntime_is_one_sentence(tmp_path: Path) -> None:
    steps: list[Step] = [("Reshape", ["x", "shape"], ["scores"], {})]
    content = file_of(steps, {"shape": np.array([-1, 5], np.int64)}, "rows", (3, 2, 2))
    classifier = brittle.Classifier(load_model(_saved(tmp_path, content)).module)
    refused("model_failed", r"\[2, 3, 2, 2\].*Reshape", classifier, torch.rand(2, 3, 2, 2))
