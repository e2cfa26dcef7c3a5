"""A linear model of the network around each point: what the linear theory needs of its logits and gradients."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from brittle.measure.forward import Clean
from brittle.measure.noisy_margins import Votes
from brittle.noise.base import Action, Noise

COLUMNS = 2**14
"""Input coordinates that are contracted at a time in double precision."""


@dataclass(frozen=True)
class Linearization:
    """A linear model of the network around each point: all that the linear theory needs.

    For noise with covariance `s^2 K` the linear model's logits are normal with mean `logits` and covariance
    `s^2 gram`, `gram = J K J^T` with `J` the Jacobian of the logits.

    Attributes:
        logits: `[B, C]`, float64.
        gram: `[B, M, M]`, float64, of the classes in `classes`; `M = C` up to 100 classes.
        classes: class indices of the Gram's rows, `[B, M]`, in class order: the predicted class and its competitors.
        predicted: the predicted class of the clean input, `[B]`.
        tied: whether the prediction of the clean input was a tie, `[B]`.
        passes: passes through the network per point, forward and backward.
        draws: noisy copies that were averaged; None at the point.
        nonfinite: how many of these copies, or of the points themselves, had NaN or infinite logits, `[B]`.
        dimension: number of coordinates of an input, `n`.
        lengths: norm of the gradient of each competitor's margin, `[B, M - 1]`, in class order, where that was
            asked for; or None.
        quadratic_gram: `[B, M, M]`, float64, with which `s^2 quadratic_gram` is the covariance of logits that are
            quadratic in the noise (`quadratic_gram`); None at the point.
        votes: how the noisy copies voted; None at the point.
    """

    logits: Tensor
    gram: Tensor
    classes: Tensor
    predicted: Tensor
    tied: Tensor
    passes: int
    draws: int | None
    nonfinite: Tensor
    dimension: int
    lengths: Tensor | None = None
    quadratic_gram: Tensor | None = None
    votes: Votes | None = None

    def quadratic(self) -> Linearization:
        """Return the same with `quadratic_gram` in the place of `gram`; itself at the point, where it has none."""
        return self if self.quadratic_gram is None else replace(self, gram=self.quadratic_gram)


def contract(jacobian: Tensor, action: Action | None) -> Tensor:
    """`J K J^T` in double precision, `[B, M, M]`, for `jacobian` `[B, M, n]` and `v -> K v`; None is `K = I`."""
    if action is not None:
        return jacobian.double() @ action(jacobian.double()).mT
    gram = jacobian.new_zeros(*jacobian.shape[:2], jacobian.shape[1], dtype=torch.float64)
    for columns in jacobian.split(COLUMNS, dim=2):
        exact = columns.double()
        gram.baddbmm_(exact, exact.mT)
    return gram


def action_at(shape: Noise | None, clean: Clean) -> Action | None:
    """`v -> K v` at the points, for `contract`; None for the identity."""
    return None if shape is None else shape.covariance_at(clean.inputs, clean.varies)


def last(classes: Tensor, predicted: Tensor) -> Tensor:
    """Return the order of the classes `classes` `[B, M]` in which the predicted one comes last, `[B, M]`."""
    return (classes == predicted[:, None]).int().argsort(dim=1, stable=True)


def grams_of_units(parts: Tensor, action: Action | None) -> Tensor:
    """Return the Gram matrix of each unit's `[B, units, M, n]`, one unit at a time for its memory: `[B, units, M,
    M]`."""
    return torch.stack([contract(part, action) for part in parts.unbind(1)], dim=1)


def quadratic_gram(of_means: Tensor, even: Tensor, odd: Tensor, units: int) -> Tensor:
    """Return `(a + b) / 2`, from gradients at noisy copies, with which functions quadratic in the noise have their
    covariance.

    With `a` the Gram matrix of the expected gradients and `b` the expected Gram matrix of single ones, both in the
    metric `K`, functions `g` of normal noise of covariance `s^2 K` have the covariance `s^2 (a + b) / 2`, as far as
    they are quadratic. In the Hermite expansion of `g`, with `c_k` the covariance of its terms of order `k`,

        Cov g = sum_k c_k,  s^2 a = c_1,  s^2 b = sum_k k c_k,  s^2 (a + b) / 2 = c_1 + c_2 + sum_{k > 2} (k / 2) c_k.

    So `s^2 a`, the covariance of the linear function that is closest to `g` in mean square, leaves out what the
    gradients vary; `s^2 b` counts it twice where `g` is quadratic; and `s^2 a <= Cov g <= s^2 b` always. The mean of
    the two is exact for linear functions under any noise, and for quadratic ones under normal noise; under other noise
    it approximates. Of higher orders it counts too much: of cubic terms one and a half times.

    A unit of noise is an antithetic pair or a single copy. Its gradients have an even part, their half-sum, and an odd
    part, their half-difference, 0 for a single copy. `a` is free of the bias `Cov / units` that the Gram matrix of a
    mean has: over the products of different units alone it is `(units of_means - even) / (units - 1)`, with `even` and
    `odd` the means over the units. It may have a negative diagonal, but with `b = even + odd` the result is a sum of
    positive semidefinite matrices, `units / (2 (units - 1)) of_means + (units - 2) / (2 (units - 1)) even + odd / 2`. A
    single unit has no other to be multiplied with, and `a` is `of_means`, which in an antithetic pair has no bias where
    functions are quadratic.

    Source: this library; the two bounds are the first of C. Houdre, A. Kagan, Variance inequalities for functions of
    Gaussian variables, J. Theor. Probab. 8 (1995).
    """
    if units == 1:
        return of_means + odd / 2
    return (units * of_means + (units - 2) * even) / (2 * (units - 1)) + odd / 2
