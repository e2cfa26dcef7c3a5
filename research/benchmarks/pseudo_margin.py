"""Pseudo-margins against searched margins: Kendall's tau at points that were not learned from.

    python research/benchmarks/pseudo_margin.py [--points 600] [--splits 5] [--runs FOLDER] MODEL.pt2 DATA ...

Every network searches the points once, in Linf, by `--effort fast`. Half of the points teach, the others check. Printed
for each network, in the mean over splits: tau of the pseudo-margin, of one that reads the features alone, of the logit
margin and of the feature margin.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from timing import print_table

import brittle
from brittle.analysis.correlation import kendall_tau
from brittle.data import open_points
from brittle.estimate import Status
from brittle.extensions.detector.passes import observe
from brittle.extensions.detector.surrogate import Surrogate
from brittle.model.loading.load import load_model
from brittle.scores import FeatureMargin, InputMargin, LogitMargin


def measure(model: str, data: str, options: argparse.Namespace) -> list[str]:
    """Return the row of one network."""
    name, points = Path(model).parent.name, open_points(data, split="test", limit=options.points)
    classifier = brittle.Classifier(load_model(model).module, bounds=(0, 1))
    folder = None if options.runs is None else options.runs / name
    if folder is not None and folder.exists():
        run = brittle.read_table(folder)
    else:
        scores = [InputMargin("linf", effort="fast"), LogitMargin(), FeatureMargin("linf")]
        run = brittle.score(classifier, points, scores, out=folder)
    columns = {column.score: column for column in run.columns}
    margins = columns["input_margin"].value[columns["input_margin"].status != Status.MASKED.slug].dropna()
    seen = observe(classifier, points, set(margins.index), False)
    truth = margins.loc[seen.ids].to_numpy()
    free = [columns[score].value.loc[seen.ids].to_numpy() for score in ("logit_margin", "feature_margin")]
    taus: list[list[float]] = []
    for seed in range(options.splits):
        teach, check = np.array_split(np.random.default_rng(seed).permutation(len(truth)), 2)

        def tau(prediction: NDArray[np.float64], rows: NDArray[np.int64] = check) -> float:
            return kendall_tau(truth[rows], prediction)

        learned = [
            Surrogate.fit(seen.features[teach], truth[teach], seed, head=head, norm="linf")
            for head in (seen.head, None)
        ]
        predictions = [part.predict(seen.features[check], seen.logits[check]).numpy() for part in learned]
        taus.append([*map(tau, predictions), *(tau(values[check]) for values in free)])
    return [name, str(len(truth)), *(f"{number:.3f}" for number in np.mean(taus, axis=0))]


def main() -> None:
    """Measure all networks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("networks", nargs="+", metavar="MODEL.pt2 DATA")
    parser.add_argument("--points", type=int, default=600)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--runs", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = [
        measure(model, data, options) for model, data in zip(options.networks[::2], options.networks[1::2], strict=True)
    ]
    print_table(["network", "points", "pseudo-margin", "features alone", "logit margin", "feature margin"], rows)


if __name__ == "__main__":
    main()
