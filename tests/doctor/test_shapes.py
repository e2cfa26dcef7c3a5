"""The shape that a model takes is found, where it does not take that of the data."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import brittle
from brittle.errors import ModelError
from brittle.scores import Softmax

CONV = nn.Sequential(nn.Conv2d(3, 2, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
GREY = nn.Sequential(nn.Conv2d(1, 2, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
ROWS = nn.Linear(48, 2)


class Last(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return CONV(x.permute(0, 3, 1, 2))


CASES = {
    "channels last": (CONV, (4, 5, 6, 3), "nchw", "--layout nhwc (layout='nhwc')"),
    "a model of channels last": (Last(), (4, 3, 5, 6), None, "x = x.permute(0, 2, 3, 1)"),
    "grey for colours": (CONV, (4, 1, 5, 6), None, "x.repeat(1, 3, 1, 1)"),
    "colours for grey": (GREY, (4, 3, 5, 6), None, "x.mean(1, keepdim=True)"),
    "no axis of channels": (GREY, (9, 5, 6), None, "x[:, None]"),
    "no axis of points": (CONV, (3, 5, 6), None, "x[None]"),
    "rows for images": (CONV, (4, 48), None, "x.reshape(-1, 3, 4, 4)"),
    "images for rows": (ROWS, (4, 3, 4, 4), None, "x.reshape(len(x), -1)"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_shape_is_named(name: str) -> None:
    model, shape, layout, advice = CASES[name]
    points = brittle.data.array_points(torch.rand(shape), layout=layout)
    with pytest.raises(ModelError) as caught:
        brittle.score(brittle.Classifier(model.eval()), points, [Softmax()])
    assert caught.value.code == ("output_shape" if name == "no axis of points" else "model_failed")
    assert str(list(shape)) in str(caught.value) or caught.value.code == "output_shape"
    assert advice in str(caught.value)
    assert "give inputs of the shape that it takes" not in str(caught.value)


def test_nothing_is_invented_where_no_shape_fits() -> None:
    with pytest.raises(ModelError, match="give inputs of the shape that it takes"):
        brittle.score(brittle.Classifier(nn.Linear(7, 2).eval()), torch.rand(4, 5), [Softmax()])
