"""Time and memory by the number of classes, for inputs of 3 x 224 x 224; and the error of leaving classes out.

    python research/benchmarks/classes.py

Each score and number of classes runs in a separate process, with a small network, so that growth with the classes
shows. Then a network of 100 classes, trained here on pairs of the digits of scikit-learn side by side: the flip
probability with all competitors, with the 20 that can win, and with the 20 nearest by logit.
"""

from __future__ import annotations

import subprocess
import sys
import time
from functools import cache

import torch
from sklearn.datasets import load_digits
from timing import peak_mebibytes, print_table
from torch import Tensor, nn

import brittle
from brittle.measure import forward
from brittle.scores import FirstOrderMargin, InputMargin, Moments, Score, Shrinkage, Taylor

CLASSES, POINTS = (10, 100, 1000), 8

SCORES: dict[str, Score] = {
    "shrinkage": Shrinkage(0.1, limit=None),
    "taylor": Taylor(0.1),
    "moments": Moments(0.1),
    "first_order_margin": FirstOrderMargin(),
    "input_margin fast": InputMargin(effort="fast"),
}


def measure(name: str, classes: int) -> None:
    """Score a few points, and print seconds a point and peak memory in MiB."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers = nn.Conv2d(3, 8, 7, 8), nn.ReLU(), nn.Conv2d(8, 16, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten()
    network = nn.Sequential(*layers, nn.Linear(256, classes))
    x = torch.rand(POINTS, 3, 224, 224)
    began = time.perf_counter()
    brittle.score(network, (x, None), [SCORES[name]], skip_doctor=True)
    print((time.perf_counter() - began) / POINTS, peak_mebibytes())


@cache
def digits() -> tuple[Tensor, Tensor]:
    """Return the digits and their labels."""
    images, labels = load_digits(return_X_y=True)
    return torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels)


def pairs(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return pairs of digits side by side, and the number that they make."""
    images, labels = digits()
    chosen = torch.randint(len(images), (2, count), generator=torch.Generator().manual_seed(seed))
    halves, y = [images[part].view(-1, 1, 8, 8) for part in chosen], labels[chosen]
    return torch.cat(halves, dim=3), 10 * y[0] + y[1]


def trained() -> nn.Module:
    """Train a network of 100 classes."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 100))
    optimiser = torch.optim.Adam(network.parameters(), 2e-3)
    for step in range(600):
        x, y = pairs(256, step)
        loss = nn.functional.cross_entropy(network(x), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return network.eval()


def left_out() -> None:
    """Print the errors of keeping 20 of 99 competitors."""
    network, (x, y) = trained(), pairs(500, 10_000)
    accuracy = float((network(x).argmax(1) == y).float().mean())
    rows: list[list[object]] = []
    for score in (Moments(0.3), Taylor(0.3)):
        complete = score(brittle.Classifier(network, bounds=(0, 1)), x)
        forward.ALL_CLASSES_UP_TO = 99
        shortened = score(brittle.Classifier(network, bounds=(0, 1)), x)
        forward.ALL_CLASSES_UP_TO = 100
        off = (shortened.value - complete.value).abs()
        share = float((off / (complete.high - complete.low)).nanmean())
        rows.append([score.name, float(complete.value.mean()), float(off.mean()), float(off.max()), share])
    print(f"pairs of digits, 100 classes, {accuracy:.1%} of 500 right, sigma 0.3")
    print_table(["20 of 99 kept", "mean flip probability", "mean error", "largest", "mean, in intervals"], rows)


def main(arguments: list[str]) -> None:
    """Measure every score and number of classes in a separate process, or one in this; then the left-out classes."""
    if arguments:
        measure(arguments[0], int(arguments[1]))
        return
    rows: list[list[object]] = []
    for name in SCORES:
        row: list[object] = [name]
        for classes in CLASSES:
            command = [sys.executable, __file__, name, str(classes)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            row += map(float, done.stdout.split())
        rows.append(row)
    columns = [f"{unit}, {classes}" for classes in CLASSES for unit in ("seconds a point", "MiB")]
    print_table(["classes", *columns], rows)
    left_out()


if __name__ == "__main__":
    main(sys.argv[1:])
