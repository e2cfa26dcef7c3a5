"""`p_robust` as differentiable functions of tensors, to train with: gradients reach the weights and the inputs.

Each is a formula alone: no bounds, no rechecks, no interval and no status. Measure a trained network by
`brittle.score`. The network runs in its current mode. In training mode batch norm mixes the points of a batch, so
gradients run through its statistics, and every pass, noisy copies included, moves its running averages; dropout draws
anew in every pass. After `network.eval()` the points are independent, and have gradients as well.

Gradients are finite: a margin that does not vary under the noise, or lies 10,000 standard deviations from 0, counts as
constant, and has no gradient. The logarithm of a probability may be infinite, so clamp it: `p.clamp_min(1e-6).log()`.
Probabilities are in float32 at least, whatever the precision of the network; float16 gradients overflow where slopes
are below 1e-4.

Example:
    >>> import torch
    >>> from brittle import functional
    >>> network, x, y = torch.nn.Linear(4, 3), torch.rand(5, 4), torch.tensor([0, 1, 2, 0, 1])
    >>> loss = torch.nn.functional.cross_entropy(network(x), y)
    >>> (loss - functional.taylor_mvs(network, x, 0.1, target=y).mean()).backward()
    >>> network.weight.grad.shape
    torch.Size([3, 4])
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from brittle.errors import ModelError, ParameterError
from brittle.measure.forward import competitors_kept
from brittle.model.evaluation_mode import twice_differentiable
from brittle.model.outputs import class_scores, scores_of
from brittle.model.passes import NO_GRADIENT, derivative
from brittle.noise import Gaussian

__all__ = ["mmse_mvs", "moments", "taylor_mvs"]

SURE = 1e4  # standard deviations from 0 from which on a margin counts as constant
Network = Callable[[Tensor], Any]  # a function from inputs to logits, or to an object that has `logits`


def taylor_mvs(
    network: Network, x: Tensor, sigma: float, *, target: Tensor | None = None, factor: float = 1.0
) -> Tensor:
    """`p_robust` of the first-order Taylor model by the multivariate sigmoid: one minus the score `taylor_mvs`.

    `1 / (1 + sum_i exp(-f z_i))` with `z_i = g_i(x) / (sigma ||grad g_i(x)||)`, `g_i = z_t - z_i` the margins, `f` the
    factor.

    Validity: an approximation for small sigma, without an interval. With `f = 1.702` and two classes it is within 0.01
    of the normal distribution, which is exact for linear networks; with 1 it is the formula of the paper. Above 100
    classes the 20 nearest compete.

    Source: Han, Srinivas, Lakkaraju, Characterizing data point vulnerability via average-case robustness (UAI 2024),
    section 3.2.3.

    Args:
        network: `[B, *shape] -> [B, C]`, logits; it needs second derivatives if `p_robust` is differentiated.
        x: inputs, `[B, *shape]`.
        sigma: standard deviation of the noise, in the units of `x`.
        target: classes to keep, `[B]`; by default the predicted classes.
        factor: multiplies the `z_i`.

    Returns:
        `p_robust`, `[B]`; NaN where logits or gradients are not finite.

    Raises:
        ParameterError: `sigma` or `factor` is not positive and finite, or `target` has another shape.
        ModelError: the network returns no logits of two classes or more, or cannot be differentiated.

    Example:
        >>> import torch
        >>> network = torch.nn.Linear(2, 2)
        >>> taylor_mvs(network, torch.rand(3, 2), 0.1).shape
        torch.Size([3])
    """
    return _at_tangent(network, x, sigma, None, target, factor)


def mmse_mvs(
    network: Network, x: Tensor, sigma: float, noise: Tensor, *, target: Tensor | None = None, factor: float = 1.0
) -> Tensor:
    """`p_robust` from logits and gradients averaged over noisy copies: one minus the score `mmse_mvs`.

    As `taylor_mvs`, with margins and gradients averaged over the antithetic pairs `x + sigma e`, `x - sigma e`.

    Validity: as for `taylor_mvs`, also at larger sigma, at the cost of a pass and a Jacobian per copy; all copies run
    in one pass. The noise of few pairs adds to the norm of the gradients, so that `p_robust` is too small.

    Source: Han, Srinivas, Lakkaraju (UAI 2024), section 3.2.3.

    Args:
        network: `[B, *shape] -> [B, C]`, logits; it needs second derivatives if `p_robust` is differentiated.
        x: inputs, `[B, *shape]`.
        sigma: standard deviation of the noise, in the units of `x`.
        noise: one noise `e` of each pair at `sigma = 1`, `[draws / 2, B, *shape]`, such as
            `torch.randn(10, *x.shape, generator=generator)`.
        target: classes to keep, `[B]`; by default the predicted classes, by one more pass.
        factor: multiplies the `z_i`.

    Returns:
        `p_robust`, `[B]`; NaN where logits or gradients are not finite.

    Raises:
        ParameterError: `sigma` or `factor` is not positive and finite, or `noise` or `target` has another shape.
        ModelError: the network returns no logits of two classes or more, or cannot be differentiated.

    Example:
        >>> import torch
        >>> network, x = torch.nn.Linear(2, 2), torch.rand(3, 2)
        >>> p_robust = mmse_mvs(network, x, 0.1, torch.randn(10, 3, 2))
        >>> torch.allclose(p_robust, taylor_mvs(network, x, 0.1), atol=1e-4)
        True
    """
    _check_noise(x, noise, 1)
    return _at_tangent(network, x, sigma, noise, target, factor)


def moments(
    network: Network, x: Tensor, sigma: float, noise: Tensor, *, target: Tensor | None = None, factor: float = 1.0
) -> Tensor:
    """`p_robust` from mean and standard deviation of the margins over noisy copies, by the multivariate sigmoid.

    `1 / (1 + sum_i exp(-f m_i / s_i))`. From the `h` antithetic pairs `x + sigma e`, `x - sigma e`: `m_i` the mean of
    the half-sums of their margins, `s_i^2` the mean square of the half-differences plus the variance of the half-sums,
    as in the score `moments`; `f` the factor.

    Validity: an approximation that assumes normal margins; it needs no second derivatives, and all copies run in one
    pass. With `f = 1.702` and two classes it is within 0.01 of one minus the score `moments` from the same copies; with
    more classes it ignores the dependence between the margins.

    Source: this library; the sigmoid of Han, Srinivas, Lakkaraju (UAI 2024), section 3.2.3.

    Args:
        network: `[B, *shape] -> [B, C]`, logits.
        x: inputs, `[B, *shape]`.
        sigma: standard deviation of the noise, in the units of `x`.
        noise: one noise `e` of each pair at `sigma = 1`, `[h, B, *shape]`, at least two.
        target: classes to keep, `[B]`; by default the predicted classes, by one more pass.
        factor: multiplies the ratios.

    Returns:
        `p_robust`, `[B]`; NaN where logits are not finite.

    Raises:
        ParameterError: `sigma` or `factor` is not positive and finite, or `noise` or `target` has another shape.
        ModelError: the network returns no logits of two classes or more.

    Example:
        >>> import torch
        >>> network, x = torch.nn.Linear(2, 2), torch.rand(3, 2)
        >>> moments(network, x, 0.1, torch.randn(10, 3, 2)).shape
        torch.Size([3])
    """
    _check_noise(x, noise, 2)
    logits = _pair_logits(network, x, sigma, noise)
    margins, pairs = _margins(logits, _choose_targets(network, x, target)), len(noise)
    even, odd = margins.mean(1), (margins[:, 0] - margins[:, 1]) / 2
    means = even.mean(0)
    return _sigmoid(means, _length(torch.cat((odd / pairs**0.5, (even - means) / (pairs - 1) ** 0.5)), 0), factor)


def _at_tangent(
    network: Network, x: Tensor, sigma: float, noise: Tensor | None, target: Tensor | None, factor: float
) -> Tensor:
    """Compute `taylor_mvs` without noise, and `mmse_mvs`, the same formula for averages over the noise, with it."""
    create = torch.is_grad_enabled()
    with torch.inference_mode(False), torch.enable_grad(), twice_differentiable():
        point = x if x.requires_grad else x.clone().detach().requires_grad_()
        if noise is None:
            logits = _logits(network, point)
            targets = logits.argmax(1) if target is None else _check_target(target, len(x))
        else:
            logits = _pair_logits(network, point, sigma, noise).mean((0, 1))
            targets = _choose_targets(network, x, target)
        margins = _margins(logits, targets)
        margins = margins.topk(competitors_kept(logits.shape[1]), largest=False).values
        slopes = [derivative(g, point, x.device, keep=True, differentiable=create) for g in margins.unbind(1)]
        lengths = [_length(_exact(slope.flatten(1)), 1) for slope in slopes if slope is not None]
        if len(lengths) < len(slopes):
            raise ModelError("not_differentiable", NO_GRADIENT)
        p_robust = _sigmoid(margins, Gaussian(sigma).sigma * torch.stack(lengths, dim=1), factor)
    return p_robust if create else p_robust.detach()


def _exact(values: Tensor) -> Tensor:
    """Convert `values` to single precision at least."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def _length(parts: Tensor, dim: int) -> Tensor:
    """Return the L2 norm along a dimension, scaled by the largest part, whose square may overflow or underflow."""
    largest = parts.detach().abs().amax(dim)
    flat = largest == 0
    squares = (parts / torch.where(flat, 1.0, largest).unsqueeze(dim)).square().sum(dim)
    return largest * torch.where(flat, 1.0, squares).sqrt()


def _sigmoid(means: Tensor, deviations: Tensor, factor: float) -> Tensor:
    """Return the multivariate sigmoid of `means / deviations`, `[B]`, from `[B, K]` each."""
    if not 0 < factor < torch.inf:
        raise ParameterError(f"factor must be positive and finite; found {factor}")
    exact = torch.finfo(deviations.dtype)
    # Constant margins are replaced before the division, whose derivative would be 0 times infinity.
    decided = (deviations <= exact.tiny / exact.eps) | (factor * means.abs() >= SURE * deviations)
    ratios = torch.where(decided, SURE * means.sign(), factor * means / torch.where(decided, 1.0, deviations))
    p_robust = torch.sigmoid(-torch.logsumexp(-ratios, dim=1))
    return p_robust.masked_fill(~(means.isfinite() & deviations.isfinite()).all(1), torch.nan)


def _logits(network: Network, x: Tensor) -> Tensor:
    """Return logits `[B, C]`, single precision at least; the network gets a copy: its first layer may work in place."""
    return _exact(class_scores(scores_of(network(x.clone()))[0], len(x), "logits"))


def _pair_logits(network: Network, x: Tensor, sigma: float, noise: Tensor) -> Tensor:
    step = Gaussian(sigma).sigma * noise
    copies = torch.stack((x + step, x - step), dim=1)
    return _logits(network, copies.flatten(0, 2)).unflatten(0, copies.shape[:3])


def _choose_targets(network: Network, x: Tensor, target: Tensor | None) -> Tensor:
    if target is not None:
        return _check_target(target, len(x))
    with torch.no_grad():
        return _logits(network, x).argmax(1)


def _margins(logits: Tensor, targets: Tensor) -> Tensor:
    """Return `z_t - z_i` for every other class, `[..., B, C - 1]`, from logits `[..., B, C]`."""
    classes = logits.shape[-1]
    competitors = (targets[:, None] + torch.arange(1, classes, device=targets.device)) % classes
    order = torch.cat((targets[:, None], competitors), dim=1).expand(logits.shape)
    target_first = logits.gather(-1, order)
    return target_first[..., :1] - target_first[..., 1:]


def _check_target(target: Tensor, points: int) -> Tensor:
    if target.shape != (points,):
        raise ParameterError(f"target must hold a class for each of {points} points; found shape {list(target.shape)}")
    return target


def _check_noise(x: Tensor, noise: Tensor, fewest: int) -> None:
    if noise.shape[1:] != x.shape or len(noise) < fewest:
        raise ParameterError(
            f"noise must hold at least {fewest} draws for inputs of shape {list(x.shape)}, [draws, B, ...]; "
            f"found shape {list(noise.shape)}"
        )
