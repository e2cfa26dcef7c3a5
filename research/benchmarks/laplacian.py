"""Cost of the Laplacian, against a linearisation and against the trace of the complete Hessian.

    python research/benchmarks/laplacian.py

Prints, for a ReLU network of the ResNet-18 shape on 3x32x32 inputs: the score by `gram` and by `auto` against
`linearize`; `taylor`, `first_order_margin` and `laplacian` together against `taylor` alone; and the Laplacian against
`n` Hessian-vector products of the probability, of which a part is timed.
"""

from __future__ import annotations

import torch
from networks import resnet18
from timing import interleaved, print_table, set_threads
from torch import Tensor

import brittle
from brittle.scores import FirstOrderMargin, Laplacian, Score, Taylor

BATCH, CLASSES, ROUNDS = 16, 10, 8
PRODUCTS = 8
"""Number of timed Hessian-vector products, of the `n` for the complete trace."""


def main() -> None:
    """Run both comparisons."""
    set_threads()
    classifier = brittle.Classifier(resnet18(CLASSES))
    x = torch.rand(BATCH, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    against_linearize(classifier, x)
    against_hessian_products(classifier, x)


def against_linearize(classifier: brittle.Classifier, x: Tensor) -> None:
    """Compare everything that reads the Gram with the Gram."""

    def scored(*scores: Score) -> object:
        return brittle.score(classifier, x, scores)

    times = interleaved(
        [
            lambda: brittle.linearize(classifier, x),
            lambda: scored(Laplacian("gram")),
            lambda: scored(Laplacian()),
            lambda: scored(Taylor(0.1)),
            lambda: scored(Taylor(0.1), FirstOrderMargin(), Laplacian("gram")),
            lambda: scored(Taylor(0.1), FirstOrderMargin(), Laplacian()),
        ],
        ROUNDS,
    )
    names = [
        "linearize",
        "laplacian (gram)",
        "laplacian (auto)",
        "taylor",
        "taylor, first_order_margin, laplacian (gram)",
        "taylor, first_order_margin, laplacian (auto)",
    ]
    floors = [times[0]] * 3 + [times[3]] * 3
    rows = [[name, time / BATCH, time / floor] for name, time, floor in zip(names, times, floors, strict=True)]
    print_table([f"ResNet-18, 3x32x32, C=10, batch {BATCH}", "seconds per point", "ratio"], rows)
    print()


def against_hessian_products(classifier: brittle.Classifier, x: Tensor) -> None:
    """Compare the Laplacian of the predicted class by the Gram with the trace of its probability's Hessian."""
    predicted = classifier(x).argmax(dim=1, keepdim=True)
    size = x[0].numel()

    def trace() -> Tensor:
        inputs = x.clone().requires_grad_(True)
        probability = classifier(inputs).softmax(dim=1).gather(1, predicted).sum()
        gradient = torch.autograd.grad(probability, inputs, create_graph=True)[0].flatten(1)
        total = torch.zeros(len(x))
        for coordinate in range(PRODUCTS):
            column = torch.autograd.grad(gradient[:, coordinate].sum(), inputs, retain_graph=True)[0]
            total += column.flatten(1)[:, coordinate]
        return total

    with classifier.evaluating():
        ours, timed = interleaved([lambda: Laplacian("gram")(classifier, x), trace], ROUNDS)
    all_products = timed / PRODUCTS * size
    rows = [
        [f"{size} Hessian-vector products ({PRODUCTS} timed)", all_products / BATCH, 1.0],
        ["laplacian, gram", ours / BATCH, all_products / ours],
    ]
    print_table(["trace of the Hessian of p_c", "seconds per point", "times faster"], rows)


if __name__ == "__main__":
    main()
