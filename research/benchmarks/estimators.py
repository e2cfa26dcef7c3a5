"""Errors of the estimators of the flip probability at equal numbers of draws, on networks without part in their tuning.

    python research/benchmarks/estimators.py [--points 100] [MODEL.pt2 DATA SIGMA ...]

MODEL.pt2, DATA and SIGMA come in threes; without any, the script trains five networks on the handwritten digits of
scikit-learn (two perceptrons, a convolutional network, one with smooth units, a transformer), at two sigmas each. The
reference is plain counting over draws of its own, 3,000 a point, without code of the package. Printed for each number
of draws: mean absolute errors, those of the others as ratios to `monte_carlo`; of the numbers that the reference's own
99.9% interval holds, how many are called `contradicted`; and the intervals with status `ok` and evidence `counted` or
`modelled` that miss that interval.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from scipy import stats
from torch import Tensor, nn

import brittle
from brittle.data import open_points
from brittle.estimate import Estimate, Evidence, Status
from brittle.extensions.mmse import Form
from brittle.measure import take
from brittle.measure.forward import look
from brittle.run import plan
from brittle.scores import MMSE, Moments, MonteCarlo, Score

DRAWS = (20, 50, 100, 200)
GRADIENT_DRAWS = 20
FORMS: tuple[Form, ...] = ("quadratic", "linear")
REFERENCE, BLOCK = 3000, 250
SIGMAS = (0.1, 0.25)


@dataclass(frozen=True)
class Task:
    """A network, points and a noise level."""

    name: str
    network: nn.Module
    points: Tensor
    sigma: float


class Tokens(nn.Module):
    """A transformer of one block over the eight rows of a digit."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(8, 32)
        self.place = nn.Parameter(0.1 * torch.randn(8, 32))
        self.block = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.head = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.block(self.embed(x[:, 0]) + self.place).mean(dim=1))


def _dense(*widths: int) -> nn.Module:
    layers: list[nn.Module] = [nn.Flatten()]
    for inside, outside in zip((64, *widths), (*widths, 10), strict=True):
        layers += [nn.Linear(inside, outside), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _convolutional(activation: type[nn.Module]) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), activation(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), activation(),
        nn.Flatten(), nn.Linear(512, 10),
    )  # fmt: skip


TRAINED: Mapping[str, Any] = {
    "perceptron, 2 layers of 256": lambda: _dense(256, 256),
    "perceptron, 4 layers of 128": lambda: _dense(128, 128, 128, 128),
    "convolutional": lambda: _convolutional(nn.ReLU),
    "convolutional, GELU": lambda: _convolutional(nn.GELU),
    "transformer": Tokens,
}


def trained(points: int, networks: Mapping[str, Any] = TRAINED, seed: int = 0) -> Iterator[Task]:
    """Train networks on three quarters of the digits from `seed`, and return points of the last quarter."""
    from sklearn.datasets import load_digits

    digits: Any = load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    y = torch.tensor(digits.target)
    cut = len(x) * 3 // 4
    for name, make in networks.items():
        torch.manual_seed(seed)
        network = make()
        optimiser = torch.optim.Adam(network.parameters(), lr=2e-3)
        for _ in range(40):
            for rows in torch.randperm(cut).split(64):
                optimiser.zero_grad()
                nn.functional.cross_entropy(network(x[rows]), y[rows]).backward()
                optimiser.step()
        network.eval()
        with torch.no_grad():
            accuracy = float((network(x[cut:]).argmax(1) == y[cut:]).double().mean())
        for sigma in SIGMAS:
            yield Task(f"{name} ({accuracy:.1%} right)", network, x[cut : cut + points], sigma)


def loaded(arguments: list[str], points: int) -> Iterator[Task]:
    """Load networks and data from files."""
    for model, data, sigma in zip(arguments[::3], arguments[1::3], arguments[2::3], strict=True):
        opened = open_points(data, split="test") if data.rstrip("/").endswith("cifar10") else open_points(data)
        batch = next(iter(opened.batches(points)))
        yield Task(model, torch.export.load(model).module(), batch.inputs, float(sigma))


def reference(task: Task) -> tuple[Tensor, Tensor, Tensor]:
    """Return flip probabilities by plain counting, and the ends of their exact 99.9% intervals."""
    generator = torch.Generator().manual_seed(12345)
    flips = torch.zeros(len(task.points), dtype=torch.float64)
    with torch.no_grad():
        for row, point in enumerate(task.points):
            predicted = task.network(point[None]).argmax(1)
            for _ in range(REFERENCE // BLOCK):
                noise = torch.randn(BLOCK, *point.shape, generator=generator) * task.sigma
                flips[row] += int((task.network(point + noise).argmax(1) != predicted).sum())
    low = torch.tensor(stats.beta.ppf(5e-4, flips, REFERENCE - flips + 1)).nan_to_num(nan=0.0)
    high = torch.tensor(stats.beta.ppf(1 - 5e-4, flips + 1, REFERENCE - flips)).nan_to_num(nan=1.0)
    return flips / REFERENCE, low, high


def estimates(task: Task) -> dict[Score, Estimate]:
    """Run the estimators of the package at every number of draws."""
    scores: list[Score] = [kind(task.sigma, draws=draws) for draws in DRAWS for kind in (MonteCarlo, Moments)]
    for form in FORMS:
        scores += [MMSE(task.sigma, draws=GRADIENT_DRAWS, form=form)]
    classifier = brittle.Classifier(task.network)
    parts: list[dict[Score, Estimate]] = []
    for start in range(0, len(task.points), 32):
        inputs = task.points[start : start + 32]
        clean = look(classifier, inputs, [str(start + row) for row in range(len(inputs))], seed=0)
        measured = take(plan(scores), classifier, clean)
        parts.append({score: score.estimate(measured, 0.99) for score in scores})
    return {score: _together([part[score] for part in parts]) for score in scores}


def _together(parts: list[Estimate]) -> Estimate:
    names = ("value", "low", "high", "status", "passes", "evidence")
    joined: dict[str, Any] = {name: torch.cat([getattr(part, name) for part in parts]) for name in names}
    return Estimate(**joined)


def _name(score: Score) -> str:
    """Return the name of the score, and its form where that is not the default."""
    return " ".join((score.name, str(score.parameters.get("form", "")))).rstrip()


def show(task: Task, totals: dict[str, list[int]]) -> None:
    """Print one task, and add its counts of statuses to `totals`."""
    truth, low, high = reference(task)
    estimates_by_score = estimates(task)
    print(f"\n{task.name}, sigma {task.sigma:g}, {len(truth)} points, mean flip probability {float(truth.mean()):.3f}")
    for score, estimate in estimates_by_score.items():
        valued = estimate.value.isfinite()
        error = float((estimate.value - truth).abs()[valued].mean())
        draws = score.parameters["draws"]
        same = next(
            candidate
            for candidate in estimates_by_score
            if candidate.name == "monte_carlo" and candidate.parameters["draws"] == draws
        )
        ratio = error / float((estimates_by_score[same].value - truth).abs().mean())
        correct = valued & (estimate.value >= low) & (estimate.value <= high)
        contradicted = correct & (estimate.status == int(Status.CONTRADICTED))
        assert estimate.evidence is not None
        held = (estimate.status == int(Status.OK)) & (estimate.evidence != int(Evidence.EXTRAPOLATED))
        missed = held & ((estimate.low > high) | (estimate.high < low))
        passes = int(estimate.passes.double().mean())
        print(
            f"  {_name(score):18s} {draws:4d} draws {passes:5d} passes  error {error:.4f}, {ratio:.2f} of "
            f"monte_carlo's  contradicted {int(contradicted.sum())} of {int(correct.sum())} right, misses "
            f"{int(missed.sum())} of {int(held.sum())}"
        )
        total = totals.setdefault(_name(score), [0, 0, 0, 0])
        for place, number in enumerate((contradicted, correct, missed, held)):
            total[place] += int(number.sum())


def main() -> None:
    """Print every task, and the sums over them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("task", nargs="*", help="MODEL.pt2 DATA SIGMA, in threes")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    totals: dict[str, list[int]] = {}
    for task in loaded(chosen.task, chosen.points) if chosen.task else trained(chosen.points):
        show(task, totals)
    print("\nover all of them:")
    for name, (contradicted, correct, missed, held) in totals.items():
        print(f"  {name:18s} contradicted {contradicted} of {correct} right numbers, misses {missed} of {held}")


if __name__ == "__main__":
    main()
