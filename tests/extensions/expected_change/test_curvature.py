"""Second derivatives: kinks and ties differ from smooth points, and networks without them are named."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from helpers.curved import PIECEWISE_LINEAR, SHAPE, network, points, smooth
from helpers.laws import estimate
from helpers.problems import inputs
from torch import Tensor, nn

import brittle
from brittle.errors import ModelError
from brittle.estimate import Status
from brittle.scores import Laplacian


def bowl(at: float, top: float = 1.0) -> Callable[[Tensor], Tensor]:
    """Return a network of two classes whose margins have a gradient of 0 at one point."""

    def network(x: Tensor) -> Tensor:
        square = (x - at).square().flatten(1).sum(dim=1)
        return torch.stack((top - square, square), dim=1)

    return network


def test_smooth_at_a_stationary_point_has_a_laplacian() -> None:
    """The gradient of every margin is 0 there, the second derivatives are not."""
    x = torch.full((2, 3), 0.5, dtype=torch.float64)
    laplacian = estimate(brittle.Classifier(bowl(0.5)), x, Laplacian())
    p = torch.sigmoid(torch.tensor(1.0, dtype=torch.float64))
    assert torch.allclose(laplacian.value, (p * (1 - p) * -12.0).expand(2))
    assert set(laplacian.status.tolist()) == {int(Status.OK)}
    gram = estimate(brittle.Classifier(bowl(0.5)), x, Laplacian("gram"))
    assert set(gram.status.tolist()) == {int(Status.ZERO_GRADIENT)}


def test_ties_in_max_pooling_are_kinks() -> None:
    """A constant background ties every window of a max-pooling over it; a generic point ties no window."""
    net = network(PIECEWISE_LINEAR["max pooling"])
    x = torch.cat((torch.full((1, *SHAPE), 0.25, dtype=torch.float64), points(5)))
    laplacian = estimate(brittle.Classifier(net), x, Laplacian())
    assert laplacian.status.tolist() == [int(Status.KINK)] + [int(Status.OK)] * 5
    assert bool(laplacian.value.isfinite().all())


@smooth
def test_smooth_networks_have_no_kinks_in_single_precision(body: Callable[[], list[nn.Module]]) -> None:
    net, x = network(body).float(), points(40).float()
    assert int(Status.KINK) not in estimate(brittle.Classifier(net), x, Laplacian(probes=2)).status.tolist()


def test_a_network_without_second_derivatives_is_refused() -> None:
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, *grad_outputs: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
            return grad_outputs[0] * ctx.saved_tensors[0].cos()

    class Net(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return Once.apply(x)

    with pytest.raises(ModelError, match="no second derivatives"):
        estimate(brittle.Classifier(Net()), inputs(2, (3,)), Laplacian())
    assert bool(estimate(brittle.Classifier(Net()), inputs(2, (3,)), Laplacian("gram")).value.isfinite().all())


@pytest.mark.parametrize("size", [2, 200])
def test_a_ridge_is_not_flat(size: int) -> None:
    """Its Hessian has rank one, and random signs that differ in two coordinates give 0."""

    def ridge(x: Tensor) -> Tensor:
        logit = 3.0 * (x.flatten(1)[:, 0] + x.flatten(1)[:, 1]).square()
        return torch.stack((logit, torch.zeros_like(logit)), dim=1)

    laplacian = estimate(brittle.Classifier(ridge), inputs(200, (size,), dtype=torch.float64), Laplacian())
    assert not any(detail is not None and "piecewise linear" in detail for detail in laplacian.detail or ())


@pytest.mark.parametrize("at", [0.1, 0.7])
def test_a_stationary_point_of_a_smooth_network_is_no_kink(at: float) -> None:
    x = torch.full((2, 12), at)
    assert int(Status.KINK) not in estimate(brittle.Classifier(bowl(at)), x, Laplacian()).status.tolist()


def test_a_tie_at_a_stationary_point_stays_a_tie() -> None:
    laplacian = estimate(brittle.Classifier(bowl(0.5, 0.0)), torch.full((1, 3), 0.5, dtype=torch.float64), Laplacian())
    assert laplacian.status.tolist() == [int(Status.TIE)]
