"""Cost of a run: time by size of network and number of points, disk per point.

    python research/benchmarks/costs.py

Scores a few points of each network on one thread, and multiplies; the disk is that of the run folders. Prints seconds
a point of three choices of scores, then processor time of `shrinkage` by number of points, and its price at
`DOLLARS` an hour of a processor.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import torch
from networks import resnet18
from timing import print_table
from torch import nn

import brittle
from brittle.scores import InputMargin, LogitMargin, Score, Shrinkage, Softmax
from brittle.text import duration

DOLLARS = 0.05
"""Price of an hour of one processor, of machines without guarantee."""

POINTS = (1_000, 50_000, 1_000_000, 1_000_000_000)

CHOICES: dict[str, list[Score]] = {
    "one pass": [Softmax(), LogitMargin()],
    "shrinkage": [Shrinkage(0.05, limit=None)],
    "input_margin fast": [InputMargin(effort="fast")],
}


def networks() -> dict[str, tuple[nn.Module, tuple[int, ...], int]]:
    """Return networks of four sizes, the shape of their inputs, and the number of scored points."""
    torch.manual_seed(0)
    perceptron = nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    convolutions = nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU()
    cnn = nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(32 * 64, 10))
    return {
        "perceptron, 28 x 28": (perceptron, (1, 28, 28), 500),
        "small CNN, 32 x 32": (cnn, (3, 32, 32), 200),
        "ResNet-18, 32 x 32": (resnet18(10), (3, 32, 32), 4),
        "ResNet-18, 224 x 224": (resnet18(1000, large=True), (3, 224, 224), 2),
    }


def measure(network: nn.Module, shape: tuple[int, ...], count: int, scores: list[Score]) -> tuple[float, float]:
    """Measure seconds and bytes per point."""
    x = torch.rand(count, *shape, generator=torch.Generator().manual_seed(1))
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "run"
        began = time.perf_counter()
        brittle.score(network, (x, None), scores, out=out, skip_doctor=True)
        seconds = time.perf_counter() - began
        size = sum(file.stat().st_size for file in out.glob("*.parquet"))
    return seconds / count, size / count


def main() -> None:
    """Print both tables."""
    torch.set_num_threads(1)
    print(f"1 thread, torch {torch.__version__}")
    by_network: list[list[object]] = []
    by_points: list[list[object]] = []
    for name, (network, shape, count) in networks().items():
        costs = {choice: measure(network.eval(), shape, count, scores) for choice, scores in CHOICES.items()}
        seconds, size = costs["shrinkage"]
        by_network.append([name, *(time for time, _ in costs.values()), size])
        times = [duration(seconds * points) for points in POINTS]
        by_points.append([name, *times, f"{DOLLARS * seconds * POINTS[-1] / 3600:,.0f}"])
    print_table(["seconds a point", *CHOICES, "bytes"], by_network)
    print_table(["shrinkage, one processor", *(f"{points:,}" for points in POINTS), "dollars for the last"], by_points)


if __name__ == "__main__":
    main()
