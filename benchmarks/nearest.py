"""How near the nearest inputs are: against proofs and counter-examples by others, and against a search 10 times longer.

    python benchmarks/nearest.py MODELS CIFAR10 [--figure docs/images/attacks.svg]

`MODELS` holds one folder a network: `model.pt2`, and where robustness verdicts were published `verdicts.csv` with
`centres.npy`. `CIFAR10` is a Parquet file of test images. Prints, for each network with verdicts, the distances found
in Linf against them, and for one network what share of the best known distance each attack reaches at which cost; the
figure draws the same.
"""

from __future__ import annotations

import argparse
import csv
import io
import time
import unittest.mock
from collections.abc import Iterator
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import torch
from PIL import Image
from timing import print_table, set_threads
from torch import Tensor

import brittle
from brittle.measure.forward import Clean, look
from brittle.measure.nearest import EFFORTS, Effort, Nearest, NearestPoint
from brittle.model.loading.load import load_model

TOLERANCE = 1e-5
"""Verdicts are about real numbers, networks compute in single precision."""

SUBJECT, POINTS, BATCH = "vnn21_cifar10_resnet2b", 100, 100
WITHIN = 0.99

REFERENCE = Effort(
    patterns=8,
    halvings=16,
    scouts=9,
    scout_steps=80,
    targets=9,
    fab_steps=100,
    apgd_steps=200,
    refine_steps=200,
    refine_targets=5,
    ddn_steps=300,
    smooth_targets=9,
    smooth_rounds=32,
    smooth_steps=100,
    queries=20_000,
    passes={},
)


def against_verdicts(models: Path) -> None:
    """No distance below a proof, none above a counter-example."""
    table = [verdict_row(folder.parent) for folder in sorted(models.glob("*/verdicts.csv"))]
    header = "network, rows, unsat, violations, sat, found <= eps, found / published, masked, passes, seconds"
    print_table(header.split(", "), table)
    print()


def verdict_row(folder: Path) -> list[object]:
    """One network: how its distances agree with its verdicts."""
    rows = list(csv.DictReader((folder / "verdicts.csv").open()))
    classifier = brittle.Classifier(load_model(folder / "model.pt2").module)
    start = time.perf_counter()
    found = search(classifier, torch.from_numpy(np.load(folder / "centres.npy")).float() / 255, Nearest("linf"))
    seconds = time.perf_counter() - start
    distance = found.distance.numpy()
    epsilon = np.array([float(row["epsilon"]) for row in rows])
    unsat = np.array([row["verdict"] == "unsat" for row in rows])
    sat = np.array([row["verdict"] == "sat" and row["cex_linf"] != "" for row in rows])
    published = sum(float(row["cex_linf"]) for row, checked in zip(rows, sat, strict=True) if checked)
    return [
        folder.name,
        len(rows),
        int(unsat.sum()),
        int((unsat & (distance <= epsilon - TOLERANCE)).sum()),
        int(sat.sum()),
        int((sat & (distance <= epsilon + TOLERANCE)).sum()),
        float(distance[sat].sum()) / published if sat.any() else "-",
        int(found.masked.sum()),
        float(found.passes.double().mean()),
        seconds,
    ]


def search(classifier: brittle.Classifier, points: Tensor, need: Nearest) -> NearestPoint:
    """The nearest points of all `points`, in batches of `BATCH`."""
    parts = [need(classifier, clean) for clean in batches(classifier, points)]
    attacks = parts[0].by_attack
    fields = ("distance", "points", "predicted", "passes")
    return NearestPoint(
        *(torch.cat([getattr(part, name) for part in parts]) for name in fields),
        by_attack={name: torch.cat([part.by_attack[name] for part in parts]) for name in attacks},
        masked=torch.cat([part.masked for part in parts]),
    )


def batches(classifier: brittle.Classifier, points: Tensor) -> Iterator[Clean]:
    """The clean passes of `points`, `BATCH` at a time."""
    for first in range(0, len(points), BATCH):
        chosen = points[first : first + BATCH]
        yield look(classifier, chosen, [str(first + number) for number in range(len(chosen))], 0)


def optimality(models: Path, images: Path) -> pd.DataFrame:
    """What share of the nearest known distance each attack reaches, at each effort."""
    classifier = brittle.Classifier(load_model(models / SUBJECT / "model.pt2").module)
    points = read_images(images, POINTS)
    frames = [one_norm(classifier, points, norm) for norm in ("linf", "l2")]
    return pd.concat(frames, ignore_index=True)


def one_norm(classifier: brittle.Classifier, points: Tensor, norm: str) -> pd.DataFrame:
    """The same for one norm; the nearest known is the minimum over everything that was run."""
    found: dict[tuple[str, str], NearestPoint] = {}
    for attack in ["best", "segments", "fab", "apgd", *(["ddn"] if norm == "l2" else [])]:
        for effort in EFFORTS:
            found[attack, effort] = search(classifier, points, Nearest(norm, attack, effort))
    with unittest.mock.patch.dict(EFFORTS, reference=REFERENCE):
        found["best", "reference"] = search(classifier, points, Nearest(norm, "best", "reference"))
    nearest = torch.stack([result.distance for result in found.values()]).amin(dim=0)
    return pd.DataFrame(
        {
            "norm": norm,
            "attack": attack,
            "effort": effort,
            "passes": float(result.passes.double().mean()),
            "optimality": float((nearest / result.distance).mean()),
            "within 1%": float((nearest / result.distance >= WITHIN).double().mean()),
            "mean distance": float(result.distance.mean()),
        }
        for (attack, effort), result in found.items()
    )


def read_images(path: Path, count: int) -> Tensor:
    """The first `count` images of a Parquet file, `[count, 3, 32, 32]` in [0, 1]."""
    rows = pq.read_table(path, columns=["img"]).slice(0, count).to_pylist()
    images = [np.asarray(Image.open(io.BytesIO(row["img"]["bytes"]))) for row in rows]
    return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 255


def figure(frame: pd.DataFrame) -> alt.FacetChart:
    """Optimality against passes, one panel a norm."""
    shown = frame[~frame["attack"].isin(["segments"])]
    lines = (
        alt.Chart(shown)
        .mark_line(point=True)
        .encode(
            x=alt.X("passes:Q", scale=alt.Scale(type="log"), title="passes per point"),
            y=alt.Y("optimality:Q", scale=alt.Scale(zero=False), title="nearest known / found, mean"),
            color=alt.Color("attack:N", scale=alt.Scale(range=["#0072b2", "#1c2530", "#d55e00", "#009e73"])),
        )
    )
    return lines.properties(width=330, height=240).facet(column=alt.Column("norm:N", title=None))


def main() -> None:
    """Both tables, and the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    parser.add_argument("cifar10", type=Path)
    parser.add_argument("--figure", type=Path)
    arguments = parser.parse_args()
    set_threads()
    against_verdicts(arguments.models)
    frame = optimality(arguments.models, arguments.cifar10)
    print_table(list(frame.columns), frame.to_numpy().tolist())
    if arguments.figure:
        figure(frame).save(arguments.figure, format="svg")


if __name__ == "__main__":
    main()
