"""Ways to join the count of the noisy copies with the normal model of their margins, at equal numbers of draws.

    python benchmarks/shrinkage.py [--points 200] [MODEL.pt2 DATA SIGMA ...]

Networks and data as for `benchmarks/estimators.py`. The reference is plain counting over draws of its own, 2,000 a
point; what its own error adds to a mean square is taken off, `p (1 - p) / (n - 1)`. Printed for each number of draws:
the root mean square error of `monte_carlo` over points and replicates, and that of the others as a ratio to it:

- `moments`: the normal model;
- `smoothed`: `mean_j Phi(-g(x + e_j) / h)`, `g` the nearest margin, `h = sd(g) n^(-1/5) / 2`;
- `by the point`: a mixture of the last two by what a point's own copies say of the normal model;
- `by a pilot`: one weight for all points, from copies of others, and the covariance shrunk to theirs;
- `best weight`: the best weight for all points, found with the reference: what no pilot with one weight can beat.

The last lines hold each estimator's largest ratio to the better of `monte_carlo` and `moments`, and its geometric mean.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from estimators import Task, loaded, trained
from torch import Tensor

from brittle.measure.forward import Clean
from brittle.measure.noisy_margins import MarginSums, NoisyMargins, margins_of
from brittle.orthant import orthant_probability

DRAWS = (20, 40, 80)
REFERENCE, BLOCK, REPLICATES = 2000, 400, 4
PILOT_POINTS, PILOT_DRAWS, PSEUDO_DRAWS = 100, 40, 15


@dataclass(frozen=True)
class Drawn:
    """Logits of the noisy copies of a task.

    Attributes:
        clean: the points.
        flips: the reference, `[B]`.
        logits: of antithetic pairs, `[REPLICATES + 1, B, pairs, 2, C]`; the last replicate serves the pilot.
    """

    clean: Clean
    flips: Tensor
    logits: Tensor


@dataclass(frozen=True)
class Pilot:
    """What the copies of some points say of the network.

    Attributes:
        bias: mean squared bias of the normal model.
        moments: variance of the normal model with one draw.
        smoothed: variance of the smoothed share with one draw.
        covariance: of the logits, `[C, C]`.
    """

    bias: float
    moments: float
    smoothed: float
    covariance: Tensor


def draw(task: Task) -> Drawn:
    """Send all copies through the network."""
    generator, shape = torch.Generator().manual_seed(54321), task.points.shape[1:]
    pairs, flips, kept = (REPLICATES + 1) * max(DRAWS) // 2, [], []
    with torch.no_grad():
        logits = task.network(task.points)
        for point, own in zip(task.points, logits.argmax(1), strict=True):
            noise = (torch.randn(BLOCK, *shape, generator=generator) * task.sigma for _ in range(REFERENCE // BLOCK))
            flips.append(sum(int((task.network(point + each).argmax(1) != own).sum()) for each in noise))
            half = torch.randn(pairs, *shape, generator=generator) * task.sigma
            copies = point + torch.stack((half, -half), dim=1).flatten(0, 1)
            kept.append(task.network(copies).double().view(REPLICATES + 1, -1, 2, logits.shape[1]))
    ids = tuple(str(row) for row in range(len(logits)))
    clean = Clean(task.points, ids, 0, logits, rows=64)
    return Drawn(clean, torch.tensor(flips).double() / REFERENCE, torch.stack(kept, dim=1))


def margins(clean: Clean, logits: Tensor) -> NoisyMargins:
    """Mean, covariance and shape of the margins over some pairs."""
    sums = MarginSums.start(clean, clean.competitors(), members=2)
    sums.add(logits)
    found = sums.read(logits.shape[1])
    assert found is not None
    return found


def nearest(clean: Clean, logits: Tensor) -> Tensor:
    """The nearest margin of each copy, `[B, draws]`."""
    predicted = clean.predicted[:, None, None]
    found = margins_of(logits, predicted).scatter(3, predicted.expand(*logits.shape[:3])[..., None], torch.inf)
    return found.amin(3).flatten(1)


def normal_model(found: NoisyMargins, covariance: Tensor | None = None) -> Tensor:
    """Flip probability of normal margins, `[B]`."""
    return orthant_probability(found.spread.mean, found.covariance if covariance is None else covariance).complement


def smoothed(nearest_margins: Tensor) -> Tensor:
    """The smoothed share of flips, `[B]`."""
    width = 0.5 * nearest_margins.std(1, keepdim=True) * nearest_margins.shape[1] ** -0.2
    return torch.special.ndtr(-nearest_margins / width.clamp_min(1e-300)).mean(1)


def by_the_point(found: NoisyMargins, model: Tensor, share: Tensor, draws: int) -> Tensor:
    """The mixture `(p_model + r p_share) / (1 + r)`, `r` from the shape of the margins and from `p_model - p_share`."""
    shape = (found.spread.skewness.square() - 1 + (found.spread.kurtosis.square() - 1) / 2).mean(1)
    apart = (model - share).square() / (model * (1 - model) / draws).clamp_min(1e-300) - 1
    ratio = (shape.clamp_min(0.0) + apart.clamp_min(0.0)) / 2
    return model + (share - model) * (ratio / (1 + ratio)).nan_to_num(nan=1.0)


def pilot_of(drawn: Drawn) -> Pilot:
    """The pilot, from the last replicate: bias and variances by halves of the draws, and the mean covariance."""
    rows = torch.linspace(0, len(drawn.flips) - 1, min(PILOT_POINTS, len(drawn.flips))).long()
    clean, logits = drawn.clean.only(rows), drawn.logits[-1][rows, : PILOT_DRAWS // 2]
    halves = logits[:, ::2], logits[:, 1::2]
    model, other = (normal_model(margins(clean, half)) for half in halves)
    share, rest = (smoothed(nearest(clean, half)) for half in halves)
    even, odd = logits.mean(2), (logits[:, :, 0] - logits[:, :, 1]) / 2
    even = even - even.mean(1, keepdim=True)
    covariance = odd.mT @ odd / logits.shape[1] + even.mT @ even / (logits.shape[1] - 1)
    return Pilot(
        bias=max(0.0, float(((model - rest) * (other - share)).mean())),
        moments=float((model - other).square().mean()) / 4 * PILOT_DRAWS,
        smoothed=float((share - rest).square().mean()) / 4 * PILOT_DRAWS,
        covariance=covariance.mean(0),
    )


def by_a_pilot(pilot: Pilot, clean: Clean, found: NoisyMargins, share: Tensor, draws: int) -> Tensor:
    """The mixture with one weight for all points, the covariance shrunk to the mean one."""
    classes = torch.eye(len(pilot.covariance), dtype=torch.float64)
    difference = classes[clean.predicted][:, None] - classes[clean.competitors()]
    pooled = difference @ pilot.covariance @ difference.mT
    model = normal_model(found, (draws * found.covariance + PSEUDO_DRAWS * pooled) / (draws + PSEUDO_DRAWS))
    loss = pilot.bias + pilot.moments / draws
    weight = loss / (loss + pilot.smoothed / draws)
    return model + weight * (share - model)


def estimates(drawn: Drawn, pilot: Pilot, replicate: int, draws: int) -> dict[str, Tensor]:
    """Every estimate of one replicate."""
    logits = drawn.logits[replicate, :, : draws // 2]
    found, near = margins(drawn.clean, logits), nearest(drawn.clean, logits)
    model, share = normal_model(found), smoothed(near)
    return {
        "monte_carlo": (near <= 0).double().mean(1),
        "moments": model,
        "smoothed": share,
        "by the point": by_the_point(found, model, share, draws),
        "by a pilot": by_a_pilot(pilot, drawn.clean, found, share, draws),
    }


def errors(drawn: Drawn, pilot: Pilot, draws: int) -> dict[str, float]:
    """The root mean square error of every estimator."""
    truth = drawn.flips
    own_error = float((truth * (1 - truth)).mean()) / (REFERENCE - 1)
    found = [estimates(drawn, pilot, replicate, draws) for replicate in range(REPLICATES)]

    def error(values: list[Tensor]) -> float:
        squares = float(torch.stack([(value - truth).square().mean() for value in values]).mean())
        return math.sqrt(max(squares - own_error, 0.0))

    named = {name: error([each[name] for each in found]) for name in found[0]}
    mixed = [[torch.lerp(each["moments"], each["smoothed"], weight / 20) for each in found] for weight in range(21)]
    return named | {"best weight": min(error(values) for values in mixed)}


def show(task: Task, against_better: dict[str, list[float]]) -> None:
    """Print one task, and add its ratios to the better of counting and the normal model to `against_better`."""
    drawn = draw(task)
    pilot = pilot_of(drawn)
    print(f"\n{task.name}, sigma {task.sigma:g}, {len(drawn.flips)} points, mean flip {float(drawn.flips.mean()):.3f}")
    for draws in DRAWS:
        found = errors(drawn, pilot, draws)
        counting = found.pop("monte_carlo")
        better = min(counting, found["moments"])
        ratios = "  ".join(f"{name} {error / counting:.2f}" for name, error in found.items())
        print(f"  {draws:3d} draws  monte_carlo {counting:.4f}  {ratios}", flush=True)
        for name, error in (found | {"monte_carlo": counting}).items():
            against_better.setdefault(name, []).append(error / better)


def summary(against_better: Mapping[str, list[float]]) -> str:
    """The largest ratio of every estimator to the better of counting and the normal model, and its geometric mean."""
    lines = ["", "to the better of monte_carlo and moments: largest, geometric mean"]
    for name, ratios in against_better.items():
        mean = math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))
        lines.append(f"  {name:12s} {max(ratios):.2f} {mean:.2f}")
    return "\n".join(lines)


def main() -> None:
    """Print every task, and what holds over all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("task", nargs="*", help="MODEL.pt2 DATA SIGMA, in threes")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    against_better: dict[str, list[float]] = {}
    for task in loaded(chosen.task, chosen.points) if chosen.task else trained(chosen.points):
        show(task, against_better)
    print(summary(against_better))


if __name__ == "__main__":
    main()
