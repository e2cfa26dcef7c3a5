"""What `brittle.score` costs beside the passes of the network: its time by that of a bare loop over the same copies.

    python research/benchmarks/overhead.py [--threads 2] [--rounds 3] [--only digits ...] [--profile monte_carlo]

The bare loop draws normal noise for every copy, sends it through the network and counts the flips; its batch is the
best of `BATCHES`, tried once for each network. Both give every point `DRAWS` copies; the default, which counts copies
of each point until it is decided, is timed against a loop of as many copies in the mean. The time of `brittle.score` is
that of the whole call: doctor, standing checks and table. Times are CPU times, in which other loads hardly count.
Weights are random, of known shapes; the trees are fitted to labels of a noisy rule. `--profile` prints the functions
that take most of one score.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from networks import resnet18
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from timing import interleaved, print_table
from torch import Tensor, nn

import brittle
from brittle.scores import Moments, MonteCarlo, Shrinkage, Taylor

DRAWS, SIGMA = 100, 0.1
BATCHES = (64, 256, 1024, 4096, 16384)
"""Copies in one pass of the bare loop, of which the fastest is taken."""

SCORES = {
    "default": Shrinkage(SIGMA),
    "monte_carlo": MonteCarlo(SIGMA, draws=DRAWS, limit=None),
    "shrinkage": Shrinkage(SIGMA, draws=DRAWS, limit=None),
    "moments": Moments(SIGMA, draws=DRAWS),
    "taylor": Taylor(SIGMA),
}

SAMPLED = ("default", "monte_carlo", "shrinkage", "moments")
"""Those that need no gradients."""


@dataclass(frozen=True)
class Case:
    """A model of some shape.

    Attributes:
        model: what is scored.
        forward: inputs to outputs of a batch, without gradients.
        shape: of one input.
        points: how many are scored.
        scores: names of those that it can be scored by.
    """

    model: Any
    forward: Callable[[Tensor], Tensor]
    shape: tuple[int, ...]
    points: int
    scores: tuple[str, ...] = tuple(SCORES)

    @property
    def inputs(self) -> Tensor:
        """The points; the same every time."""
        return torch.rand(self.points, *self.shape, generator=torch.Generator().manual_seed(1))


def network(points: int, shape: tuple[int, ...], *layers: nn.Module) -> Case:
    """Make the case of a PyTorch network."""
    model = nn.Sequential(*layers).eval()
    return Case(brittle.Classifier(model, bounds=(0, 1)), model, shape, points)


def trees(kind: Any, points: int) -> Case:
    """Trees of scikit-learn on 30 features, two classes."""
    chance = np.random.default_rng(0)
    x = chance.random((1000, 30), dtype=np.float32)
    model = kind.fit(x, (x[:, :3].sum(1) + chance.normal(size=1000) * 0.2 > 1.5).astype(int))
    forward = lambda rows: torch.from_numpy(model.predict_proba(rows.numpy()))  # noqa: E731
    classifier = brittle.Classifier(model.predict_proba, outputs="probs", arrays="numpy", bounds=(0, 1))
    return Case(classifier, forward, (30,), points, SAMPLED)


class Attention(nn.Module):
    """A vision transformer of 4 blocks of width 96 on patches of 4 x 4, for 3x32x32 inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.places = nn.Conv2d(3, 96, 4, 4), nn.Parameter(torch.randn(64, 96) * 0.02)
        block = nn.TransformerEncoderLayer(96, 4, 192, 0.0, batch_first=True, norm_first=True)
        self.blocks, self.head = nn.TransformerEncoder(block, 4, enable_nested_tensor=False), nn.Linear(96, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.patches(x).flatten(2).mT + self.places).mean(1))


def perceptron(points: int, *widths: int) -> Case:
    """Linear layers with ReLU between."""
    layers = [each for one in pairwise(widths) for each in (nn.Linear(*one), nn.ReLU())]
    return network(points, widths[:1], *layers[:-1])


def small_cnn() -> Case:
    """Two convolutions on 28 x 28 pixels."""
    convolutions = (nn.Conv2d(1, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU())
    return network(500, (1, 28, 28), *convolutions, nn.Flatten(), nn.Linear(32 * 49, 10))


CASES: dict[str, Callable[[], Case]] = {
    "digits": lambda: perceptron(2000, 64, 32, 10),
    "mnist": lambda: perceptron(2000, 784, 256, 256, 10),
    "small CNN": small_cnn,
    "ResNet-18": lambda: network(20, (3, 32, 32), resnet18(10)),
    "ViT-tiny": lambda: network(100, (3, 32, 32), Attention()),
    "forest": lambda: trees(RandomForestClassifier(100, random_state=0), 500),
    "boosting": lambda: trees(HistGradientBoostingClassifier(random_state=0), 500),
}


def bare(case: Case, x: Tensor, batch: int, draws: int = DRAWS) -> Tensor:
    """Flips of each point, by nothing but copies and passes; at least one point and one copy a pass."""
    points, flips = max(1, batch // draws), torch.zeros(len(x), dtype=torch.int64)
    with torch.no_grad():
        base = torch.cat([case.forward(part).argmax(1) for part in x.split(batch)])
        for first in range(0, len(x), points):
            some = slice(first, first + points)
            for done in range(0, draws, batch):
                copies = min(batch, draws - done)
                rows = x[some].repeat_interleave(copies, 0)
                labels = case.forward(rows + SIGMA * torch.randn_like(rows)).argmax(1).view(-1, copies)
                flips[some] += (labels != base[some, None]).sum(1)
    return flips


def call(case: Case, x: Tensor, score: Any) -> object:
    """Make the whole call, as a user does."""
    return brittle.score(case.model, x, [score])


def main() -> None:
    """All cases."""
    parser = argparse.ArgumentParser(description="Time of brittle.score by that of a bare loop.")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--profile", choices=list(SCORES))
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    print(f"{given.threads} threads, torch {torch.__version__}, {DRAWS} draws")
    rows = []
    for name in given.only:
        case = CASES[name]()
        x = case.inputs
        if given.profile:
            print(name)
            call(case, x, SCORES[given.profile])
            profile = cProfile.Profile(time.process_time)
            profile.runcall(call, case, x, SCORES[given.profile])
            pstats.Stats(profile).sort_stats("tottime").print_stats(12)
            continue
        loops = [partial(bare, case, x, batch) for batch in BATCHES]
        best = loops[int(np.argmin(interleaved(loops, 1, time.process_time)))]
        calls = [partial(call, case, x, SCORES[score]) for score in case.scores]
        copies = round(float((brittle.score(case.model, x, [SCORES["default"]]).columns[0].passes - 1).mean()))
        same = partial(bare, case, x, best.args[2], copies)
        floor, of_default, *ours = interleaved([best, same, *calls], given.rounds, time.process_time)
        floors = {score: of_default if score == "default" else floor for score in case.scores}
        ratios = {score: time / floors[score] for score, time in zip(case.scores, ours, strict=True)}
        rows.append(
            [name, len(x), best.args[2], copies, f"{floor:.3f} s", *(ratios.get(score, "") for score in SCORES)]
        )
    if rows:
        print_table(["network", "points", "best batch", "copies", "bare loop", *SCORES], rows)


if __name__ == "__main__":
    main()
