"""The Laplacian of the predicted probability against known answers and against the whole Hessian."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from helpers.curved import PIECEWISE_LINEAR, SMOOTH, network, points, smooth
from helpers.laws import estimate
from helpers.problems import inputs, linear_network
from torch import Tensor, nn

import brittle
from brittle.errors import ParameterError
from brittle.estimate import Status
from brittle.scores import Laplacian

piecewise_linear = pytest.mark.parametrize("body", PIECEWISE_LINEAR.values(), ids=PIECEWISE_LINEAR.keys())


def traces(net: nn.Module, x: Tensor, rank: int = 1) -> Tensor:
    """Return the trace of the Hessian of the probability of the `rank`-th class, `[B]`, from the whole Hessian."""
    with torch.no_grad():
        classes = net(x).argsort(dim=1, descending=True)[:, rank - 1].tolist()
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        hessians = [
            torch.autograd.functional.hessian(lambda y, c=c: net(y[None]).softmax(1)[0, c], point, vectorize=True)
            for point, c in zip(x, classes, strict=True)
        ]
    return torch.stack([hessian.reshape(x[0].numel(), -1).trace() for hessian in hessians])  # pyright: ignore[reportAttributeAccessIssue] right when it runs


@piecewise_linear
@pytest.mark.parametrize("method", ["gram", "auto"])
def test_gram_is_exact_where_the_network_is_piecewise_linear(body: Callable[[], list[nn.Module]], method: str) -> None:
    net, x = network(body), points()
    truth = traces(net, x)
    laplacian = estimate(brittle.Classifier(net), x, Laplacian(method))
    assert float((laplacian.value - truth).abs().max()) <= 1e-10
    assert float((laplacian.high - laplacian.low).max()) <= 1e-15
    assert float(truth.abs().max()) > 1e-3
    if method == "auto":
        assert laplacian.detail == ("exact: the network is piecewise linear here",) * len(x)


@smooth
def test_exact_is_exact_where_the_network_is_smooth(body: Callable[[], list[nn.Module]]) -> None:
    net, x = network(body), points()
    truth = traces(net, x)
    laplacian = estimate(brittle.Classifier(net), x, Laplacian("exact"))
    assert float((laplacian.value - truth).abs().max()) <= 1e-8
    gram = estimate(brittle.Classifier(net), x, Laplacian("gram")).value
    assert float((gram - truth).abs().max()) > 1e-4  # the second term matters
    assert not bool((laplacian.status == int(Status.KINK)).any())


@smooth
def test_probes_hold_the_truth(body: Callable[[], list[nn.Module]]) -> None:
    """At 99% over 200 points 2 misses are expected; more than 12 happen once in 1e7.

    The interval is Student's, and the skew of a quadratic form lowers its coverage: a loss of 8 points would show.
    """
    net, x = network(body), points(5).repeat(40, 1, 1, 1)
    truth = traces(net, x[:5]).repeat(40)
    laplacian = estimate(brittle.Classifier(net), x, Laplacian("probes", probes=16))
    missed = (laplacian.low > truth) | (laplacian.high < truth)
    assert int(missed.sum()) <= 12
    gram = estimate(brittle.Classifier(net), x[:5], Laplacian("gram")).value
    assert float((laplacian.high - laplacian.low).mean()) < 40.0 * float((truth[:5] - gram).abs().mean())


@pytest.mark.parametrize("body", [PIECEWISE_LINEAR["relu"], SMOOTH["tanh"]], ids=["relu", "tanh"])
def test_the_laplacians_of_all_ranks_add_up_to_zero(body: Callable[[], list[nn.Module]]) -> None:
    net, x = network(body), points()
    scores = [Laplacian("exact", rank=rank) for rank in range(1, 5)]
    laplacians = [estimate(brittle.Classifier(net), x, score).value for score in scores]
    for rank, values in enumerate(laplacians, 1):
        assert float((values - traces(net, x, rank)).abs().max()) <= 1e-8
    assert float(torch.stack(laplacians).sum(dim=0).abs().max()) <= 1e-12 < float(laplacians[1].abs().max())
    assert [score.safer for score in scores] == ["higher", "lower", "lower", "lower"]
    for score in (Laplacian("gram", classes=1, rank=3), Laplacian(rank=5)):
        with pytest.raises(ParameterError):
            estimate(brittle.Classifier(net), x, score)


def test_a_competitor_out_of_reach_has_a_laplacian_of_zero() -> None:
    """With logits thousands apart the probability is 0, and no noise lifts it; it is not NaN."""
    net, x = linear_network(3, 10), inputs(5, (10,), dtype=torch.float64)
    net.weight.data *= 1e5
    for rank in (1, 2, 3):
        assert estimate(brittle.Classifier(net), x, Laplacian(rank=rank)).value.abs().tolist() == [0.0] * 5


def test_two_classes_of_a_linear_network_have_a_closed_form() -> None:
    """`L = p (1 - p) (1 - 2p) ||w_0 - w_1||^2`, to full relative precision even where `p` is near 1."""
    net = linear_network(2, 10)
    x = torch.cat((inputs(20, (10,), dtype=torch.float64), 60.0 * inputs(20, (10,), seed=1, dtype=torch.float64)))
    gap = (net.weight[0] - net.weight[1]).detach()
    margin = (net(x)[:, 0] - net(x)[:, 1]).abs().detach()
    p, q = torch.sigmoid(margin), torch.sigmoid(-margin)
    truth = p * q * (q - p) * gap.square().sum()
    laplacian = estimate(brittle.Classifier(net), x, Laplacian())
    assert float(((laplacian.value - truth) / truth).abs().max()) <= 1e-10
    competitor = estimate(brittle.Classifier(net), x, Laplacian(rank=2))
    assert float(((competitor.value + truth) / truth).abs().max()) <= 1e-10
    assert float(margin.max()) > 40.0


def test_stretched_inputs_have_a_larger_laplacian() -> None:
    """`p(x / a)` has the Laplacian of `p` at `x / a`, divided by `a^2`."""
    net, x = network(SMOOTH["tanh"]), points()
    unit = estimate(brittle.Classifier(net), x, Laplacian("exact")).value
    stretched = brittle.Classifier(net, bounds=(0, 255), std=255.0)
    stretched_laplacian = estimate(stretched, 255.0 * x, Laplacian("exact")).value
    assert float((unit / 255.0**2 / stretched_laplacian - 1.0).abs().max()) <= 1e-8


@pytest.mark.parametrize("rank", [1, 2])
def test_left_out_classes_are_inside_the_interval(rank: int) -> None:
    net, x = network(PIECEWISE_LINEAR["relu"]), points(30)
    complete = estimate(brittle.Classifier(net), x, Laplacian("gram", rank=rank))
    partial = estimate(brittle.Classifier(net), x, Laplacian("gram", classes=2, rank=rank))
    assert set(partial.status.tolist()) == {int(Status.CLASSES_KEPT)}
    inside = (partial.low <= complete.value) & (complete.value <= partial.high)
    # The left-out gradient may be longer than the longest kept one, so this is an estimate, not a bound.
    assert float(inside.double().mean()) >= 0.9


def test_passes_are_counted_per_point() -> None:
    """A network that bends on one half of the inputs only spends its probes there."""

    class Half(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            flat = x.flatten(1)
            bent = torch.where(flat[:, :1] > 0.5, flat.tanh(), flat)
            return torch.stack((bent.sum(dim=1), torch.zeros(len(x), dtype=x.dtype)), dim=1)

    x = inputs(2, (40,), dtype=torch.float64)
    x[0, 0], x[1, 0] = 0.9, 0.1
    table = brittle.score(brittle.Classifier(Half()), x, [Laplacian()])
    assert table.points["passes"].to_pylist() == [3 + 6 + 34, 3 + 6]


@pytest.mark.parametrize(
    "wrong",
    [{"method": "newton"}, {"probes": 1}, {"method": "probes", "probes": 0}, {"rank": 0}, {"rank": 1.0}],
    ids=lambda wrong: str(wrong),
)
def test_parameters_out_of_range_are_refused(wrong: dict) -> None:
    with pytest.raises(ParameterError):
        Laplacian(**wrong)
