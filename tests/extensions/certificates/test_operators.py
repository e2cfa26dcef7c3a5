"""Every operator: bounds of affine ones are exact, and no value inside the region leaves the bounds of the others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from helpers.bounded_networks import interval_bounds, logit_bounds, traced
from helpers.problems import inputs
from torch import Tensor, nn
from torch.nn import functional

import brittle
from brittle.extensions.certificates.region import Region
from brittle.model.bounds import NONE

SEEN = torch.eye(6, dtype=torch.bool) | (torch.arange(6) > 3)
WEIGHT = torch.randn(6, 6, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
IMAGES = torch.randn(2, 1, 3, 3, generator=torch.Generator().manual_seed(4), dtype=torch.float64)


class Does(nn.Module):
    """One operator on values `[B, 1, 6, 6]` of both signs."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(2 * x - 1).flatten(1)


def _first_axis_last(x: Tensor) -> Tensor:
    """Rows on another axis for a while, and one tensor with another axis's name."""
    rows = x.flatten(1, 2).transpose(0, 1).reshape(6 * len(x), 6) @ WEIGHT
    return rows.view(6, len(x), 6).transpose(0, 1)


AFFINE: dict[str, Callable[[Tensor], Tensor]] = {
    "slice": lambda x: x[:, :, 1:5:2, -3:],
    "select": lambda x: x[:, 0, 2],
    "index": lambda x: x[:, :, [0, 2, 5, 1]],
    "gather": lambda x: x.gather(2, torch.zeros(1, 1, 2, 6, dtype=torch.long).expand(len(x), -1, -1, -1)),
    "stack": lambda x: torch.stack((x, -x, 0.5 * x), 2),
    "stack a constant": lambda x: torch.stack((x[:, 0], torch.ones(1, 6, 6).double().expand(len(x), -1, -1)), 1),
    "cat": lambda x: torch.cat((x, -x[:, :, :2]), -2),
    "split": lambda x: torch.cat([(number + 1) * part for number, part in enumerate(x.split(4, 2))], 2),
    "unbind": lambda x: sum((number + 1) * part for number, part in enumerate(x.unbind(2))),  # type: ignore[return-value]
    "expand": lambda x: x[:, :, :1].expand(-1, 3, 6, -1),
    "flip, roll": lambda x: x.flip(2) - x.roll(1, 3),
    "where": lambda x: torch.where(SEEN, x, WEIGHT),
    "masked_fill": lambda x: x.masked_fill(SEEN, 0.3),
    "tril": lambda x: x.tril() - 2 * x.triu(1),
    "pad": lambda x: functional.pad(x, (1, 2, 0, 1), value=0.5),
    "pad reflect": lambda x: functional.pad(x, (1, 2, 3, 1), mode="reflect"),
    "pixel_shuffle": lambda x: functional.pixel_unshuffle(x, 2),
    "upsample": lambda x: functional.interpolate(x, scale_factor=2, mode="nearest"),
    "mm": lambda x: x.flatten(1).mm(torch.cat([WEIGHT.flatten()[:, None], torch.ones(36, 1).double()], 1)),
    "matmul right": lambda x: x @ WEIGHT + 0.3,
    "einsum": lambda x: torch.einsum("bcij,jk->bkci", x, WEIGHT),
    "addmm": lambda x: torch.addmm(WEIGHT[1], x[:, 0, 0], WEIGHT, beta=0.5, alpha=-2),
    "add alpha": lambda x: torch.add(x, x.flip(2), alpha=-0.5),
    "rsub": lambda x: torch.rsub(x, 1, alpha=2),
    "neg, div": lambda x: -x / WEIGHT[0],
    "mean, sum": lambda x: x - x.mean(2, keepdim=True) + 0.1 * x.sum((2, 3), keepdim=True),
    "conv": lambda x: functional.conv2d(x, IMAGES, stride=2, padding=2, dilation=2),
    "conv1d": lambda x: functional.conv1d(x[:, 0, :1], IMAGES[:, :, 0]),
    "conv transpose": lambda x: functional.conv_transpose2d(x, IMAGES.transpose(0, 1), stride=2),
    "avg_pool2d": lambda x: functional.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
    "adaptive_avg_pool": lambda x: functional.adaptive_avg_pool2d(x, (4, 1)),
    "batch_norm": lambda x: functional.batch_norm(x[:, 0], WEIGHT[0], WEIGHT[1] ** 2, WEIGHT[2], WEIGHT[3]),
    "rows second": _first_axis_last,
    "to": lambda x: x.float().double().contiguous().clone(),
}


CURVED: dict[str, Callable[[Tensor], Tensor]] = {
    "max_pool2d": lambda x: functional.max_pool2d(x, 3, 2, 1, ceil_mode=True),
    "max_pool2d dilation": lambda x: functional.max_pool2d(x, (2, 3), (1, 2), (1, 0), (3, 2)),
    "max_pool1d": lambda x: functional.max_pool1d(x[:, 0], 3, 2, 1, 2),
    "adaptive_max_pool2d": lambda x: functional.adaptive_max_pool2d(x, (3, 1)),
    "amax": lambda x: x.amax((1, 3)),
    "max": lambda x: x.max(2, keepdim=True).values - x.min(-1, keepdim=True)[0],
    "maximum": lambda x: torch.maximum(x, x.flip(3)),
    "maximum of a constant": lambda x: torch.maximum(x[:, 0], WEIGHT),
    "minimum": lambda x: torch.minimum(x, x.transpose(2, 3)),
    "mul": lambda x: x * x.flip(2),
    "cube": lambda x: x**3,
    "div": lambda x: x / (1 + x.exp()),
    "matmul": lambda x: x @ x.mT,
    "bmm": lambda x: x[:, 0].bmm(x[:, 0].flip(1)),
    "einsum": lambda x: torch.einsum("bcij,bckj->bcik", x, x.flip(2)),
    "softmax": lambda x: (4 * x).softmax(2),
    "softmax of a rising scale": lambda x: (x * torch.logspace(-3, 3, 6, dtype=torch.float64)).softmax(-1),
    "logsumexp": lambda x: x.logsumexp((2, 3)),
    "attention": lambda x: functional.scaled_dot_product_attention(3 * x, x.flip(2), x),
    "attention causal": lambda x: functional.scaled_dot_product_attention(x, x.flip(2), x, is_causal=True),
    "attention mask": lambda x: functional.scaled_dot_product_attention(x, x.flip(2), x, attn_mask=SEEN),
    "attention bias": lambda x: functional.scaled_dot_product_attention(
        x, x, x, attn_mask=WEIGHT.masked_fill(~SEEN, -torch.inf)
    ),
    "layer_norm": lambda x: functional.layer_norm(x, (6,), WEIGHT[0], WEIGHT[1]),
    "group_norm": lambda x: functional.group_norm(x[:, 0], 3, WEIGHT[0], WEIGHT[1]),
    "normalize": lambda x: functional.normalize(x, dim=2),
    "var, std": lambda x: x.var(2) + (x.std(3, correction=0)),
    "prelu": lambda x: functional.prelu(x, WEIGHT[0, :1]),
    "relu in place": lambda x: functional.relu_(x + 0.1) - 0.2,
    "rows second": lambda x: _first_axis_last(x).transpose(0, 1).tanh().softmax(0).transpose(0, 1),
    "cosine_similarity": lambda x: functional.cosine_similarity(x, x.flip(2) + 0.1, dim=3),
}


def region(radius: float) -> Region:
    points = inputs(2, seed=5).double()
    return Region.around(points, torch.tensor([radius, 2 * radius], dtype=torch.float64), "linf", NONE)


@pytest.mark.every_other
@pytest.mark.parametrize("name", AFFINE)
def test_affine_operators_lose_nothing(name: str) -> None:
    """The bounds are those of the Jacobian of the module itself, row by row: `f(x) -+ r ||J||_1`."""
    model, ball = Does(AFFINE[name]), region(0.3)
    network = traced(brittle.Classifier(model), ball.points)
    bounds = logit_bounds(network, ball)
    for row, (point, radius) in enumerate(zip(ball.points, ball.radii, strict=True)):
        jacobian = torch.autograd.functional.jacobian(model, point[None])[0].flatten(1)
        value, reach = model(point[None])[0], radius * jacobian.abs().sum(1)
        torch.testing.assert_close(bounds.lower[row], value - reach, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(bounds.upper[row], value + reach, rtol=1e-6, atol=1e-6)


@pytest.mark.every_other
@pytest.mark.parametrize("name", CURVED)
def test_no_value_leaves_the_bounds(name: str) -> None:
    """Random inputs, corners, and steps along the gradient of each value; without a radius the value itself."""
    model = Does(CURVED[name]).double()
    network = traced(brittle.Classifier(model), region(0.0).points)
    for radius in (0.0, 0.02, 0.4):
        ball = region(radius)
        bounds = logit_bounds(network, ball)
        boxes = interval_bounds(network, ball.box.map(lambda end, ball=ball: end + ball.points))
        values = around(model, ball)
        torch.testing.assert_close(network(ball.points), values[0], rtol=1e-6, atol=1e-6)
        for value in values:
            for ends in (bounds, boxes):
                assert ((value >= ends.lower - 1e-9) | ends.lower.isnan()).all()
                assert ((value <= ends.upper + 1e-9) | ends.upper.isnan()).all()
        if radius == 0:
            torch.testing.assert_close(bounds.lower, values[0], rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(bounds.upper, values[0], rtol=1e-5, atol=1e-5)
        if radius <= 0.02:
            assert not bounds.lower.isnan().any()
            assert not bounds.upper.isnan().any()


def around(model: nn.Module, ball: Region) -> list[Tensor]:
    """Return the model's values at the points and at others in the ball."""
    generator, reach = torch.Generator().manual_seed(1), ball.radii.view(-1, 1, 1, 1)
    values = [model(ball.points)]
    for _ in range(20):
        directions = torch.rand(ball.points.shape, generator=generator, dtype=torch.float64)
        steps = 2 * directions - 1, (directions - 0.5).sign()
        values += [model(ball.points + reach * step) for step in steps]
    start = ball.points.clone().requires_grad_(True)
    logits = model(start)
    for number in range(0, logits.shape[1], 9):
        gradient = torch.autograd.grad(logits[:, number].sum(), start, retain_graph=True)[0].sign()
        values += [model(ball.points + reach * sign * gradient) for sign in (-1, 1)]
    return [value.detach() for value in values]
