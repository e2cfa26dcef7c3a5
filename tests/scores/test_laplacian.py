"""The Laplacian of the predicted probability against known answers and against the whole Hessian."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from helpers.laws import estimate
from helpers.problems import inputs, linear_network
from torch import Tensor, nn

import brittle
from brittle.errors import ModelError, ParameterError
from brittle.estimate import Status
from brittle.measure import Curvature
from brittle.measure.forward import look
from brittle.scores import FirstOrderMargin, Laplacian, SmoothedLaplacian, Taylor

SHAPE, CLASSES = (2, 6, 6), 4


class Residual(nn.Module):
    """`x + f(x)`."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


class Attention(nn.Module):
    """Self-attention over the rows of an image, by the fused kernel where nobody asks otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.MultiheadAttention(12, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.movedim(1, 2).flatten(2)
        return self.heads(tokens, tokens, tokens, need_weights=False)[0]


def network(body: Callable[[], list[nn.Module]]) -> nn.Module:
    """A classifier of inputs of `SHAPE` in double precision, with random weights of a lively scale."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = nn.Sequential(*body(), nn.Flatten(), nn.LazyLinear(CLASSES)).double()
        layers(torch.zeros(2, *SHAPE, dtype=torch.float64))
        for parameter in layers.parameters():
            nn.init.normal_(parameter, std=0.35)
        for module in layers.modules():
            for name, buffer in module.named_buffers(recurse=False):
                if name.startswith("running"):
                    buffer.uniform_(0.5, 2.0)
    return layers.eval()


PIECEWISE_LINEAR: dict[str, Callable[[], list[nn.Module]]] = {
    "relu": lambda: [nn.Conv2d(2, 4, 3), nn.ReLU()],
    "leaky relu": lambda: [nn.Conv2d(2, 4, 3), nn.LeakyReLU(0.1)],
    "prelu": lambda: [nn.Conv2d(2, 4, 3), nn.PReLU()],
    "max pooling": lambda: [nn.Conv2d(2, 4, 3), nn.MaxPool2d(2)],
    "average pooling": lambda: [nn.Conv2d(2, 4, 3), nn.ReLU(), nn.AvgPool2d(2)],
    "batch norm": lambda: [nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU()],
    "residual": lambda: [Residual(nn.Sequential(nn.Conv2d(2, 2, 3, padding=1), nn.ReLU()))],
    "linear": lambda: [],
}
SMOOTH: dict[str, Callable[[], list[nn.Module]]] = {
    "sigmoid": lambda: [nn.Conv2d(2, 4, 3), nn.Sigmoid()],
    "tanh": lambda: [nn.Conv2d(2, 4, 3), nn.Tanh()],
    "gelu": lambda: [nn.Conv2d(2, 4, 3), nn.GELU()],
    "silu": lambda: [nn.Conv2d(2, 4, 3), nn.SiLU()],
    "softplus": lambda: [nn.Conv2d(2, 4, 3), nn.Softplus()],
    "attention": lambda: [Attention()],
    "layer norm": lambda: [nn.LayerNorm([6, 6])],
}
piecewise_linear = pytest.mark.parametrize("body", PIECEWISE_LINEAR.values(), ids=PIECEWISE_LINEAR.keys())
smooth = pytest.mark.parametrize("body", SMOOTH.values(), ids=SMOOTH.keys())
any_network = pytest.mark.parametrize(
    "body", [*PIECEWISE_LINEAR.values(), *SMOOTH.values()], ids=[*PIECEWISE_LINEAR, *SMOOTH]
)


def points(count: int = 6) -> Tensor:
    return inputs(count, SHAPE, seed=1, dtype=torch.float64)


def traces(net: nn.Module, x: Tensor) -> Tensor:
    """The trace of the Hessian of every class's probability, `[B, C]`, from the whole Hessian."""
    rows = []
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        for point in x:
            each = [
                torch.autograd.functional.hessian(lambda y, c=c: net(y[None]).softmax(1)[0, c], point)
                for c in range(CLASSES)
            ]
            rows.append(torch.stack([h.reshape(point.numel(), -1).trace() for h in each]))
    return torch.stack(rows)


def predicted(net: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad():
        return net(x).argmax(dim=1)


@piecewise_linear
@pytest.mark.parametrize("method", ["gram", "auto"])
def test_gram_is_exact_where_the_network_is_piecewise_linear(body: Callable[[], list[nn.Module]], method: str) -> None:
    net, x = network(body), points()
    truth = traces(net, x).gather(1, predicted(net, x)[:, None])[:, 0]
    found = estimate(brittle.Classifier(net), x, Laplacian(method))
    assert float((found.value - truth).abs().max()) <= 1e-10
    assert float((found.high - found.low).max()) <= 1e-15
    assert float(truth.abs().max()) > 1e-3
    if method == "auto":
        assert found.detail == ("exact: the network is piecewise linear here",) * len(x)


@smooth
def test_exact_is_exact_where_the_network_is_smooth(body: Callable[[], list[nn.Module]]) -> None:
    net, x = network(body), points()
    truth = traces(net, x).gather(1, predicted(net, x)[:, None])[:, 0]
    found = estimate(brittle.Classifier(net), x, Laplacian("exact"))
    assert float((found.value - truth).abs().max()) <= 1e-8
    first = estimate(brittle.Classifier(net), x, Laplacian("gram")).value
    assert float((first - truth).abs().max()) > 1e-4  # the second term is there to be found
    assert not bool((found.status == int(Status.KINK)).any())


@smooth
def test_probes_hold_the_truth(body: Callable[[], list[nn.Module]]) -> None:
    """At 99% over 400 points 4 misses are expected; more than 20 happen once in 1e8.

    The interval is Student's, which the skew of a quadratic form costs some coverage: 8 points of coverage would show.
    """
    net, x = network(body), points(5).repeat(80, 1, 1, 1)
    truth = traces(net, x[:5]).gather(1, predicted(net, x[:5])[:, None])[:, 0].repeat(80)
    found = estimate(brittle.Classifier(net), x, Laplacian("probes", probes=16))
    missed = (found.low > truth) | (found.high < truth)
    assert int(missed.sum()) <= 20
    gram = estimate(brittle.Classifier(net), x[:5], Laplacian("gram")).value
    assert float((found.high - found.low).mean()) < 40.0 * float((truth[:5] - gram).abs().mean())


@any_network
@pytest.mark.parametrize("method", ["gram", "exact", "probes", "auto"])
def test_all_classes_sum_to_zero(body: Callable[[], list[nn.Module]], method: str) -> None:
    net, x = network(body), points(3)
    found = brittle.laplacian(brittle.Classifier(net), x, classes="all", method=method, probes=4)
    assert found.value.shape == (3, CLASSES)
    assert float(found.value.sum(dim=1).abs().max()) <= 1e-10
    own = brittle.laplacian(brittle.Classifier(net), x, method=method, probes=4)
    assert own.value.shape == own.deviation.shape == (3,)
    at = predicted(net, x)[:, None]
    assert float((found.value.gather(1, at)[:, 0] - own.value).abs().max()) <= 1e-10
    assert float((found.deviation.gather(1, at)[:, 0] - own.deviation).abs().max()) <= 1e-10


@any_network
def test_every_class_is_right(body: Callable[[], list[nn.Module]]) -> None:
    net, x = network(body), points(3)
    found = brittle.laplacian(brittle.Classifier(net), x, classes="all", method="exact")
    assert float((found.value - traces(net, x)).abs().max()) <= 1e-8


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
    assert float(margin.max()) > 40.0


def test_stretched_inputs_have_a_larger_laplacian() -> None:
    """`p(x / a)` has the Laplacian of `p` at `x / a`, divided by `a^2`."""
    net, x = network(SMOOTH["tanh"]), points()
    one = estimate(brittle.Classifier(net), x, Laplacian("exact")).value
    stretched = brittle.Classifier(net, bounds=(0, 255), std=255.0)
    other = estimate(stretched, 255.0 * x, Laplacian("exact")).value
    assert float((one / 255.0**2 / other - 1.0).abs().max()) <= 1e-8


@piecewise_linear
def test_left_out_classes_are_inside_the_interval(body: Callable[[], list[nn.Module]]) -> None:
    net, x = network(body), points(30)
    whole = estimate(brittle.Classifier(net), x, Laplacian("gram"))
    kept = estimate(brittle.Classifier(net), x, Laplacian("gram", classes=2))
    assert set(kept.status.tolist()) == {int(Status.CLASSES_KEPT)}
    inside = (kept.low <= whole.value) & (whole.value <= kept.high)
    # The left-out gradient may be longer than the longest kept one, so this is an estimate, not a bound.
    assert float(inside.double().mean()) >= 0.9


def test_smooth_at_a_stationary_point_has_a_laplacian() -> None:
    """Where every margin's gradient is 0 the second derivatives still are not."""

    class Bowl(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            square = (x - 0.5).square().flatten(1).sum(dim=1)
            return torch.stack((1.0 - square, square), dim=1)

    x = torch.full((2, 3), 0.5, dtype=torch.float64)
    found = estimate(brittle.Classifier(Bowl()), x, Laplacian())
    p = torch.sigmoid(torch.tensor(1.0, dtype=torch.float64))
    assert torch.allclose(found.value, (p * (1 - p) * -12.0).expand(2))
    assert set(found.status.tolist()) == {int(Status.OK)}
    alone = estimate(brittle.Classifier(Bowl()), x, Laplacian("gram"))
    assert set(alone.status.tolist()) == {int(Status.ZERO_GRADIENT)}


def test_ties_in_max_pooling_are_kinks() -> None:
    """A constant background ties every window of a max-pooling over it; a generic point ties none."""
    net = network(PIECEWISE_LINEAR["max pooling"])
    x = torch.cat((torch.full((1, *SHAPE), 0.25, dtype=torch.float64), points(5)))
    found = estimate(brittle.Classifier(net), x, Laplacian())
    assert found.status.tolist() == [int(Status.KINK)] + [int(Status.OK)] * 5
    assert bool(found.value.isfinite().all())
    assert brittle.laplacian(brittle.Classifier(net), x).kink.tolist() == [True] + [False] * 5


@smooth
def test_smooth_networks_have_no_kinks_in_single_precision(body: Callable[[], list[nn.Module]]) -> None:
    net, x = network(body).float(), points(40).float()
    assert not bool(brittle.laplacian(brittle.Classifier(net), x, probes=2).kink.any())


def test_the_gram_is_shared() -> None:
    """Taylor at two sigmas, the first-order margin and the Laplacian cost one Jacobian."""
    classifier = brittle.Classifier(network(PIECEWISE_LINEAR["relu"]))
    scores = [Taylor(0.1), Taylor(0.2), FirstOrderMargin(), Laplacian("gram")]
    found = brittle.score(classifier, points(), scores)
    assert set(found.points["passes"].to_pylist()) == {1 + CLASSES}


@pytest.mark.parametrize("form", ["change", "gradient"])
@smooth
def test_smoothed_tends_to_the_laplacian(body: Callable[[], list[nn.Module]], form: str) -> None:
    """At a small sigma both forms hold the Laplacian: of 6 points at 1 - 1e-6 a miss happens once in 1e5."""
    net, x = network(body), points()
    truth = estimate(brittle.Classifier(net), x, Laplacian("exact")).value
    score = SmoothedLaplacian(0.003, draws=4000, form=form)
    clean = look(brittle.Classifier(net), x, [str(n) for n in range(len(x))], 0)
    found = score.estimate({score.needs[0]: score.needs[0](brittle.Classifier(net), clean)}, 1 - 1e-6)
    assert bool(((found.low <= truth) & (truth <= found.high)).all())
    assert float((found.high - found.low).mean()) < 20.0 * float(truth.abs().mean())


def test_a_kink_counts_in_the_smoothed_laplacian() -> None:
    """A two-class network with the margin `|x_0 - 1/2|` is flat at both sides of its kink and bends at it.

    Near it `E[dp]` is `p(1-p) E|e_0| = p(1-p) s sqrt(2/pi)` to first order, which no derivative on a side knows.
    """

    class Fold(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            margin = 1.0 + (x[:, 0] - 0.5).abs()
            return torch.stack((margin, torch.zeros_like(margin)), dim=1)

    sigma, x = 1e-3, torch.tensor([[0.5 + 1e-9, 0.3]], dtype=torch.float64)
    classifier = brittle.Classifier(Fold())
    p = 1.0 / (1.0 + math.exp(-1.0))
    expected = 2.0 / sigma**2 * p * (1.0 - p) * sigma * math.sqrt(2.0 / math.pi)
    smoothed = estimate(classifier, x, SmoothedLaplacian(sigma, draws=20000))
    assert abs(float(smoothed.value[0]) / expected - 1.0) < 0.05  # 12 standard errors: never in practice
    assert abs(float(estimate(classifier, x, Laplacian()).value[0])) < expected / 1000.0
    assert estimate(classifier, x, Laplacian()).status.tolist() == [int(Status.KINK)]


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
    "wrong", [{"method": "newton"}, {"probes": 1}, {"method": "probes", "probes": 0}], ids=lambda wrong: str(wrong)
)
def test_parameters_out_of_range(wrong: dict) -> None:
    with pytest.raises(ParameterError):
        Laplacian(**wrong)


def test_unknown_measurement_and_choice_of_classes() -> None:
    with pytest.raises(ParameterError, match="newton"):
        Curvature("newton")
    with pytest.raises(ParameterError, match="'some'"):
        brittle.laplacian(brittle.Classifier(linear_network(2, 3)), torch.zeros(1, 3).double(), classes="some")  # type: ignore[arg-type]


def test_no_second_derivative_is_one_sentence() -> None:
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


class Ridge(nn.Module):
    """A logit `a (x_0 + x_1)^2`: its Hessian has rank one, and signs that differ see nothing of it."""

    def forward(self, x: Tensor) -> Tensor:
        ridge = 3.0 * (x.flatten(1)[:, 0] + x.flatten(1)[:, 1]).square()
        return torch.stack((ridge, torch.zeros_like(ridge)), dim=1)


@pytest.mark.parametrize("size", [2, 200])
def test_a_ridge_is_not_flat(size: int) -> None:
    x = inputs(400, (size,), dtype=torch.float64)
    found = estimate(brittle.Classifier(Ridge()), x, Laplacian())
    assert not any(detail is not None and "piecewise linear" in detail for detail in found.detail or ())


@pytest.mark.parametrize("at", [0.1, 0.3, 0.7, 0.9])
def test_a_stationary_point_of_a_smooth_network_is_no_kink(at: float) -> None:
    class Bowl(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            square = (x - at).square().flatten(1).sum(dim=1)
            return torch.stack((1.0 - square, square), dim=1)

    x = torch.full((2, 12), at)
    assert not bool(brittle.laplacian(brittle.Classifier(Bowl()), x).kink.any())


def test_a_tie_at_a_stationary_point_stays_a_tie() -> None:
    class Saddle(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            square = (x - 0.5).square().flatten(1).sum(dim=1)
            return torch.stack((square, -square), dim=1)

    found = estimate(brittle.Classifier(Saddle()), torch.full((1, 3), 0.5, dtype=torch.float64), Laplacian())
    assert found.status.tolist() == [int(Status.TIE)]


def test_an_operation_without_second_derivative_is_named() -> None:
    class Distances(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return -torch.cdist(x, torch.eye(3, dtype=x.dtype))

    with pytest.raises(ModelError, match=r"no second derivatives \(the derivative for .*cdist") as caught:
        estimate(brittle.Classifier(Distances()), inputs(2, (3,)), Laplacian())
    assert caught.value.code == "not_twice_differentiable"
