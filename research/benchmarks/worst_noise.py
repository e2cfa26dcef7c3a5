"""The least robustness over a small family of noises of equal trace, and what the margins say of it already.

    python research/benchmarks/worst_noise.py [--points 200] [--margins 100] [MODEL.pt2 DATA ...]

MODEL.pt2 and DATA come in pairs; the network of `brittle demo` always takes part. `sigma` is the level at which the
mean probability to keep a prediction is `TARGET` under isotropic normal noise. The family of a point holds that noise
and others of the same trace, `sigma^2 ((1 - share) I + share d / k U U')`: `U` is the direction to the nearest boundary
of the point's tangent (`nearest`), the three leading directions of its gradients `w_j - w_t` (`own 3`), or the ten of
those of all points (`all 10`). The member with the fewest kept copies of `SEARCH` is chosen; `COPIES` fresh ones are
counted for it, and as many for isotropic noise, with the interval of Clopper and Pearson at 99%.

Printed for each network: the mean `p_robust` of each member, and Spearman's correlation with the margin of the tangent
and with the isotropic `p_robust`; the same of the least over the mild members (share at most `MILD`) and over all, with
the input margin (L2, unbounded, of `--margins` points), too; the points that hold, are open and break at `LIMIT`. Last,
for all noise on the direction to the nearest boundary: the mean `p_robust`, that of the tangent on this line,
`Phi(margin / (sigma sqrt(d)))`, and the root mean square difference of either, less what counting adds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from estimators import loaded
from scipy.stats import norm, spearmanr
from timing import print_table
from torch import Tensor

import brittle
from brittle.extensions.demo import digits
from brittle.intervals import clopper_pearson
from brittle.scores import InputMargin

TARGET, LIMIT, CONFIDENCE, MILD = 0.9, 0.9, 0.99, 0.01
SEARCH, COPIES, PILOT = 100, 400, 20
MEMBERS = (
    ("isotropic", 0.0), ("nearest", 0.01), ("own 3", 0.01), ("all 10", 0.01), ("nearest", 0.1), ("nearest", 1.0),
    ("own 3", 1.0), ("all 10", 1.0),
)  # fmt: skip
"""Directions of a member, and the share of the trace that lies on them."""


class Task(NamedTuple):
    """A network and points, `[B, d]`, in the shape that it takes."""

    name: str
    network: Callable[[Tensor], Tensor]
    points: Tensor


class Tangent(NamedTuple):
    """The tangent of a network at its points: margins `[B, C]` (infinite for the prediction), their gradients."""

    predicted: Tensor
    margins: Tensor
    gradients: Tensor

    @property
    def distances(self) -> Tensor:
        return self.margins / self.gradients.norm(dim=2).clamp_min(1e-30)


def tangent(task: Task) -> Tangent:
    x = task.points.clone().requires_grad_()
    logits = task.network(x)
    rows = [torch.autograd.grad(logits[:, j].sum(), x, retain_graph=True)[0].flatten(1) for j in range(logits.shape[1])]
    jacobian, predicted = torch.stack(rows, dim=1), logits.argmax(1)
    place = torch.arange(len(x))
    margins = (logits[place, predicted][:, None] - logits).detach()
    margins[place, predicted] = torch.inf
    return Tangent(predicted, margins, jacobian[place, predicted][:, None] - jacobian)


def directions(tangents: Tangent) -> dict[str, Tensor]:
    """Return orthonormal directions for each point, `[B, d, k]`."""
    nearest = tangents.distances.argmin(1)
    row = tangents.gradients[torch.arange(len(nearest)), nearest]
    leading = torch.linalg.svd(tangents.gradients, full_matrices=False).Vh
    common = torch.linalg.svd(tangents.gradients.flatten(0, 1), full_matrices=False).Vh[:10]
    return {
        "nearest": (row / row.norm(dim=1, keepdim=True).clamp_min(1e-30))[:, :, None],
        "own 3": leading[:, :3].mT,
        "all 10": common.T.expand(len(row), -1, -1),
    }


def kept(
    task: Task, predicted: Tensor, sigma: float, copies: int, seed: int, share: Tensor, basis: Tensor | None = None
) -> np.ndarray:
    """Count the copies of each point that keep its prediction; a share of the trace, `[B]`, is on `basis`."""
    generator, counts = torch.Generator().manual_seed(seed), []
    for row, point in enumerate(task.points):
        noise = torch.randn(copies, point.numel(), generator=generator) * (1.0 - share[row]).sqrt()
        if basis is not None and share[row] > 0.0:
            width = basis.shape[2]
            scale = (share[row] * point.numel() / width).sqrt()
            noise += scale * torch.randn(copies, width, generator=generator) @ basis[row].T
        with torch.no_grad():
            answers = task.network(point + sigma * noise.view(copies, *point.shape)).argmax(1)
        counts.append(int((answers == predicted[row]).sum()))
    return np.array(counts)


def choose_sigma(task: Task, predicted: Tensor) -> float:
    """Return the level at which the mean probability to keep a prediction is `TARGET`, by bisection."""
    low, high, none = 1e-3, 10.0, torch.zeros(len(task.points))
    for _ in range(9):
        middle = (low * high) ** 0.5
        mean = kept(task, predicted, middle, PILOT, 7, none).mean() / PILOT
        low, high = (middle, high) if mean > TARGET else (low, middle)
    return (low * high) ** 0.5


def states(counts: np.ndarray) -> np.ndarray:
    """Return 1 where a prediction holds at `LIMIT` by its interval, -1 where it breaks, else 0."""
    low, high = clopper_pearson(counts, COPIES, CONFIDENCE)
    return (low >= LIMIT).astype(int) - (high < LIMIT)


def line_probability(tangents: Tangent, direction: Tensor, deviation: float) -> np.ndarray:
    """Return the probability that the tangent keeps its prediction on a line, both ways."""
    slopes = torch.einsum("bcd,bd->bc", tangents.gradients, direction)
    reach = tangents.margins / slopes.abs().clamp_min(1e-30)
    ends = [reach.where(side, torch.inf).amin(1).numpy() / deviation for side in (slopes > 0, slopes < 0)]
    return norm.cdf(ends[0]) - norm.sf(ends[1])


def beyond_counting(counts: np.ndarray, prediction: np.ndarray) -> float:
    """Return the root mean square difference of a prediction from counted shares, less what counting adds."""
    share = counts / COPIES
    square = np.mean((share - prediction) ** 2) - np.mean(share * (1.0 - share)) / (COPIES - 1)
    return float(max(square, 0.0) ** 0.5)


def correlations(share: np.ndarray, *others: np.ndarray) -> list[float]:
    """Return Spearman's correlation with each of the others, over the points that these have."""
    results: list[Any] = [spearmanr(share[: len(other)], other, nan_policy="omit") for other in others]
    return [float(result.statistic) for result in results]


def count_least(
    task: Task, predicted: Tensor, sigma: float, bases: dict[str, Tensor], chosen: np.ndarray, seed: int
) -> np.ndarray:
    """Count fresh copies of each point by the member that was chosen for it."""
    counts = np.zeros(len(chosen), dtype=int)
    for place, (name, share) in enumerate(MEMBERS):
        rows = np.flatnonzero(chosen == place)
        part, shares = Task(task.name, task.network, task.points[rows]), torch.full((len(rows),), share)
        basis = bases[name][rows] if name in bases else None
        counts[rows] = kept(part, predicted[rows], sigma, COPIES, seed + place, shares, basis)
    return counts


def examine(task: Task, points_attacked: int) -> None:
    """Print the tables of a network."""
    start, tangents = time.process_time(), tangent(task)
    predicted, count, size = tangents.predicted, len(task.points), task.points[0].numel()
    sigma, bases = choose_sigma(task, predicted), directions(tangents)
    nothing, everything = torch.zeros(count), torch.ones(count)
    plain = kept(task, predicted, sigma, COPIES, 201, nothing)
    first_order = tangents.distances.amin(1).numpy()
    searched = np.stack(
        [
            kept(task, predicted, sigma, SEARCH, 11 + place, torch.full((count,), share), bases.get(name))
            for place, (name, share) in enumerate(MEMBERS)
        ]
    )
    members = [
        [f"{name} {share:g}", float(row.mean() / SEARCH), *correlations(row, first_order, plain)]
        for (name, share), row in zip(MEMBERS, searched, strict=True)
    ]
    print(f"{task.name}: sigma {sigma:.3g}, d {size}, {count} points")
    print_table(["member", "mean", "rho tangent", "rho isotropic"], members)

    deviation = sigma * size**0.5
    flat, line = norm.cdf(first_order / deviation), line_probability(tangents, bases["nearest"][:, :, 0], deviation)
    nearest = kept(task, predicted, sigma, COPIES, 202, everything, bases["nearest"])
    means = [float(share.mean()) for share in (nearest / COPIES, line, flat)]
    differences = [beyond_counting(nearest, prediction) for prediction in (line, flat)]
    print_table(["on the line", "tangent", "Phi", "rms tangent", "rms Phi"], [[*means, *differences]])

    search = InputMargin("l2", effort="fast", bounded=False)
    attacked = task.points[:points_attacked]
    margin = brittle.score(brittle.Classifier(task.network), attacked, [search])[search].value.to_numpy()
    mild = [place for place, (_, share) in enumerate(MEMBERS) if share <= MILD]
    counted = {
        "isotropic": plain,
        "least, mild": count_least(task, predicted, sigma, bases, searched[mild].argmin(0), 301),
        "least": count_least(task, predicted, sigma, bases, searched.argmin(0), 401),
    }
    rows: list[list[object]] = []
    for name, counts in counted.items():
        tally = "/".join(str(int((states(counts) == state).sum())) for state in (1, 0, -1))
        changed = int((states(counts) != states(plain)).sum())
        mean, rhos = float(counts.mean() / COPIES), correlations(counts, margin, first_order, plain)
        rows.append([name, mean, tally, changed, *rhos])
    print_table(["noise", "mean", "hold/open/break", "changed", "rho margin", "rho tangent", "rho isotropic"], rows)
    print(
        f"{time.process_time() - start:.0f} s of CPU time, {SEARCH * len(MEMBERS) + COPIES} passes a point\n",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="*")
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--margins", type=int, default=100)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    x_train, y_train, x_test, _ = digits.load_digits()
    tasks = [Task("demo", digits.train(x_train, y_train).eval(), x_test[: arguments.points])]
    threes = [text for pair in zip(arguments.pairs[::2], arguments.pairs[1::2], strict=True) for text in (*pair, "0")]
    tasks += [Task(task.name.split("/")[-2], task.network, task.points) for task in loaded(threes, arguments.points)]
    for task in tasks:
        examine(task, arguments.margins)


if __name__ == "__main__":
    main()
