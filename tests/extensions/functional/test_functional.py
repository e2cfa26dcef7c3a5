"""Functions to train with: values of the scores, gradients as by differences, finite even where nothing varies."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from helpers.curved import PIECEWISE_LINEAR, SMOOTH, network, points
from helpers.inputs import SIGMA
from helpers.laws import estimate
from helpers.measured import pairs_of
from helpers.problems import inputs, linear_network, small_network
from scipy import stats
from torch import Tensor, nn
from torch.func import functional_call

import brittle
from brittle import functional
from brittle.errors import ModelError, ParameterError
from brittle.scores import MMSEMVS, Moments, Score, TaylorMVS

PAIRS = 4
NORMAL = 1.702
"""The factor with which two classes agree with the normal distribution to 0.01."""

Function = Callable[..., Tensor]

FUNCTIONS: dict[str, Function] = {
    "taylor_mvs": lambda net, x, **options: functional.taylor_mvs(net, x, SIGMA, **options),
    "mmse_mvs": lambda net, x, **options: functional.mmse_mvs(net, x, SIGMA, unit_noise(x), **options),
    "moments": lambda net, x, **options: functional.moments(net, x, SIGMA, unit_noise(x), **options),
}
every_function = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())
by_name = pytest.mark.parametrize("name", [*FUNCTIONS])


STEP = 1e-6
"""Half the step of a difference, in double precision."""


def direction(tensors: list[Tensor]) -> list[Tensor]:
    """Return a direction of length 1 in all tensors together."""
    generator = torch.Generator().manual_seed(5)
    parts = [torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype) for tensor in tensors]
    length = torch.cat([part.flatten() for part in parts]).norm()
    return [part / length for part in parts]


def unit_noise(x: Tensor) -> Tensor:
    return torch.randn(PAIRS, *x.shape, dtype=x.dtype, generator=torch.Generator().manual_seed(3))


def noise_of(x: Tensor, purpose: str, draws: int) -> Tensor:
    """Return one noise of each pair that a score draws at these points, at sigma 1."""
    return ((pairs_of(x, purpose, draws)[:, ::2] - x[:, None]) / SIGMA).transpose(0, 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("classes", [2, 5, 130])
def test_taylor_and_mmse_are_the_scores(classes: int, dtype: torch.dtype) -> None:
    """With 130 classes the 20 with the nearest logits compete."""
    net, x = small_network(classes=classes, dtype=dtype), inputs(5, dtype=dtype)
    classifier = brittle.Classifier(net)
    p_robust_by_score: dict[Score, Tensor] = {TaylorMVS(SIGMA): FUNCTIONS["taylor_mvs"](net, x)}
    if classes <= 100:
        p_robust_by_score[MMSEMVS(SIGMA, draws=6)] = functional.mmse_mvs(net, x, SIGMA, noise_of(x, "linearize", 6))
    for score, p_robust in p_robust_by_score.items():
        flips = estimate(classifier, x, score).value
        assert p_robust.dtype == dtype
        torch.testing.assert_close(1 - p_robust.double(), flips, rtol=0, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_moments_of_two_classes_are_near_the_score(seed: int) -> None:
    net, x = small_network(seed, classes=2, dtype=torch.float64), inputs(5, seed=seed, dtype=torch.float64)
    p_robust = functional.moments(net, x, SIGMA, noise_of(x, "sample", 20), factor=NORMAL)
    flips = estimate(brittle.Classifier(net), x, Moments(SIGMA, draws=20)).value
    assert float((1 - p_robust.detach() - flips).abs().max()) <= 0.01


def test_two_linear_classes_have_the_known_value_and_gradient() -> None:
    net, x = linear_network(2, 12), inputs(20, (12,), dtype=torch.float64).requires_grad_()
    p_robust = functional.taylor_mvs(net, x, SIGMA, target=torch.zeros(20, dtype=torch.long), factor=NORMAL)
    p_robust.sum().backward()
    direction = (net.weight[0] - net.weight[1]).detach()
    length = SIGMA * direction.norm()
    distance = (x.detach() @ direction + net.bias.detach() @ torch.tensor([1.0, -1.0], dtype=torch.float64)) / length
    truth = 1 / (1 + torch.exp(-NORMAL * distance))
    torch.testing.assert_close(p_robust.detach(), truth)
    assert x.grad is not None
    torch.testing.assert_close(x.grad, (NORMAL * truth * (1 - truth))[:, None] * direction / length)
    assert float((truth - torch.tensor(stats.norm.cdf(distance))).abs().max()) <= 0.01


NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor]]] = {
    "conv": (lambda: small_network(dtype=torch.float64), lambda: inputs(3, dtype=torch.float64)),
    "silu": (lambda: network(lambda: [nn.Conv2d(2, 4, 3), nn.SiLU()]), lambda: points(3)),
    "two": (lambda: small_network(classes=2, dtype=torch.float64), lambda: inputs(3, dtype=torch.float64)),
    **{name: (lambda body=SMOOTH[name]: network(body), lambda: points(3)) for name in ("attention", "tanh")},
    "batch norm": (lambda: network(PIECEWISE_LINEAR["batch norm"]).train(), lambda: points(3)),
    "max pooling": (lambda: network(PIECEWISE_LINEAR["max pooling"]), lambda: points(3)),
}


@every_function
@pytest.mark.parametrize("kind", NETWORKS)
def test_gradients_are_those_of_differences(kind: str, function: Function) -> None:
    """Along a direction of length 1 of the inputs, and of the weights."""
    net, x = NETWORKS[kind][0](), NETWORKS[kind][1]()
    weights = {name: parameter.detach() for name, parameter in net.named_parameters()}
    target, shares = torch.tensor([0, 1, 0]), torch.tensor([1.0, -0.7, 0.4], dtype=torch.float64)

    def value(x: Tensor, weights: dict[str, Tensor]) -> Tensor:
        return function(lambda rows: functional_call(net, weights, rows), x, target=target) @ shares

    along_x, along = direction([x])[0], dict(zip(weights, direction([*weights.values()]), strict=True))
    lines: list[Callable[[Tensor], Tensor]] = [
        lambda step: value(x + step * along_x, weights),
        lambda step: value(x, {name: parameter + step * along[name] for name, parameter in weights.items()}),
    ]
    for line in lines:
        step = torch.zeros((), dtype=torch.float64, requires_grad=True)
        (slope,) = torch.autograd.grad(line(step), step)
        with torch.no_grad():
            difference = float(line(step + STEP) - line(step - STEP)) / (2 * STEP)
        assert difference != 0
        assert float(slope) == pytest.approx(difference, rel=1e-4, abs=1e-8)


def test_taylor_has_second_derivatives() -> None:
    net, x = NETWORKS["silu"][0](), points(1).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: functional.taylor_mvs(net, x, SIGMA), x, fast_mode=True)


def gradients(function: Function, net: nn.Module, x: Tensor, **options: Any) -> tuple[Tensor, list[Tensor]]:
    """Return `p_robust`, and the gradients of its sum by the inputs and the weights."""
    x = x.clone().requires_grad_()
    p_robust = function(net, x, **options)
    grads = torch.autograd.grad(p_robust.sum(), [x, *net.parameters()], allow_unused=True)
    return p_robust.detach(), [grad for grad in grads if grad is not None]


@every_function
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e-18, 1e4, 1e15])
def test_gradients_are_finite_at_every_scale(scale: float, dtype: torch.dtype, function: Function) -> None:
    """For a constant network, a nearly constant network, and logits that saturate."""
    for bias in (0.0, 1.0, 1e4):
        net = linear_network(4, 6, dtype=dtype)
        with torch.no_grad():
            net.weight.mul_(scale)
            net.bias.mul_(bias)
        for target in (None, torch.tensor([0, 1, 2])):
            p_robust, grads = gradients(function, net, inputs(3, (6,), dtype=dtype), target=target)
            assert bool(((p_robust >= 0) & (p_robust <= 1)).all())
            assert grads
            assert all(bool(grad.isfinite().all()) for grad in grads)


@by_name
@pytest.mark.parametrize("scale", [1e-20, 1e-15, 1e15, 1e20])
def test_no_scale_of_the_logits_changes_a_number(scale: float, name: str) -> None:
    """Nor the gradients by the inputs. The score, in double precision, agrees."""
    net, x = small_network(), inputs(5)
    expected, grads = gradients(FUNCTIONS[name], net, x)
    with torch.no_grad():
        for parameter in [*net.parameters()][-2:]:  # of the last layer
            parameter.mul_(scale)
    p_robust, scaled = gradients(FUNCTIONS[name], net, x)
    torch.testing.assert_close(p_robust, expected)
    torch.testing.assert_close(scaled[0], grads[0], rtol=1e-4, atol=1e-5)
    assert all(bool(grad.isfinite().all()) for grad in scaled)
    if name == "taylor_mvs":
        flips = estimate(brittle.Classifier(net), x, TaylorMVS(SIGMA)).value
        torch.testing.assert_close(1 - p_robust.double(), flips, rtol=0, atol=1e-6)


@pytest.mark.parametrize("slope", [1e-2, 1.0, 200.0])
@pytest.mark.parametrize(("dtype", "exact"), [(torch.float16, 2e-3), (torch.bfloat16, 2e-2)])
def test_half_precision_agrees_with_the_score_up_to_rounding(dtype: torch.dtype, exact: float, slope: float) -> None:
    """The score runs in single precision; logits and gradients of the network are rounded."""
    net, x = linear_network(3, 6, dtype=dtype), inputs(5, (6,), dtype=dtype)
    with torch.no_grad():
        net.weight.mul_(slope)
        net.bias.mul_(slope)
    for name in ("taylor_mvs", "mmse_mvs"):
        p_robust, grads = gradients(FUNCTIONS[name], net, x)
        assert p_robust.dtype == torch.float32
        assert all(bool(grad.isfinite().all()) and bool(grad.any()) for grad in grads)
        flips = estimate(brittle.Classifier(copy.deepcopy(net).float()), x.float(), TaylorMVS(SIGMA)).value
        torch.testing.assert_close(1 - p_robust.double(), flips, rtol=0, atol=exact)


@by_name
def test_a_constant_network_keeps_or_loses_every_class(name: str) -> None:
    net = linear_network(3, 6)
    with torch.no_grad():
        net.weight.zero_()
        net.bias.copy_(torch.tensor([1.0, 0.0, 1.0]))
    for target, expected in ((0, 0.5), (1, 0.0)):  # two classes tie and share the probability
        p_robust, grads = gradients(
            FUNCTIONS[name], net, inputs(2, (6,), dtype=torch.float64), target=torch.tensor([target] * 2)
        )
        assert p_robust.tolist() == [expected] * 2
        assert not any(bool(grad.any()) for grad in grads)


@by_name
def test_a_class_that_stays_behind_takes_no_part(name: str) -> None:
    """Class 2 is class 0 with a smaller bias: the problem is that of two classes."""
    two, three, x = linear_network(2, 6), linear_network(3, 6), inputs(4, (6,), dtype=torch.float64)
    with torch.no_grad():
        three.weight.copy_(torch.cat((two.weight, two.weight[:1])))
        three.bias.copy_(torch.cat((two.bias, two.bias[:1] - 1)))
    target = torch.zeros(4, dtype=torch.long)
    p_robust, grads = gradients(FUNCTIONS[name], three, x, target=target)
    expected, of_two = gradients(FUNCTIONS[name], two, x, target=target)
    torch.testing.assert_close(p_robust, expected)
    torch.testing.assert_close(grads[0], of_two[0])


@every_function
def test_the_modes_of_the_caller_change_no_value(function: Function) -> None:
    net, x = small_network(), inputs(4)
    expected = function(net, x).detach()
    for mode in (torch.no_grad, torch.inference_mode, contextlib.nullcontext):
        for weights in (False, True):
            net.requires_grad_(weights)
            with mode():
                p_robust = function(net, x)
            torch.testing.assert_close(p_robust, expected)
            if mode is not contextlib.nullcontext:
                assert not p_robust.requires_grad


@every_function
def test_gradients_reach_the_inputs_of_a_frozen_network(function: Function) -> None:
    net = small_network().requires_grad_(False)
    x = inputs(4).requires_grad_()
    p_robust = function(net, x * 1)
    (grad,) = torch.autograd.grad(p_robust.sum(), x)
    assert bool(grad.flatten(1).any(1).all())


@every_function
def test_a_first_layer_that_works_in_place_changes_nothing(function: Function) -> None:
    body = small_network(dtype=torch.float64)
    x = inputs(3, dtype=torch.float64) - 0.5
    before = x.clone()
    p_robust, grads = gradients(function, nn.Sequential(nn.ReLU(inplace=True), body), x)
    expected, expected_grads = gradients(function, nn.Sequential(nn.ReLU(), body), x)
    torch.testing.assert_close(p_robust, expected)
    torch.testing.assert_close(grads, expected_grads)
    function(nn.Sequential(nn.ReLU(inplace=True), body), x)
    assert torch.equal(x, before)


@every_function
def test_training_mode_is_kept(function: Function) -> None:
    """Dropout and batch norm are active; running averages move, and every weight has a finite gradient."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(8, 3))
        p_robust, grads = gradients(function, net, inputs(5, (6,)), target=torch.arange(5) % 3)
    assert net.training
    assert int(net[1].num_batches_tracked) == 1  # type: ignore[arg-type]
    assert len(grads) == 1 + len([*net.parameters()])
    assert bool(p_robust.isfinite().all())
    assert all(bool(grad.isfinite().all()) for grad in grads)


class Once(torch.autograd.Function):
    """A function that doubles its input; its gradient has no derivative."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # type: ignore[override]
        return 2 * x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
        return 2 * gradient


@pytest.mark.parametrize("name", ["taylor_mvs", "mmse_mvs"])
def test_networks_without_derivatives_are_refused(name: str) -> None:
    """First or second derivatives; a caller who needs no gradients needs the first alone."""
    head = linear_network(3, 6, dtype=torch.float32)
    for net in (lambda x: head(x.detach()), lambda x: Once.apply(head(x))):
        with pytest.raises(ModelError) as caught:
            FUNCTIONS[name](net, inputs(2, (6,)))
        assert caught.value.code == "not_differentiable"
    with torch.no_grad():
        assert bool(FUNCTIONS[name](lambda x: Once.apply(head(x)), inputs(2, (6,))).isfinite().all())


@by_name
def test_logits_that_are_not_finite_have_no_number(name: str) -> None:
    def broken(x: Tensor) -> Tensor:
        return torch.where(x[:, :1] > 2.5, torch.inf, linear_network(3, 6)(x))

    x = inputs(6, (6,), dtype=torch.float64)
    x[::2, 0] = 5.0
    assert FUNCTIONS[name](broken, x).isnan().tolist() == [True, False] * 3


def test_wrong_arguments_are_refused() -> None:
    net, x = linear_network(3, 6, dtype=torch.float32), inputs(2, (6,))
    wrong: list[Callable[[], Tensor]] = [
        *(lambda sigma=sigma: functional.taylor_mvs(net, x, sigma) for sigma in (0.0, -1.0, float("nan"))),
        *(lambda f=f: functional.moments(net, x, SIGMA, unit_noise(x), factor=f) for f in (0.0, float("inf"))),
        lambda: functional.moments(net, x, SIGMA, unit_noise(x)[:1]),
        lambda: functional.mmse_mvs(net, x, SIGMA, unit_noise(x)[:, :1]),
        *(lambda f=f: f(net, x, target=torch.zeros(1, dtype=torch.long)) for f in FUNCTIONS.values()),
    ]
    for call in wrong:
        with pytest.raises(ParameterError):
            call()
    with pytest.raises(ModelError) as caught:
        functional.taylor_mvs(nn.Linear(6, 1), x, SIGMA)
    assert caught.value.code == "output_shape"
