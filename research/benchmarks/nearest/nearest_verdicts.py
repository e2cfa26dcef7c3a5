"""Distances compared with radii that others proved and counter-examples that they found."""

from __future__ import annotations

import csv
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch

import brittle
from brittle.model.loading.load import load_model

TOLERANCE = 1e-5
"""Tolerance of the comparison: verdicts are about real numbers, networks compute in single precision."""


def verdicts(folders: list[Path], names: list[str]) -> pd.DataFrame:
    """Return a row for each network that has `verdicts.csv` and `centres.npy`."""
    folders_with_verdicts = sorted(path.parent for folder in folders for path in folder.glob("*/verdicts.csv"))
    return pd.DataFrame([verdict_row(folder) for folder in folders_with_verdicts if not names or folder.name in names])


def verdict_row(folder: Path) -> dict[str, object]:
    """Compare the distances of one network with its verdicts."""
    rows = list(csv.DictReader((folder / "verdicts.csv").open()))
    classifier = brittle.Classifier(load_model(folder / "model.pt2").module, bounds=(0, 1))
    centres = torch.from_numpy(np.load(folder / "centres.npy")).float() / 255
    start = time.perf_counter()
    nearest = brittle.nearest(classifier, centres, norm="linf")
    seconds = time.perf_counter() - start
    distance = nearest.distance.numpy()
    epsilon = np.array([float(row["epsilon"]) for row in rows])
    unsat = np.array([row["verdict"] == "unsat" for row in rows])
    sat = np.array([row["verdict"] == "sat" and row["cex_linf"] != "" for row in rows])
    published = sum(float(row["cex_linf"]) for row, checked in zip(rows, sat, strict=True) if checked)
    return {
        "network": folder.name,
        "points": len(rows),
        "proved": int(unsat.sum()),
        "violations": int((unsat & (distance <= epsilon - TOLERANCE)).sum()),
        "counter-examples": int(sat.sum()),
        "found within their radius": int((sat & (distance <= epsilon + TOLERANCE)).sum()),
        "sum found / published": float(distance[sat].sum()) / published if sat.any() else "-",
        "masked": int(nearest.masked.sum()),
        "passes": float(nearest.passes.double().mean()),
        "seconds": seconds,
    }
