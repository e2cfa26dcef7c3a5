"""Findings of the doctor on networks of others, and the cost of its checks.

    python research/benchmarks/doctor.py MODELS DATA

MODELS holds one folder for each network, with `model.pt2` and `meta.json` (which names its `dataset`), DATA one for
each data set. Every network is examined with scores that differentiate, in single and in double precision; one without
its data gets uniform noise. Printed: the findings, the share of the change that gradients miss, and the passes.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

import brittle
from brittle import doctor
from brittle.data import Points, array_points, open_points
from brittle.doctor.gradients import best_slopes
from brittle.model.loading.load import load_model
from brittle.scores import InputMargin, Laplacian, Moments, Taylor

SCORES = [Moments(0.1), Taylor(0.1), InputMargin(), Laplacian()]
ROWS = 64


def main() -> None:
    """Examine every network of the folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("models", type=Path)
    parser.add_argument("data", type=Path)
    arguments = parser.parse_args()
    print(f"{'network':<34}{'precision':<11}{'found':<34}{'missed':>8}{'forward':>9}{'backward':>9}")
    for folder in sorted(path.parent for path in arguments.models.glob("*/model.pt2")):
        meta = json.loads((folder / "meta.json").read_text())
        for dtype in (torch.float32, torch.float64):
            findings = examine(folder, meta, arguments.data, dtype)
            print(f"{folder.name:<34}{str(dtype).removeprefix('torch.'):<11}{findings}")


def examine(folder: Path, meta: dict, data: Path, dtype: torch.dtype) -> str:
    """Return the line of one network."""
    module = load_model(folder / "model.pt2").module
    if dtype == torch.float64 and not _in_double(module, meta):
        return "not exported for it"
    outputs = "probs" if "softmax inside" in meta["arch"] else "logits"
    classifier = brittle.Classifier(module, outputs=outputs)
    points = _points(meta, data, dtype)
    batch = next(iter(points.batches(ROWS)))
    subject = doctor.Subject(classifier, batch, points.labels, SCORES, 0, ROWS, points)
    with classifier.evaluating():
        outcomes = doctor.run_all(subject)
        passes = (classifier.forward_passes / ROWS, classifier.backward_passes / ROWS)
        best = best_slopes(subject)
    codes = ", ".join(sorted({outcome.code for outcome in outcomes if outcome.code})) or "nothing"
    missed = float("nan") if best is None or best.missed is None else best.missed
    return f"{codes:<34}{missed:>8.4f}{passes[0]:>9.1f}{passes[1]:>9.1f}"


def _points(meta: dict, data: Path, dtype: torch.dtype) -> Points:
    place = data / meta["dataset"]
    if not place.exists():
        uniform = torch.rand(ROWS, *meta["input_chw"], generator=torch.Generator().manual_seed(0))
        return array_points(uniform.to(dtype))
    points = open_points(place, split="test", limit=ROWS)
    batch = next(iter(points.batches(ROWS)))
    return array_points(batch.inputs.to(dtype), torch.tensor(batch.labels))


def _in_double(module: torch.nn.Module, meta: dict) -> bool:
    """Convert the network to double precision; return whether it runs (an export may have fixed single precision)."""
    module.double()
    try:
        module(torch.zeros(2, *meta["input_chw"], dtype=torch.float64))
    except (RuntimeError, AssertionError):
        return False
    return True


if __name__ == "__main__":
    main()
