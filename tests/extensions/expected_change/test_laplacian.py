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
    """The trace of the Hessian of the probability of a point's `rank`-th class, `[B]`, from the whole Hessian."""
    with torch.no_grad():
        own = net(x).argsort(dim=1, descending=True)[:, rank - 1].tolist()
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        each = [
            torch.autograd.functional.hessian(lambda y, c=c: net(y[None]).softmax(1)[0, c], point, vectorize=True)
            for point, c in zip(x, own, strict=True)
        ]
    return torch.stack([hessian.reshape(x[0].numel(), -1).trace() for hessian in each])  # pyright: ignore[reportAttributeAccessIssue] right when it runs


@piecewise_linear
@pytest.mark.parametrize("method", ["gram", "auto"])
def test_gram_is_exact_where_the_network_is_piecewise_linear(body: Callable[[], list[nn.Module]], method: str) -> None:
    net, x = network(body), points()
    truth = traces(net, x)
    found = estimate(brittle.Classifier(net), x, Laplacian(method))
    assert float((found.value - truth).abs().max()) <= 1e-10
    assert float((found.high - found.low).max()) <= 1e-15
    assert float(truth.abs().max()) > 1e-3
    if method == "auto":
        assert found.detail == ("exact: the network is piecewise linear here",) * len(x)


@smooth
def test_exact_is_exact_where_the_network_is_smooth(body: Callable[[], list[nn.Module]]) -> None:
    net, x = network(body), points()
    truth = traces(net, x)
    found = estimate(brittle.Classifier(net), x, Laplacian("exact"))
    assert float((found.value - truth).abs().max()) <= 1e-8
    first = estimate(brittle.Classifier(net), x, Laplacian("gram")).value
    assert float((first - truth).abs().max()) > 1e-4  # the second term is there to be found
    assert not bool((found.status == int(Status.KINK)).any())


@smooth
def test_probes_hold_the_truth(body: Callable[[], list[nn.Module]]) -> None:
    """At 99% over 200 points 2 misses are expected; more than 12 happen once in 1e7.

    The interval is Student's, which the skew of a quadratic form costs some coverage: 8 points of coverage would show.
    """
    net, x = network(body), points(5).repeat(40, 1, 1, 1)
    truth = traces(net, x[:5]).repeat(40)
    found = estimate(brittle.Classifier(net), x, Laplacian("probes", probes=16))
    missed = (found.low > truth) | (found.high < truth)
    assert int(missed.sum()) <= 12
    gram = estimate(brittle.Classifier(net), x[:5], Laplacian("gram")).value
    assert float((found.high - found.low).mean()) < 40.0 * float((truth[:5] - gram).abs().mean())


@pytest.mark.parametrize("body", [PIECEWISE_LINEAR["relu"], SMOOTH["tanh"]], ids=["relu", "tanh"])
def test_competitors_have_their_own_laplacian_and_all_add_up_to_zero(body: Callable[[], list[nn.Module]]) -> None:
    net, x = network(body), points()
    scores = [Laplacian("exact", rank=rank) for rank in range(1, 5)]
    found = [estimate(brittle.Classifier(net), x, score).value for score in scores]
    for rank, values in enumerate(found, 1):
        assert float((values - traces(net, x, rank)).abs().max()) <= 1e-8
    assert float(torch.stack(found).sum(dim=0).abs().max()) <= 1e-12 < float(found[1].abs().max())
    assert [score.safer for score in scores] == ["higher", "lower", "lower", "lower"]
    for few in (Laplacian("gram", classes=1, rank=3), Laplacian(rank=5)):
        with pytest.raises(ParameterError):
            estimate(brittle.Classifier(net), x, few)


def test_a_competitor_that_is_out_of_reach_has_a_laplacian_of_zero() -> None:
    """Logits that are thousands apart: a probability of 0 that no noise lifts, not NaN."""
    net, x = linear_network(3, 10), inputs(5, (10,), dtype=torch.float64)
    net.weight.data *= 1e5
    for rank in (1, 2, 3):
        assert estimate(brittle.Classifier(net), x, Laplacian(rank=rank)).value.abs().tolist() == [0.0] * 5


def test_two_classes_of_a_linear_network_have_a_closed_form() -> None:
    """`L = p (1 - p) (1 - 2p) ||w_0 - w_1||^2`, right to full relative precision where `p` is near 1, too."""
    net = linear_network(2, 10)
    x = torch.cat((inputs(20, (10,), dtype=torch.float64), 60.0 * inputs(20, (10,), seed=1, dtype=torch.float64)))
    gap = (net.weight[0] - net.weight[1]).detach()
    margin = (net(x)[:, 0] - net(x)[:, 1]).abs().detach()
    p, q = torch.sigmoid(margin), torch.sigmoid(-margin)
    truth = p * q * (q - p) * gap.square().sum()
    found = estimate(brittle.Classifier(net), x, Laplacian())
    assert float(((found.value - truth) / truth).abs().max()) <= 1e-10
    other = estimate(brittle.Classifier(net), x, Laplacian(rank=2))
    assert float(((other.value + truth) / truth).abs().max()) <= 1e-10
    assert float(margin.max()) > 40.0


def test_stretched_inputs_have_a_larger_laplacian() -> None:
    """`p(x / a)` has the Laplacian of `p` at `x / a`, divided by `a^2`."""
    net, x = network(SMOOTH["tanh"]), points()
    one = estimate(brittle.Classifier(net), x, Laplacian("exact")).value
    stretched = brittle.Classifier(net, bounds=(0, 255), std=255.0)
    other = estimate(stretched, 255.0 * x, Laplacian("exact")).value
    assert float((one / 255.0**2 / other - 1.0).abs().max()) <= 1e-8


@pytest.mark.parametrize("rank", [1, 2])
def test_left_out_classes_are_inside_the_interval(rank: int) -> None:
    net, x = network(PIECEWISE_LINEAR["relu"]), points(30)
    whole = estimate(brittle.Classifier(net), x, Laplacian("gram", rank=rank))
    kept = estimate(brittle.Classifier(net), x, Laplacian("gram", classes=2, rank=rank))
    assert set(kept.status.tolist()) == {int(Status.CLASSES_KEPT)}
    inside = (kept.low <= whole.value) & (whole.value <= kept.high)
    # The left-out gradient may be longer than the longest kept one, so this is an estimate, not a bound.
    assert float(inside.double().mean()) >= 0.9


def test_passes_are_each_points_own() -> None:
    """A network that is smooth on one half of the inputs only spends its probes there."""

    class Half(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            flat = x.flatten(1)
            bent = torch.where(flat[:, :1] > 0.5, flat.tanh(), flat)
            return torch.stack((bent.sum(dim=1), torch.zeros(len(x), dtype=x.dtype)), dim=1)

    x = inputs(2, (40,), dtype=torch.float64)
    x[0, 0], x[1, 0] = 0.9, 0.1
    found = brittle.score(brittle.Classifier(Half()), x, [Laplacian()])
    assert found.points["passes"].to_pylist() == [3 + 6 + 34, 3 + 6]


@pytest.mark.parametrize(
    "wrong",
    [{"method": "newton"}, {"probes": 1}, {"method": "probes", "probes": 0}, {"rank": 0}, {"rank": 1.0}],
    ids=lambda wrong: str(wrong),
)
def test_parameters_out_of_range(wrong: dict) -> None:
    with pytest.raises(ParameterError):
        Laplacian(**wrong)
