"""Two normal variables: the probability that both lie below their bounds, by Owen's T function."""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy import special
from torch import Tensor

NEARLY_ONE = 1e-9
"""Correlations this near to 1 or -1 are left to the reduction of rank."""


def both_below(bounds: Tensor, correlation: Tensor) -> tuple[Tensor, Tensor]:
    """`P(Z_1 < h, Z_2 < k)` and its complement `P(Z_1 > h) + P(Z_2 > k) - P(Z_1 > h, Z_2 > k)`, `[B]` each.

    Exact to rounding: the first as an absolute number, the second relative to itself, however small.

    Source: D. B. Owen, Tables for computing bivariate normal probabilities, Ann. Math. Statist. 27 (1956), section 2.

    Args:
        bounds: `[B, 2]`, finite, float64.
        correlation: `[B]`, further than `NEARLY_ONE` from 1 and -1.
    """
    h, k = (one.cpu().numpy() for one in bounds.unbind(dim=1))
    r = correlation.cpu().numpy()
    value = _owen(h, k, r)
    complement = special.ndtr(-h) + special.ndtr(-k) - _owen(-h, -k, r)
    found, beside = (torch.from_numpy(np.clip(one, 0.0, 1.0)).to(bounds) for one in (value, complement))
    return found, beside


def _owen(h: np.ndarray, k: np.ndarray, r: np.ndarray) -> np.ndarray:
    """`(Phi(h) + Phi(k)) / 2 - T(h, (k - r h) / (h s)) - T(k, (h - r k) / (k s))`, `s^2 = 1 - r^2`, less one half
    where the bounds have different signs."""
    h, k = h + 0.0, k + 0.0  # -0 becomes 0, whose sign decides a quarter
    root = np.sqrt((1 - r) * (1 + r))
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = special.owens_t(h, (k - r * h) / (h * root)), special.owens_t(k, (h - r * k) / (k * root))
    apart = (h * k < 0) | ((h * k == 0) & (h + k < 0))
    found = (special.ndtr(h) + special.ndtr(k)) / 2 - first - second - np.where(apart, 0.5, 0.0)
    return np.where((h == 0) & (k == 0), 0.25 + np.arcsin(r) / (2 * math.pi), found)
