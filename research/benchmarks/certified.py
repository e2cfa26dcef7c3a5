"""Certified radii against published proofs and counter-examples.

    python research/benchmarks/certified.py FOLDER [NORM [ROWS [PROOF [MODEL ...]]]]

Each model in FOLDER is a folder with `model.pt2`, and where verdicts were published `verdicts.csv` with the exact
inputs in `centres.npy`. Printed for each model: the number of points with a radius above zero, the published proofs
(`unsat`) that the radius confirms at their epsilon, the medians of radius over epsilon, of the radius and of radius
over the distance of a fast attack, the radii that reach a published counter-example (none must), and seconds and passes
per point.
"""

from __future__ import annotations

import csv
import sys
import time
from pathlib import Path

import numpy as np
import torch
from timing import print_table, set_threads

import brittle
from brittle.extensions.certificates.radius import Certified
from brittle.measure.forward import look


def verdicts_of(folder: Path, rows: int) -> tuple[torch.Tensor, list[dict[str, str]]]:
    """Return inputs in [0, 1] and the published verdicts in one order, else those of another model of the same data."""
    table = folder / "verdicts.csv"
    if not table.exists():
        mnist = "mnist" in (folder / "meta.json").read_text().lower()
        borrowed = next(folder.parent.glob("*mnistfc*" if mnist else "*oval21_cifar*"))
        return verdicts_of(borrowed, rows)[0], []
    centres = torch.from_numpy(np.load(folder / "centres.npy")).float() / 255
    with table.open() as lines:
        verdicts = list(csv.DictReader(lines))
    order = [int(verdict["row"]) for verdict in verdicts]
    return centres[order][:rows], verdicts[:rows]


def measured(folder: Path, norm: str, rows: int, proof: str) -> list[object]:
    """Return a row of the table."""
    classifier = brittle.Classifier(torch.export.load(folder / "model.pt2").module(), bounds=(0, 1))
    inputs, verdicts = verdicts_of(folder, rows)
    clean = look(classifier, inputs, [str(number) for number in range(len(inputs))], 0)
    start = time.perf_counter()
    certified = Certified(norm, proof=proof)(classifier, clean)
    seconds = (time.perf_counter() - start) / len(inputs)
    radii = certified.radius.tolist()
    attacked = brittle.nearest(classifier, inputs, norm=norm, effort="fast").distance.tolist()
    reach = [radius / distance for radius, distance in zip(radii, attacked, strict=True) if distance > 0]
    pairs = list(zip(radii, verdicts, strict=True)) if verdicts else []
    proofs = [radius >= float(verdict["epsilon"]) for radius, verdict in pairs if verdict["verdict"] == "unsat"]
    ratios = [radius / float(verdict["epsilon"]) for radius, verdict in pairs]
    column = f"cex_{norm}"
    reached = sum(radius >= float(verdict[column]) for radius, verdict in pairs if verdict[column])
    examples = sum(bool(verdict[column]) for _, verdict in pairs)
    return [
        folder.name,
        len(inputs),
        sum(radius > 0 for radius in radii),
        f"{sum(proofs)}/{len(proofs)}" if norm == "linf" else "",
        float(np.median(ratios)) if ratios and norm == "linf" else "",
        float(np.median(radii)),
        float(np.median(reach)),
        f"{reached}/{examples}",
        seconds,
        float(certified.passes.double().mean()),
        certified.unsupported or "",
    ]


HEADER = [
    "model",
    "rows",
    ">0",
    "proofs",
    "radius/eps",
    "radius",
    "radius/attack",
    "reached",
    "seconds",
    "passes",
    "unsupported",
]


def main(arguments: list[str]) -> None:
    """Print the table of all models, or of those in the arguments."""
    set_threads()
    root, norm, rows, proof, *names = [*arguments, *("linf", "1000", "full")[len(arguments) - 1 :]]
    folders = [Path(root) / name for name in names] or sorted(path.parent for path in Path(root).glob("*/model.pt2"))
    print_table(HEADER, [measured(folder, norm, int(rows), proof) for folder in folders])


if __name__ == "__main__":
    main(sys.argv[1:])
