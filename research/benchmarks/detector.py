"""Cost of a detector or a surrogate: the network with it built in against the bare network, one forward pass each.

    python research/benchmarks/detector.py [MODEL.pt2 ...]

Prints the ratio of shortest times in interleaved rounds, batch 64, on a ResNet-18 shape and on the archives named, for
every score that a detector can read from the network alone, and for an untrained surrogate of three sigmas.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import torch
from networks import resnet18
from timing import interleaved, print_table, set_threads
from torch import Tensor, nn

import brittle
from brittle.extensions.detector.network import READINGS, DetectorNetwork, score_of
from brittle.extensions.detector.regressor import Recipe, Regressor
from brittle.extensions.detector.surrogate import WIDTH
from brittle.extensions.detector.wrapped import SurrogateNetwork
from brittle.model.loading.load import load_model

BATCH, ROUNDS, AIM = 64, 12, 1.05


def run(network: nn.Module, inputs: Tensor) -> None:
    """Run one forward pass without gradients."""
    with torch.no_grad():
        network(inputs)


def cost(name: str, network: nn.Module, inputs: Tensor) -> list[list[object]]:
    """Return a row for each score: time of the bare and of the wrapped network, and their ratio."""
    classifier = brittle.Classifier(network)
    rows: list[list[object]] = []
    for score, reading in READINGS.items():
        if score == "pseudo_margin" or (reading.uses_features and not has_head(classifier)):
            continue
        wrapped = DetectorNetwork(classifier, score_of(score, "linf", None), 0.0)
        bare, detecting = interleaved([partial(run, network, inputs), partial(run, wrapped, inputs)], ROUNDS)
        rows.append([name, score, bare, detecting, detecting / bare, "yes" if detecting / bare <= AIM else "no"])
    if has_head(classifier):
        bare, bounded = interleaved([partial(run, network, inputs), partial(run, with_bounds(network), inputs)], ROUNDS)
        rows.append([name, "surrogate", bare, bounded, bounded / bare, "yes" if bounded / bare <= AIM else "no"])
    return rows


def with_bounds(network: nn.Module) -> SurrogateNetwork:
    """Return the network with a surrogate that has learned nothing, which costs as much as another."""
    classifier = brittle.Classifier(network)
    weight, targets = classifier.head.weight, ("1", "2", "3")
    recipe = Recipe(weight.shape[1], len(weight), WIDTH, 0, 0.0, 100, None, "head", targets)
    return SurrogateNetwork(classifier, recipe, Regressor(recipe), torch.full((1, 3), 1.5, dtype=torch.float64))


def has_head(classifier: brittle.Classifier) -> bool:
    """Return whether the network has a head, so that its features can be read."""
    try:
        return classifier.head is not None
    except brittle.errors.ModelError:
        return False


def main() -> None:
    """Time all networks."""
    set_threads()
    inputs = torch.rand(BATCH, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    rows = cost("ResNet-18", resnet18(10), inputs)
    for path in sys.argv[1:]:
        rows += cost(Path(path).parent.name, load_model(path).module, inputs)
    print_table(["batch 64, 3x32x32", "score", "bare s", "wrapped s", "ratio", f"<= {AIM}"], rows)


if __name__ == "__main__":
    main()
