"""The variance of functions of the noise from their gradients at noisy copies, exact up to quadratic functions.

With `a` the Gram matrix of the expected gradients and `b` the expected Gram matrix of single ones, both in the metric
`K`, functions `g` of normal noise of covariance `s^2 K` have the covariance `s^2 (a + b) / 2`, as far as they are
quadratic. In the Hermite expansion of `g`, with `c_k` the covariance of its terms of order `k`,

    Cov g = sum_k c_k,   s^2 a = c_1,   s^2 b = sum_k k c_k,   s^2 (a + b) / 2 = c_1 + c_2 + sum_{k > 2} (k / 2) c_k.

So `s^2 a`, the covariance of the linear function that is closest to `g` in mean square, leaves out what the gradients
vary; `s^2 b` counts it twice where `g` is quadratic; and `s^2 a <= Cov g <= s^2 b` always. The mean of the two is exact
for linear functions under any noise, and for quadratic ones under normal noise; under other noise it approximates. Of
higher orders it counts too much: of cubic terms one and a half times.

Source: this library; the two bounds are the first of C. Houdre, A. Kagan, Variance inequalities for functions of
Gaussian variables, J. Theor. Probab. 8 (1995).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.measure.chunks import add_in_turn
from brittle.measure.linearization import contract
from brittle.noise import Noise


@dataclass
class GradientGrams:
    """Running sums of the Gram matrices of the gradients of `M` functions at noisy copies.

    A unit of noise is an antithetic pair or a single copy. Its gradients have an even part, their half-sum, and an odd
    part, their half-difference, 0 for a single copy.

    Attributes:
        shape: what decides the covariance that gradients are contracted with; None for the identity.
        even: of the even parts, `[B, M, M]`, float64.
        odd: of the odd parts, likewise.
    """

    shape: Noise | None
    even: Tensor
    odd: Tensor

    @classmethod
    def start(cls, points: int, functions: int, shape: Noise | None, device: torch.device) -> GradientGrams:
        """No units yet."""
        even = torch.zeros(points, functions, functions, dtype=torch.float64, device=device)
        return cls(shape, even, even.clone())

    def add(self, gradients: Tensor) -> None:
        """Add the gradients `[B, units, members, M, n]` of some units."""
        even = gradients.mean(2)
        add_in_turn(self.even, self._by_unit(even))
        if gradients.shape[2] == 2:
            add_in_turn(self.odd, self._by_unit(gradients[:, :, 0] - even))

    def _by_unit(self, parts: Tensor) -> Tensor:
        """The Gram matrix of each unit's `[B, units, M, n]`, one unit at a time for its memory: `[B, units, M, M]`."""
        return torch.stack([contract(part, self.shape) for part in parts.unbind(1)], dim=1)

    def read(self, of_means: Tensor, units: int) -> Tensor:
        """`(a + b) / 2` of the first `units` units, `[B, M, M]`.

        `a` is free of the bias `Cov / units` that the Gram matrix of a mean has: over the products of different units
        alone it is `(units of_means - even) / (units - 1)`, with `even` and `odd` the means over the units. It may have
        a negative diagonal, but with `b = even + odd` the result is a sum of positive semidefinite matrices,
        `units / (2 (units - 1)) of_means + (units - 2) / (2 (units - 1)) even + odd / 2`. A single unit has no other to
        be multiplied with, and `a` is `of_means`, which in an antithetic pair has no bias where functions are
        quadratic.

        Args:
            of_means: Gram matrices of the mean gradients, `[B, M, M]`.
            units: units of noise so far.
        """
        even, odd = self.even / units, self.odd / units
        if units == 1:
            return of_means + odd / 2
        return (units * of_means + (units - 2) * even) / (2 * (units - 1)) + odd / 2
