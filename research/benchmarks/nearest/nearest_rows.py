"""A run of a network, a norm, an effort and an attack; judged separately, and stored as a Parquet file."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nearest_foolbox
import pandas as pd
import torch
from nearest_apgd import apgd
from nearest_data import READERS, read
from nearest_rivals import ORDER, Network, Rival, ddn, fmn, fmn_targets, fmn_wide, sigma_zero
from torch import Tensor

import brittle
from brittle.model.loading.load import load_model

OURS = "brittle"
NORMS = ("linf", "l2", "l1", "l0")
OUR_ATTACKS = {
    "apgd": ("linf", "l2"),
    "sparse_descent": ("l1",),
    "exchange": ("l0",),
}
EFFORTS = ("fast", "standard", "thorough")
RIVALS: dict[str, tuple[Rival, tuple[str, ...]]] = {
    "fmn": (fmn, NORMS),
    "fmn_wide": (fmn_wide, NORMS),
    "fmn_targets": (fmn_targets, NORMS),
    "apgd": (apgd, ("linf", "l2")),
    "ddn": (ddn, ("l2",)),
    "sigma_zero": (sigma_zero, ("l0",)),
    **{name: (nearest_foolbox.rival(name), tuple(norms)) for name, norms in nearest_foolbox.ATTACKS.items()},
}
"""Rivals and their norms, by name."""

KNOWN = {
    OURS: NORMS,
    **{name: norms for name, (_, norms) in RIVALS.items()},
    **{f"{OURS}_{attack}": norms for attack, norms in OUR_ATTACKS.items()},
}
"""Norms of each method: ours, rivals and the parts of ours alone."""

USUAL = {
    "fast": (OURS, "fmn", "fmn_wide", "fmn_targets", "apgd", "ddn", "sigma_zero"),
    "standard": (OURS, "fmn", "fmn_wide", "fmn_targets", "apgd", "ddn", "sigma_zero"),
    "thorough": (OURS, "fmn_targets", "apgd", "ddn", "sigma_zero"),
}
"""Default methods by effort. One run of FMN gains nothing from thousands of steps; one for each class does."""

STRETCHES = (0.0, 1e-6, 1e-5, 1e-4, 1e-3)
"""Shares by which an input may be moved farther: networks round differently in batches, and inputs are judged alone."""


@dataclass(frozen=True)
class Subject:
    """A network, its correctly classified images, `[B, *shape]`, and their classes `[B]`."""

    name: str
    path: Path
    network: Network
    x: Tensor
    labels: Tensor


class Counted:
    """A network that counts its passes; an input that requires a gradient is one forward and one backward."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.passes = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.passes += (1 + x.requires_grad) * len(x)
        return self.network(x)


def subjects(folders: list[Path], data: Path, count: int, names: list[str]) -> Iterator[Subject]:
    """Return every network of `folders` with a readable data set, and its first `count` correct test images."""
    for path in sorted(path for folder in folders for path in folder.glob("*/model.pt2")):
        name, dataset = path.parent.name, json.loads((path.parent / "meta.json").read_text())["dataset"]
        if (names and name not in names) or dataset not in READERS:
            continue
        network = torch.export.load(path).module()
        network.requires_grad_(False)
        x, y = read(data, dataset, "test", 3 * count)
        correct = (torch.cat([network(image[None]) for image in x]).argmax(dim=1) == y).nonzero()[:count, 0]
        yield Subject(name, path, network, x[correct], y[correct])


def run(subject: Subject, norm: str, effort: str, method: str, out: Path, again: bool) -> None:
    """Run and store, unless stored before: with `again` ours anyway, and rivals where ours now spends more."""
    path = out / f"{subject.name}.{norm}.{effort}.{method}.parquet"
    ours = out / f"{subject.name}.{norm}.{effort}.{OURS}.parquet"
    rival = method in RIVALS
    if rival and not ours.exists():
        raise SystemExit(f"{ours} is not there: rivals get as many passes as ours, so run {OURS} first")
    budget = math.ceil(mean_passes(ours, len(subject.x))) if rival else 0
    earlier_passes = mean_passes(path, len(subject.x))
    if (earlier_passes >= budget) if rival else (earlier_passes and not again):
        return
    frame = against(subject, norm, method, budget) if rival else own(subject, norm, effort, method)
    frame.insert(0, "point", range(len(frame)))
    for name, value in (("method", method), ("effort", effort), ("norm", norm), ("network", subject.name)):
        frame.insert(0, name, value)
    frame.to_parquet(path)
    distances = frame["distance"][frame["distance"] < math.inf]
    print(
        f"{path.stem}: {len(distances)} of {len(frame)} found, mean {distances.mean():.5g}, "
        f"{frame['passes'].mean():.0f} passes, {frame['seconds'][0]:.1f} s",
        flush=True,
    )


def mean_passes(path: Path, points: int) -> float:
    """Return the mean passes per image in a file; 0 without a file for as many images."""
    if not path.exists():
        return 0.0
    passes = pd.read_parquet(path)["passes"].to_numpy()
    return float(passes.mean()) if len(passes) == points else 0.0


def own(subject: Subject, norm: str, effort: str, method: str) -> pd.DataFrame:
    """Run the library's search, after a small one that loads modules; `seconds` are of the processor."""
    classifier = brittle.Classifier(load_model(subject.path).module, bounds=(0, 1))
    attack = method.removeprefix(OURS).removeprefix("_") or "best"
    brittle.nearest(classifier, subject.x[:1], norm=norm, attack=attack, effort="fast")
    start = time.process_time()
    nearest = brittle.nearest(classifier, subject.x, norm=norm, attack=attack, effort=effort)
    seconds = time.process_time() - start
    numbers = {"passes": nearest.passes.double(), "masked": nearest.masked, "seconds": seconds}
    return pd.DataFrame({"distance": judge(subject, nearest.points, norm), **numbers})


def against(subject: Subject, norm: str, method: str, budget: int) -> pd.DataFrame:
    """Run a rival on as many passes."""
    counted = Counted(subject.network)
    start = time.process_time()
    points = RIVALS[method][0](counted, subject.x, subject.labels, norm, budget)
    seconds = time.process_time() - start
    passes = counted.passes / len(subject.x)
    return pd.DataFrame(
        {"distance": judge(subject, points, norm), "passes": passes, "masked": False, "seconds": seconds}
    )


def judge(subject: Subject, points: Tensor, norm: str) -> Tensor:
    """Return the distance of each input whose class alone is another, in float64; infinity elsewhere, `[B]`."""
    return torch.tensor([_judge_one(subject, row, points[row], norm) for row in range(len(points))])


def _judge_one(subject: Subject, row: int, point: Tensor, norm: str) -> float:
    x = subject.x[row]
    for stretch in STRETCHES:
        stretched = (x + (1 + stretch) * (point - x)).clamp(0, 1)
        with torch.no_grad():
            logits = subject.network(stretched[None])[0]
        if bool(logits.isfinite().all()) and int(logits.argmax()) != int(subject.labels[row]):
            delta = (stretched.double() - x.double()).flatten()
            return float(delta.norm(p=ORDER[norm]))
    return math.inf
