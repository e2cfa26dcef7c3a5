"""Cost of a linearisation: against the floor of C + 1 forward passes, in a sweep over sigma, with many classes.

    python research/benchmarks/linearize.py

Prints time against 11 forward passes of the same network measured in the same run, a sweep of 20 sigmas against one
sigma, and time and peak memory of 100-class and 1,000-class heads on 3x224x224 inputs, each in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys

import torch
from networks import resnet18
from timing import interleaved, peak_mebibytes, print_table, set_threads

import brittle
from brittle.scores import Taylor

BATCH, CLASSES, ROUNDS = 16, 10, 12


def against_forward_passes() -> None:
    """Compare `Linearize` on a ResNet-18 shape with 11 forward passes."""
    classifier = brittle.Classifier(resnet18(CLASSES))
    x = torch.rand(BATCH, 3, 32, 32, generator=torch.Generator().manual_seed(0))

    def forward() -> None:
        with classifier.evaluating(), torch.no_grad():
            classifier(x)

    floor, ours = interleaved([forward, lambda: brittle.linearize(classifier, x)], ROUNDS)
    print_table(
        ["ResNet-18, 3x32x32, C=10, batch 16", "seconds", "ratio"],
        [
            ["11 forward passes", 11 * floor, 1.0],
            ["linearize", ours, ours / (11 * floor)],
        ],
    )
    print(f"peak memory {peak_mebibytes():.0f} MiB\n")


def sweep() -> None:
    """Compare twenty sigmas with one, through `brittle.score`."""
    classifier = brittle.Classifier(resnet18(CLASSES))
    x = torch.rand(2 * BATCH, 3, 32, 32, generator=torch.Generator().manual_seed(0))

    def score(count: int) -> None:
        brittle.score(classifier, x, [Taylor(sigma) for sigma in torch.linspace(0.01, 0.5, count).tolist()])

    single, twenty = interleaved([lambda: score(1), lambda: score(20)], 3)
    print_table(
        ["taylor on 32 points", "seconds", "ratio"], [["1 sigma", single, 1.0], ["20 sigmas", twenty, twenty / single]]
    )
    print()


def many_classes(classes: int) -> None:
    """Measure time and memory of one head on large inputs."""
    classifier = brittle.Classifier(resnet18(classes, large=True))
    x = torch.rand(4, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    before = peak_mebibytes()
    (seconds,) = interleaved([lambda: brittle.score(classifier, x, [Taylor(0.1)])], 1)
    print_table(
        ["taylor, ResNet-18, 3x224x224", "seconds per point", "peak MiB", "of which before"],
        [[f"{classes} classes", seconds / len(x), peak_mebibytes(), before]],
    )


def main(arguments: list[str]) -> None:
    """Run everything, or one head in this process."""
    set_threads()
    if arguments:
        many_classes(int(arguments[0]))
        return
    against_forward_passes()
    sweep()
    for classes in (100, 1000):
        subprocess.run([sys.executable, __file__, str(classes)], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
