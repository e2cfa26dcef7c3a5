"""The shape that a model accepts is found, if the data have another one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import brittle
from brittle.errors import DataError, ModelError
from brittle.scores import Softmax, Taylor

CONV = nn.Sequential(nn.Conv2d(3, 2, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
GREY = nn.Sequential(nn.Conv2d(1, 2, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
ROWS = nn.Linear(48, 2)


class Last(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return CONV(x.permute(0, 3, 1, 2))


class Series(nn.Module):
    """A recurrent network over the rows of grey images without an axis of channels."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.GRU(6, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cell(x)[0][:, -1])


CASES = {
    "channels last": (CONV, (4, 5, 6, 3), "nchw", "--layout nhwc (layout='nhwc')"),
    "a model of channels last": (Last(), (4, 3, 5, 6), None, "x = x.permute(0, 2, 3, 1)"),
    "grey for colours": (CONV, (4, 1, 5, 6), None, "x.repeat(1, 3, 1, 1)"),
    "colours for grey": (GREY, (4, 3, 5, 6), None, "x.mean(1, keepdim=True)"),
    "no axis of channels": (GREY, (9, 5, 6), None, "x[:, None]"),
    "no axis of points": (CONV, (3, 5, 6), None, "x[None]"),
    "no axis of channels for colours": (CONV, (9, 5, 6), None, "x[:, None].repeat(1, 3, 1, 1)"),
    "an axis of channels too much": (Series().eval(), (9, 1, 5, 6), None, "x[:, 0]"),
    "features before time": (Series().eval(), (9, 6, 5), None, "x.permute(0, 2, 1)"),
    "rows for images": (CONV, (4, 48), None, "x.reshape(-1, 3, 4, 4)"),
    "images for rows": (ROWS, (4, 3, 4, 4), None, "x.reshape(len(x), -1)"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_expected_shape_is_named(name: str) -> None:
    model, shape, layout, advice = CASES[name]
    points = brittle.data.array_points(torch.rand(shape), layout=layout)
    with pytest.raises(ModelError) as caught:
        brittle.score(brittle.Classifier(model.eval()), points, [Softmax()])
    assert caught.value.code == "layout"
    assert f"found {list(shape)}; " in str(caught.value)
    assert advice in str(caught.value)


def test_no_shape_is_suggested_if_none_fits() -> None:
    with pytest.raises(ModelError, match="give inputs of the shape that it takes"):
        brittle.score(brittle.Classifier(nn.Linear(7, 2).eval()), torch.rand(4, 5), [Softmax()])


def test_mean_and_std_of_channels_do_not_hide_the_layout() -> None:
    model, shape, layout, advice = CASES["rows for images"]
    points = brittle.data.array_points(torch.rand(shape), layout=layout)
    with pytest.raises(ModelError, match="the model takes inputs of shape") as caught:
        brittle.score(brittle.Classifier(model.eval(), mean=(0.1, 0.2, 0.3), std=(1, 2, 3)), points, [Softmax()])
    assert caught.value.code == "layout"
    assert advice in str(caught.value)


def test_mean_and_std_that_fit_no_layout_are_named() -> None:
    with pytest.raises(brittle.errors.ParameterError, match="2 numbers for mean"):
        brittle.score(brittle.Classifier(CONV.eval(), mean=(0.1, 0.2)), torch.rand(4, 3, 5, 6), [Softmax()])


@pytest.mark.parametrize("largest", [1, 300], ids=["within the bounds", "outside"])
@pytest.mark.parametrize(("decision", "count"), [("multilabel", 2), ("within:0.5", 1), ("class", 1)])
def test_label_columns_read_as_features_are_counted(tmp_path: Path, decision: str, count: int, largest: int) -> None:
    x = np.random.default_rng(0).uniform(0.1, 0.9, (12, 4 + count))
    x[:, 4:] = largest * (x[:, 4:] > 0.5)
    names = [f"f{at}" for at in range(4 + count)]
    np.savetxt(tmp_path / "table.csv", x, "%g", ",", header=",".join(names), comments="")
    outputs = 1 if decision.startswith("within") else 2
    classifier = brittle.Classifier(nn.Linear(4, outputs).eval(), decision=decision, bounds=(0, 1))
    targets = classifier.decision.targets
    with pytest.raises(DataError, match=f"takes 4 numbers a row and .* has {4 + count} columns") as caught:
        brittle.score(classifier, brittle.data.open_points(tmp_path / "table.csv", targets=targets), [Taylor(0.1)])
    assert caught.value.code == "labels"
    assert "--label-column" in str(caught.value)
