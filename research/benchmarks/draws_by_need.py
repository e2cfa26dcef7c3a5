"""What draws by need are worth: `shrinkage` with and without `adaptive`, and counting, at equal passes in the mean.

    python research/benchmarks/draws_by_need.py [--points 500] [--reference 20000] [MODEL.pt2 DATA SIGMA ...]

MODEL.pt2, DATA and SIGMA come in threes; without any, the script trains six networks on the handwritten digits of
scikit-learn (four perceptrons, one with attention, a transformer), which took part in no choice of `shrinkage`, and
looks at three sigmas each. The reference is plain counting over draws of its own, without code of the package; what its
own error adds to a mean square is taken off, `p (1 - p) / (n - 1)`. Eight replicates share no noise. Printed for at
most 48, 96 and 200 draws a point:

- the draws in the mean, and the root mean square errors of `shrinkage` with as many for every point, and by need, as
  shares of that of counting as many; the last also as a share of the better of counting and `moments`;
- how far the mean over points and replicates is off, by need and with as many draws for every point;
- of 99% intervals by need and with as many draws for every point: which share decides at 0.9, and their mean width;
- the same of the intervals of `moments` with as many draws for every point.

The last lines hold the medians over networks and sigmas, and the largest share of the better one.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from estimators import Task, loaded
from torch import Tensor, nn

from brittle.estimate import Estimate
from brittle.measure import Sample, SampledInStages
from brittle.measure.forward import Clean
from brittle.measure.rows import pick
from brittle.measure.sample_sums import Sampled, SampleSums
from brittle.measure.sampling import needs_more
from brittle.noise import Gaussian
from brittle.scores import Moments, MonteCarlo, Shrinkage

BUDGETS = (48, 96, 200)
SIGMAS = (0.05, 0.15, 0.3)
REPLICATES, BLOCK, CONFIDENCE, LIMIT = 8, 250, 0.99, 0.9
NOISE = Gaussian(1.0)


class Patches(nn.Module):
    """Attention among the sixteen patches of a digit."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(1, 16, 2, stride=2)
        self.attend = nn.MultiheadAttention(16, 2, batch_first=True)
        self.head = nn.Sequential(nn.Linear(256, 48), nn.ReLU(), nn.Linear(48, 10))

    def forward(self, x: Tensor) -> Tensor:
        patches = self.embed(x).flatten(2).mT
        return self.head((patches + self.attend(patches, patches, patches, need_weights=False)[0]).flatten(1))


class Transformer(nn.Module):
    """Two blocks over the sixteen patches of a digit."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(1, 32, 2, stride=2)
        self.place = nn.Parameter(0.02 * torch.randn(16, 32))
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True, norm_first=True, activation="gelu")
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.embed(x).flatten(2).mT + self.place).mean(dim=1))


def perceptron(activation: type[nn.Module], *widths: int) -> nn.Module:
    """Dense layers of these widths between the 64 pixels and the ten classes."""
    layers: list[nn.Module] = [nn.Flatten()]
    for inside, outside in zip((64, *widths), (*widths, 10), strict=True):
        layers += [nn.Linear(inside, outside), activation()]
    return nn.Sequential(*layers[:-1])


NETWORKS: Mapping[str, Callable[[], nn.Module]] = {
    "perceptron, 1 layer of 256": lambda: perceptron(nn.ReLU, 256),
    "perceptron, 4 layers of 128": lambda: perceptron(nn.ReLU, 128, 128, 128, 128),
    "perceptron, 2 layers of 128, GELU": lambda: perceptron(nn.GELU, 128, 128),
    "perceptron, 3 layers of 96, sigmoid": lambda: perceptron(nn.Sigmoid, 96, 96, 96),
    "attention, one layer": Patches,
    "transformer, two blocks": Transformer,
}


def trained(points: int) -> Iterator[Task]:
    """The networks, each with digits that it was not trained on, at every sigma."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(99))
    x = torch.from_numpy(images).float().view(-1, 1, 8, 8)[order] / 16
    y, cut = torch.from_numpy(labels)[order], len(images) - 500
    for name, make in NETWORKS.items():
        torch.manual_seed(1234)
        network = make()
        optimiser = torch.optim.Adam(network.parameters(), lr=3e-3)
        for _ in range(150 if "sigmoid" in name else 40):
            for rows in torch.randperm(cut).split(64):
                optimiser.zero_grad()
                nn.functional.cross_entropy(network(x[rows]), y[rows]).backward()
                optimiser.step()
        for sigma in SIGMAS:
            yield Task(name, network.eval(), x[cut : cut + points], sigma)


@dataclass(frozen=True)
class Drawn:
    """Noisy copies of the points of a task.

    Attributes:
        clean: every point `REPLICATES` times, one replicate after another.
        flips: the reference of each of them.
        own: what the reference's own error adds to a mean square.
        logits: of antithetic pairs, `[REPLICATES * B, pairs, 2, C]`.
    """

    clean: Clean
    flips: Tensor
    own: float
    logits: Tensor


@torch.no_grad()
def draw(task: Task, reference: int) -> Drawn:
    """Send all copies through the network."""
    generator, shape = torch.Generator().manual_seed(2026), task.points.shape[1:]
    logits, flips, kept = task.network(task.points), [], []
    for point, own in zip(task.points, logits.argmax(1), strict=True):
        noise = (torch.randn(BLOCK, *shape, generator=generator) * task.sigma for _ in range(reference // BLOCK))
        flips.append(sum(int((task.network(point + each).argmax(1) != own).sum()) for each in noise) / reference)
        for _ in range(REPLICATES):
            half = torch.randn(max(BUDGETS) // 2, *shape, generator=generator) * task.sigma
            copies = point + torch.stack((half, -half), dim=1).flatten(0, 1)
            kept.append(task.network(copies).view(-1, 2, logits.shape[1]))
    share = torch.tensor(flips, dtype=torch.float64)
    every = torch.stack(kept).unflatten(0, (len(share), REPLICATES)).transpose(0, 1).flatten(0, 1)
    ids = tuple(map(str, range(len(every))))
    clean = Clean(torch.zeros(len(every), 1), ids, 0, logits.repeat(REPLICATES, 1), rows=64)
    return Drawn(clean, share.repeat(REPLICATES), float((share * (1 - share)).mean()) / (reference - 1), every)


def sampled(drawn: Drawn, draws: int, members: int = 2) -> Sampled:
    """What the package reads of the first copies: pairs, or the first members of pairs alone."""
    sums = SampleSums.start(drawn.clean, members)
    sums.add(drawn.logits[:, : draws // members, :members].double())
    return sums.read(draws // members)


def by_need(drawn: Drawn, most: int) -> tuple[Estimate, float]:
    """`shrinkage` in two stages of at most so many draws, and the draws in the mean."""
    score = Shrinkage(noise=NOISE, draws=most)
    stage = Sample(NOISE, most, adaptive=True).first_stage
    first, whole = sampled(drawn, stage, members=1), sampled(drawn, most)
    more = needs_more(first)
    rows = [(some.nonzero().flatten(), part) for some, part in ((~more, first), (more, whole)) if some.any()]
    copies = torch.where(more, most, stage)
    found = SampledInStages(tuple((some, pick(part, some)) for some, part in rows), copies + 1)
    return score.estimate({score.needs[0]: found}, CONFIDENCE), float(copies.double().mean())


@dataclass(frozen=True)
class Line:
    """What is printed of one budget; shares of the error of counting, unless said otherwise."""

    draws: int
    same: float
    need: float
    of_better: float
    said: str


def compare(drawn: Drawn, most: int) -> Line:
    """Draws by need beside as many for every point."""
    need, mean = by_need(drawn, most)
    draws = 2 * round(mean / 2)
    alike = sampled(drawn, draws)
    scores = (Shrinkage(noise=NOISE, draws=draws, adaptive=False), Moments(noise=NOISE, draws=draws))
    same, model = (score.estimate({score.needs[0]: alike}, CONFIDENCE) for score in scores)
    plain = MonteCarlo(noise=NOISE, draws=draws)
    counting = plain.estimate({plain.needs[0]: alike}, CONFIDENCE)
    errors = [_error(drawn, each.value) for each in (counting, same, need, model)]
    said = (
        f"off by {_off(drawn, need)}, {_off(drawn, same)}; intervals by need {_intervals(need)}, "
        f"with as many for every point {_intervals(same)}, of moments {_intervals(model)}"
    )
    return Line(draws, errors[1] / errors[0], errors[2] / errors[0], errors[2] / min(errors[0], errors[3]), said)


def _error(drawn: Drawn, value: Tensor) -> float:
    return math.sqrt(max(float((value - drawn.flips).square().mean()) - drawn.own, 0.0))


def _off(drawn: Drawn, found: Estimate) -> str:
    return f"{float((found.value - drawn.flips).mean()):+.4f}"


def _intervals(found: Estimate) -> str:
    decided = (found.high <= 1 - LIMIT) | (found.low >= 1 - LIMIT)
    return f"{float(decided.double().mean()):.2f} of width {float((found.high - found.low).mean()):.3f}"


def main() -> None:
    """Compare, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=500)
    parser.add_argument("--reference", type=int, default=20_000)
    parser.add_argument("networks", nargs="*", metavar="MODEL.pt2 DATA SIGMA")
    given = parser.parse_args()
    torch.set_num_threads(1)
    lines: dict[int, list[Line]] = {most: [] for most in BUDGETS}
    for task in loaded(given.networks, given.points) if given.networks else trained(given.points):
        drawn = draw(task, given.reference)
        print(f"\n{task.name}, sigma {task.sigma:g}, {len(task.points)} points, {float(drawn.flips.mean()):.3f} flip")
        for most in BUDGETS:
            line = compare(drawn, most)
            lines[most].append(line)
            print(
                f"  {line.draws:3d} in the mean, {most} at most: shrinkage {line.same:.2f}, by need {line.need:.2f}, "
                f"of the better {line.of_better:.2f}; {line.said}",
                flush=True,
            )
    for most, found in lines.items():
        median = statistics.median(line.need for line in found)
        print(f"\n{most} at most: median {median:.2f}, of the better at most {max(one.of_better for one in found):.2f}")


if __name__ == "__main__":
    main()
