"""The change of the predicted probability by plain counting on a sphere; with no code of the library."""

from __future__ import annotations

import math

import pandas as pd
import torch
from torch import Tensor, nn


def doubt(logits: Tensor, predicted: Tensor) -> Tensor:
    """`1 - p_c` of the class `predicted`, `[B]`, with all its digits where `p_c` is near 1."""
    logits = logits.double()
    rivals = logits.scatter(1, predicted[:, None], -torch.inf)
    return (rivals.logsumexp(1) - logits.logsumexp(1)).exp()


def on_sphere(shape: torch.Size, radius: float, count: int, generator: torch.Generator) -> Tensor:
    """Noise of this length and of even direction, `[count, *shape]`: normal vectors brought to it."""
    normal = torch.randn(count, *shape, generator=generator)
    lengths = normal.flatten(1).norm(dim=1).view(-1, *[1] * len(shape))
    return normal * (radius / lengths)


@torch.no_grad()
def count_changes(network: nn.Module, points: Tensor, radius: float, pairs: int, seed: int) -> pd.DataFrame:
    """Count the moments of `dp = p_c(x + e) - p_c(x)` from pairs `e` and `-e` on the sphere, a row per point.

    Columns `mean` (`E[dp]`), `variance` (`Var[dp]`) and `absolute` (`E|dp|`), each with its standard error over pairs
    in `NAME_se`, and `flips`, the share of the copies with another class. In a pair what the gradient does cancels, so
    the mean of two copies is what Yang et al. expand: `E[dp] = r^2 / (2 n) lap p_c + O(r^4)`, their equation 2. Each
    point has a generator of its own.
    """
    rows = []
    for row, point in enumerate(points):
        generator = torch.Generator().manual_seed(seed * 1_000_003 + row)
        clean = network(point[None])
        predicted = clean.argmax(1)
        noise = on_sphere(point.shape, radius, pairs, generator)
        logits = network(torch.cat([point + noise, point - noise]))
        change = (doubt(clean, predicted) - doubt(logits, predicted.expand(2 * pairs))).view(2, pairs)
        mean = change.mean()
        units = {"mean": change, "variance": (change - mean).square(), "absolute": change.abs()}
        numbers = {"point": row, "flips": float((logits.argmax(1) != predicted).double().mean())}
        for name, unit in units.items():
            of_pairs = unit.mean(dim=0)
            numbers[name] = float(of_pairs.mean())
            numbers[f"{name}_se"] = float(of_pairs.std()) / math.sqrt(pairs)
        rows.append(numbers)
    return pd.DataFrame(rows)
