"""Change of the scores of CIFAR-10 images where JPEG copies replace the images.

    python research/benchmarks/exact_images.py SHARED [--threads 1]

SHARED holds `models`, and in `data` the JPEG copies, `cifar10`, and the 854 test images whose exact pixels are known,
`cifar10_lossless_854`, with their rows among the copies. Networks of others score both, with the same noise at a point.
Printed are accuracy, mean `p_robust` of 100 noisy copies (`monte_carlo`) and the median first-order margin in Linf, in
grey levels; then the mean (of margins: median) over points of copy less exact image, with its 99% interval by
`brittle.analysis.compare`.

Many of the 854 are known because a network is right about them as they are, which favours the exact ones; the first 100
were not chosen.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from timing import print_table
from torch import Tensor

import brittle
from brittle.analysis import compare
from brittle.data import array_points, open_points
from brittle.scores import FirstOrderMargin, MonteCarlo

NETWORKS = (
    "vnn21_cifar10_resnet2b", "pt_abc_cifar_cnn_a_mix", "vnn_oval21_cifar_base", "pt_convex_cifar_small_l2_36px",
)  # fmt: skip
SCORES = [MonteCarlo(0.05, draws=100, limit=None), FirstOrderMargin(norm="linf")]
UNCHOSEN, GREY = 100, 255
HEAD = ("network", "points", "of", "exact", "JPEG", "JPEG - exact", "low", "high", "p")


def both_images(data: Path) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return exact images and their copies, `[N, 3, 32, 32]`, pixels in [0, 1]; their labels and rows, `[N]`."""
    with np.load(data / "cifar10_lossless_854" / "cifar10_test_lossless.npz") as archive:
        images, labels, rows = (torch.from_numpy(archive[name]) for name in ("images", "labels", "index"))
    copies = open_points(data / "cifar10", split="test")
    (batch,) = copies.batches(len(copies))
    if not torch.equal(torch.tensor(batch.labels)[rows], labels):
        raise SystemExit("a copy has another label than its exact image; the rows are not those of these copies")
    return images.permute(0, 3, 1, 2).float() / GREY, batch.inputs[rows], labels, rows


def rows_of(path: Path, exact: Tensor, copies: Tensor, labels: Tensor, ids: Tensor) -> list[list[object]]:
    """Return a row for accuracy and for each score of a network."""
    classifier = brittle.Classifier(torch.export.load(path / "model.pt2").module(), bounds=(0, 1))
    copied, original = (brittle.score(classifier, array_points(x, labels, ids), SCORES) for x in (copies, exact))
    rows: list[list[object]] = []
    for row in compare(copied, original).to_dict("records"):
        unit = GREY if row["quantity"] == "distance" else 1
        numbers = [unit * row[name] for name in ("second", "first", "difference", "difference_low", "difference_high")]
        score = row["score"].partition("(")[0]
        rows.append([path.name, row["points"], score, *(f"{value:.3f}" for value in numbers), f"{row['p']:.1g}"])
    return rows


def main() -> None:
    """Compare every network, on all points and on those that were not chosen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shared", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    images = both_images(arguments.shared / "data")
    paths = [arguments.shared / "models" / name for name in NETWORKS]
    parts = [images, [tensor[:UNCHOSEN] for tensor in images]]
    print_table(HEAD, [row for part in parts for path in paths for row in rows_of(path, *part)])


if __name__ == "__main__":
    main()
