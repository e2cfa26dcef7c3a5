"""The graph of a network: a layer that cannot be bounded is named."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from helpers.bounded_networks import Residual, certified, lively
from helpers.problems import inputs
from torch import Tensor, nn

import brittle
from brittle.extensions.certificates.proof import ACCURACY


def test_a_module_and_its_exported_program_agree() -> None:
    model, points = lively(Residual(), 0), inputs(2)
    dynamic = ({0: torch.export.Dim("batch")},)
    program = torch.export.export(model, (points,), dynamic_shapes=dynamic).module()
    radius = certified(brittle.Classifier(model), points[:1]).radius
    # The program may round its scores otherwise; see `test_a_point_does_not_depend_on_its_batch`.
    torch.testing.assert_close(certified(brittle.Classifier(program), points[:1]).radius, radius, rtol=ACCURACY, atol=0)


class Mixing(nn.Module):
    """Rows that depend on each other."""

    def forward(self, x: Tensor) -> Tensor:
        x = x.flatten(1)
        return x - x.mean(0, keepdim=True)


class Does(nn.Module):
    """One operator between two linear layers."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.first, self.last, self.function = nn.Linear(36, 36), nn.Linear(36, 4), function

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.function(self.first(x.flatten(1))))


@pytest.mark.every_other
@pytest.mark.parametrize(
    ("model", "words"),
    [
        (nn.Sequential(nn.Flatten(), nn.Linear(36, 8), nn.Hardshrink(), nn.Linear(8, 4)), "hardshrink"),
        (nn.Sequential(nn.AdaptiveMaxPool2d(4), nn.Flatten(), nn.Linear(16, 4)), "adaptive_max_pool2d"),
        (Does(torch.round), "round"),
        (Does(lambda x: x.int().float()), "to int32"),
        (Does(lambda x: x.masked_fill(torch.eye(1, 36).bool(), -torch.inf).softmax(1)), "infinite"),
        (Does(lambda x: torch.where(x > 0, x, -x)), "gt"),
        (Mixing(), "reproduce"),
        (lambda x: x.flatten(1), "Module"),
    ],
)
def test_a_layer_that_cannot_be_bounded_is_named(model: nn.Module, words: str) -> None:
    certificate = certified(brittle.Classifier(model), inputs(3))
    assert certificate.unsupported is not None
    assert words in certificate.unsupported
    assert certificate.radius.tolist() == [0.0] * 3


def cancelling(bias: float, lead: float) -> nn.Sequential:
    """`z_0 - z_1 = lead - ((x + bias) - bias)`: exact at 0, and flipped by rounding elsewhere."""
    network = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 2))
    with torch.no_grad():
        for layer, weight, biases in zip(network, ([[1.0]], [[0.0], [1.0]]), ([bias], [lead, -bias]), strict=True):
            layer.weight.copy_(torch.tensor(weight))  # type: ignore[union-attr, operator]
            layer.bias.copy_(torch.tensor(biases))  # type: ignore[union-attr, operator]
    return network


def test_half_precision_has_no_certificate() -> None:
    certificate = certified(brittle.Classifier(cancelling(1000.0, 0.3).half()), torch.zeros(1, 1))
    assert certificate.unsupported is not None
    assert "half precision" in certificate.unsupported
    assert certificate.radius.tolist() == [0.0]


def test_rounding_away_from_the_point_is_allowed_for() -> None:
    """Every input of a fine grid alone through the network, as single precision rounds it."""
    lead = 0.8
    network, points = cancelling(1e7, lead), torch.zeros(1, 1)
    flips = [x for x in torch.linspace(0, 1, 2001).tolist() if int(network(torch.tensor([[x]])).argmax()) == 1]
    assert certified(brittle.Classifier(network), points).radius.item() < min(flips) < lead


class ChangesInPlace(nn.Module):
    """`z_0 - z_1 = 0.6 + 2 (h_0 - h_1)` of two copies of the input, after a function that changes them in place."""

    def __init__(self, function: Callable[[Tensor], Tensor | None]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        h = torch.cat((x, x), dim=1)
        returned = self.function(h)
        h = h if returned is None else returned
        lead = 0.3 + h[:, :1] - h[:, 1:]
        return torch.cat((lead, -lead), dim=1)


def masked(h: Tensor) -> Tensor:
    mask = torch.zeros(1, 2)
    mask[0, 1] = 1.3
    return h * mask


def column(h: Tensor) -> None:
    h[:, 1] = h[:, 1].clamp(min=0.5)


def listed(h: Tensor) -> None:
    torch.ops.aten._foreach_clamp_min_.Scalar([h.unbind(1)[1]], 0.5)


def scaled(h: Tensor) -> None:
    h.mul_(torch.tensor([0.5, 1.0])).clamp_(max=0.9)


def read_before(h: Tensor) -> Tensor:
    before = 0.2 * h
    h.mul_(torch.tensor([0.5, 1.0]))
    return h + before


@pytest.mark.every_other
@pytest.mark.parametrize(
    ("change", "refused"),
    [(column, True), (listed, True), (scaled, False), (read_before, False), (masked, False)],
)  # fmt: skip
def test_changes_in_place_are_bounded_as_they_run_or_named(
    change: Callable[[Tensor], Tensor | None], refused: bool
) -> None:
    """Every input of a fine grid alone through the network; at the point itself most changes change nothing."""
    network, point = ChangesInPlace(change).eval(), torch.tensor([[0.52]])
    grid = torch.linspace(0, 1, 2001)
    decided = torch.tensor([int(network(x.view(1, 1)).argmax()) for x in grid])
    nearest = (grid[decided != int(network(point).argmax())] - point.item()).abs().min().item()
    certificate = certified(brittle.Classifier(network, bounds=(0, 1)), point)
    assert certificate.radius.item() <= nearest
    assert ("in place on a tensor that is used elsewhere" in str(certificate.unsupported)) == refused
    assert (certificate.radius.item() > 0.9 * nearest) == (not refused)
