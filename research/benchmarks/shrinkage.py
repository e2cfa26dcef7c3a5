"""Combinations of the count of the noisy copies with the normal model of their margins, at equal numbers of draws.

    python research/benchmarks/shrinkage.py [--points 200] [--tuned | MODEL.pt2 DATA SIGMA ...]

Without your own networks, four are trained on the handwritten digits of scikit-learn that took part in no choice of
`shrinkage`: two perceptrons, a convolutional network and one with attention. `--tuned` takes the five of
`research/benchmarks/estimators.py` instead, which did. The reference is plain counting over separate draws, 2,000 per
point; its own part of a mean square error, `p (1 - p) / (n - 1)`, is subtracted. Printed for each number of draws: the
root mean square error of `monte_carlo` over points and replicates, and that of the others as a ratio to it:

- `moments`: the normal model;
- `smoothed`: `mean_j Phi(-g(x + e_j) / h)`, `g` the nearest margin, `h = sd(g) n^(-1/5) / 2`;
- `shrinkage`: a mixture of the last two, with a weight from the fit of a point's own copies to the normal model;
- `by a pilot`: one weight for all points, from copies of others, and the covariance shrunk to theirs;
- `best weight`: the best weight for all points, found with the reference, which no pilot with one weight can beat.

The last lines hold each estimator's largest ratio to the better of `monte_carlo` and `moments`, and its geometric mean.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from estimators import TRAINED, Task, loaded, trained
from torch import Tensor, nn

from brittle.measure import Sampled
from brittle.measure.forward import Clean
from brittle.measure.sample_sums import SampleSums
from brittle.orthant import orthant_probability
from brittle.scores import Moments, MonteCarlo, Shrinkage
from brittle.scores.shrinkage import smoothed_share

DRAWS = (20, 40, 80)
REFERENCE, BLOCK, REPLICATES = 2000, 400, 4
PILOT_POINTS, PILOT_DRAWS, PSEUDO_DRAWS = 100, 40, 15


class Patches(nn.Module):
    """Attention among the sixteen patches of a digit."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(1, 24, 2, stride=2)
        self.attend = nn.MultiheadAttention(24, 2, batch_first=True)
        self.head = nn.Sequential(nn.Linear(24 * 16, 64), nn.GELU(), nn.Linear(64, 10))

    def forward(self, x: Tensor) -> Tensor:
        patches = self.embed(x).flatten(2).mT
        return self.head((patches + self.attend(patches, patches, patches, need_weights=False)[0]).flatten(1))


HELD_OUT = {
    "perceptron, 1 layer of 512": lambda: nn.Sequential(
        nn.Flatten(), nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 10)
    ),
    "perceptron, 3 layers of 64, tanh": lambda: nn.Sequential(
        nn.Flatten(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(),
        nn.Linear(64, 10),
    ),
    "convolutional, average pooling": lambda: nn.Sequential(
        nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 24, 3), nn.ReLU(), nn.AvgPool2d(3), nn.Flatten(),
        nn.Linear(96, 10),
    ),
    "attention": Patches,
}  # fmt: skip


@dataclass(frozen=True)
class Drawn:
    """Logits of the noisy copies of a task.

    Attributes:
        clean: the points.
        flips: reference flip probabilities, `[B]`.
        logits: logits of `max(DRAWS)` antithetic pairs, `[REPLICATES + 1, B, pairs, 2, C]`; the last replicate is the
            pilot's.
    """

    clean: Clean
    flips: Tensor
    logits: Tensor


@dataclass(frozen=True)
class Pilot:
    """Properties of the network, estimated from the copies of some points.

    Attributes:
        bias: mean squared bias of the normal model.
        moments: variance of the normal model with one draw.
        smoothed: variance of the smoothed share with one draw.
        covariance: covariance of the logits, `[C, C]`.
    """

    bias: float
    moments: float
    smoothed: float
    covariance: Tensor


def draw(task: Task) -> Drawn:
    """Send all copies through the network."""
    generator, shape = torch.Generator().manual_seed(54321), task.points.shape[1:]
    pairs, flips, outputs = (REPLICATES + 1) * max(DRAWS), [], []
    with torch.no_grad():
        logits = task.network(task.points)
        for point, predicted in zip(task.points, logits.argmax(1), strict=True):
            noise = (torch.randn(BLOCK, *shape, generator=generator) * task.sigma for _ in range(REFERENCE // BLOCK))
            flips.append(sum(int((task.network(point + block).argmax(1) != predicted).sum()) for block in noise))
            half = torch.randn(pairs, *shape, generator=generator) * task.sigma
            copies = point + torch.stack((half, -half), dim=1).flatten(0, 1)
            outputs.append(task.network(copies).double().view(REPLICATES + 1, -1, 2, logits.shape[1]))
    ids = tuple(str(row) for row in range(len(logits)))
    clean = Clean(task.points, ids, 0, logits, rows=64)
    return Drawn(clean, torch.tensor(flips).double() / REFERENCE, torch.stack(outputs, dim=1))


def sample(clean: Clean, logits: Tensor) -> Sampled:
    """Turn pairs into the sample that the package reads."""
    sums = SampleSums.start(clean, logits.shape[2])
    sums.add(logits)
    return sums.read()


def normal_model(sampled: Sampled, pooled: Tensor | float = 0.0, pseudo: int = 0) -> Tensor:
    """Return the flip probability of normal margins, `[B]`, their covariance shrunk to `pooled` by pseudo draws."""
    assert sampled.margins is not None
    draws = 2 * sampled.votes.units[:, None, None]
    covariance = (draws * sampled.margins.covariance + pseudo * pooled) / (draws + pseudo)
    return orthant_probability(sampled.margins.spread.mean, covariance).complement


def pilot_of(drawn: Drawn) -> Pilot:
    """Estimate the pilot from the last replicate: bias and variances by halves of the draws, and mean covariance."""
    rows = torch.linspace(0, len(drawn.flips) - 1, min(PILOT_POINTS, len(drawn.flips))).long()
    clean, logits = drawn.clean.only(rows), drawn.logits[-1][rows, : PILOT_DRAWS // 2]
    halves = logits[:, ::2], logits[:, 1::2]
    samples = [sample(clean, half) for half in halves]
    model, second_model = (normal_model(half) for half in samples)
    share, second_share = (smoothed_share(half) for half in samples)
    even, odd = logits.mean(2), (logits[:, :, 0] - logits[:, :, 1]) / 2
    even = even - even.mean(1, keepdim=True)
    covariance = odd.mT @ odd / logits.shape[1] + even.mT @ even / (logits.shape[1] - 1)
    return Pilot(
        bias=max(0.0, float(((model - second_share) * (second_model - share)).mean())),
        moments=float((model - second_model).square().mean()) / 4 * PILOT_DRAWS,
        smoothed=float((share - second_share).square().mean()) / 4 * PILOT_DRAWS,
        covariance=covariance.mean(0),
    )


def by_a_pilot(pilot: Pilot, clean: Clean, sampled: Sampled) -> Tensor:
    """Return the mixture with one weight for all points, with the covariance shrunk to the mean one."""
    classes = torch.eye(len(pilot.covariance), dtype=torch.float64)
    difference = classes[clean.predicted][:, None] - classes[clean.competitors()]
    pooled = difference @ pilot.covariance @ difference.mT
    model, share = normal_model(sampled, pooled, PSEUDO_DRAWS), smoothed_share(sampled)
    draws = sampled.draws.double()
    loss = pilot.bias + pilot.moments / draws
    return torch.lerp(model, share, loss / (loss + pilot.smoothed / draws))


def estimates(drawn: Drawn, pilot: Pilot, replicate: int, draws: int) -> dict[str, Tensor]:
    """Return every estimate of one replicate."""
    sampled = sample(drawn.clean, drawn.logits[replicate, :, : draws // 2])
    scores = [
        MonteCarlo(1.0, draws=draws, limit=None), Moments(1.0, draws=draws), Shrinkage(1.0, draws=draws, limit=None)
    ]  # fmt: skip
    values = {score.name: score.estimate({score.needs[0]: sampled}, 0.99).value for score in scores}
    return values | {"smoothed": smoothed_share(sampled), "by a pilot": by_a_pilot(pilot, drawn.clean, sampled)}


def error_of(drawn: Drawn, values: list[Tensor]) -> float:
    """Return the root mean square error over points and replicates, without that of the reference."""
    truth = drawn.flips
    reference_error = float((truth * (1 - truth)).mean()) / (REFERENCE - 1)
    squares = float(torch.stack([(value - truth).square().mean() for value in values]).mean())
    return math.sqrt(max(squares - reference_error, 0.0))


def errors(drawn: Drawn, pilot: Pilot, draws: int) -> dict[str, float]:
    """Return the root mean square error of every estimator."""
    replicates = [estimates(drawn, pilot, replicate, draws) for replicate in range(REPLICATES)]
    errors_by_name = {name: error_of(drawn, [values[name] for values in replicates]) for name in replicates[0]}
    weighted = [
        [torch.lerp(values["moments"], values["smoothed"], weight / 20) for values in replicates]
        for weight in range(21)
    ]
    return errors_by_name | {"best weight": min(error_of(drawn, values) for values in weighted)}


def show(task: Task, against_better: dict[str, list[float]]) -> None:
    """Print one task, and add its ratios to the better of counting and the normal model to `against_better`."""
    drawn = draw(task)
    pilot = pilot_of(drawn)
    print(f"\n{task.name}, sigma {task.sigma:g}, {len(drawn.flips)} points, mean flip {float(drawn.flips.mean()):.3f}")
    for draws in DRAWS:
        errors_by_name = errors(drawn, pilot, draws)
        counting = errors_by_name.pop("monte_carlo")
        better = min(counting, errors_by_name["moments"])
        ratios = "  ".join(f"{name} {error / counting:.2f}" for name, error in errors_by_name.items())
        print(f"  {draws:3d} draws  monte_carlo {counting:.4f}  {ratios}", flush=True)
        for name, error in (errors_by_name | {"monte_carlo": counting}).items():
            against_better.setdefault(name, []).append(error / better)


def summary(against_better: Mapping[str, list[float]]) -> str:
    """Format the largest and mean ratio of every estimator to the better of counting and the normal model."""
    lines = ["", "to the better of monte_carlo and moments: largest, geometric mean"]
    for name, ratios in against_better.items():
        mean = math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))
        lines.append(f"  {name:12s} {max(ratios):.2f} {mean:.2f}")
    return "\n".join(lines)


def main() -> None:
    """Print every task, and the summary over all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("task", nargs="*", help="MODEL.pt2 DATA SIGMA, in threes")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    against_better: dict[str, list[float]] = {}
    networks = TRAINED if chosen.tuned else HELD_OUT
    for task in loaded(chosen.task, chosen.points) if chosen.task else trained(chosen.points, networks):
        show(task, against_better)
    print(summary(against_better))


if __name__ == "__main__":
    main()
