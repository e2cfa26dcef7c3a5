"""Input margins of affine networks in closed form, inside [0, 1]; with no code of the library."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

HALVINGS = 60

FAR = 1e8
"""Multiples of a gradient at which every pixel that may change has reached its bound."""

ALIKE = 1e-4
"""How far from affine, as a share of the largest logit, a network may be by what single precision rounds."""

Array = NDArray[np.float64]


def affine_weight(network: nn.Module, x: Tensor) -> Array | None:
    """Return the weight `W`, `[C, d]`, if `z(x) - z(0) = W x` at all of `x`; None for a network that is not affine."""
    jacobian = torch.autograd.functional.jacobian(lambda row: network(row[None])[0], x[0])
    assert isinstance(jacobian, Tensor)
    weight = jacobian.flatten(1).double()
    with torch.no_grad():
        logits, offset = network(x).double(), network(torch.zeros_like(x[:1])).double()
    error = (logits - offset - x.flatten(1).double() @ weight.T).abs().max()
    return weight.numpy() if error <= ALIKE * logits.abs().max() else None


def exact_margins(weight: Array, logits: Array, x: Array, norm: str) -> Array:
    r"""`min_j min ||d||` subject to `(w_j - w_t) d >= z_t - z_j` and `0 <= x + d <= 1`, `[B]`.

    Without the bounds that is `min_j (z_t - z_j) / ||w_j - w_t||_q`. With them the best change of length `r` is
    `clip(r sign(a))` in Linf and `clip(s a)` in L2, `a = w_j - w_t`; the gain grows with `r` and `s`, so that bisection
    finds the smallest that suffices.
    """
    margins = np.full(len(x), np.inf)
    for row, (point, scores) in enumerate(zip(x, logits, strict=True)):
        predicted = int(scores.argmax())
        for rival in range(len(scores)):
            if rival != predicted:
                gap = float(scores[predicted] - scores[rival])
                margins[row] = min(margins[row], _shortest(weight[rival] - weight[predicted], gap, point, norm))
    return margins


def _shortest(slope: Array, gap: float, point: Array, norm: str) -> float:
    direction = np.sign(slope) if norm == "linf" else slope

    def change(size: float) -> Array:
        return np.clip(size * direction, -point, 1 - point)

    low, high = 0.0, 1.0 if norm == "linf" else FAR / max(float(np.abs(slope).max()), 1e-30)
    if change(high) @ slope < gap:
        return np.inf
    for _ in range(HALVINGS if norm == "linf" else 2 * HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if change(middle) @ slope >= gap else (middle, high)
    return float(np.linalg.norm(change(high), ord=np.inf if norm == "linf" else 2))


def unbounded_margins(weight: Array, logits: Array, norm: str) -> Array:
    """`min_j (z_t - z_j) / ||w_t - w_j||_q`, `q` the order of the dual norm: without bounds, `[B]`."""
    predicted = logits.argmax(axis=1)
    lengths = np.linalg.norm(weight[predicted][:, None] - weight[None], ord=1 if norm == "linf" else 2, axis=2)
    gaps = logits[np.arange(len(predicted)), predicted][:, None] - logits
    ratios = gaps / np.where(lengths > 0, lengths, np.inf)
    ratios[np.arange(len(predicted)), predicted] = np.inf
    return ratios.min(axis=1)
