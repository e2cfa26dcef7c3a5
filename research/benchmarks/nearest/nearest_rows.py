"""One run: a network, a norm, an effort and an attack; judged apart from all of them, and kept as a Parquet file."""

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
"""Each rival, and the norms that it knows."""

KNOWN = {
    OURS: NORMS,
    **{name: norms for name, (_, norms) in RIVALS.items()},
    **{f"{OURS}_{attack}": norms for attack, norms in OUR_ATTACKS.items()},
}
"""Each method, ours, rivals and the parts of ours alone, and the norms that it knows."""

USUAL = {
    "fast": (OURS, "fmn", "fmn_wide", "fmn_targets", "apgd", "ddn", "sigma_zero"),
    "standard": (OURS, "fmn", "fmn_wide", "fmn_targets", "apgd", "ddn", "sigma_zero"),
    "thorough": (OURS, "fmn_targets", "apgd", "ddn", "sigma_zero"),
}
"""What runs unless methods are named. One run of FMN gains nothing from thousands of steps; one for each class does."""

STRETCHES = (0.0, 1e-6, 1e-5, 1e-4, 1e-3)
"""Networks round differently in batches: what does not hold alone may be this share farther away, whoever found it."""


@dataclass(frozen=True)
class Subject:
    """A network, the images that it classifies rightly, `[B, *shape]`, and their classes `[B]`."""

    name: str
    path: Path
    network: Network
    x: Tensor
    labels: Tensor


class Counted:
    """A network that counts its passes; an input that asks for a gradient is one forward and one backward."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.passes = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.passes += (1 + x.requires_grad) * len(x)
        return self.network(x)


def subjects(folders: list[Path], data: Path, count: int, names: list[str]) -> Iterator[Subject]:
    """Every network of `folders` whose data set is known, with its first `count` test images that it gets right."""
    for path in sorted(path for folder in folders for path in folder.glob("*/model.pt2")):
        name, dataset = path.parent.name, json.loads((path.parent / "meta.json").read_text())["dataset"]
        if (names and name not in names) or dataset not in READERS:
            continue
        network = torch.export.load(path).module()
        network.requires_grad_(False)
        x, y = read(data, dataset, "test", 3 * count)
        right = (torch.cat([network(image[None]) for image in x]).argmax(dim=1) == y).nonzero()[:count, 0]
        yield Subject(name, path, network, x[right], y[right])


def run(subject: Subject, norm: str, effort: str, method: str, out: Path, again: bool) -> None:
    """Run and keep, unless that was done before: with `again` ours anyway, and rivals where ours now spends more."""
    path = out / f"{subject.name}.{norm}.{effort}.{method}.parquet"
    ours = out / f"{subject.name}.{norm}.{effort}.{OURS}.parquet"
    rival = method in RIVALS
    if rival and not ours.exists():
        raise SystemExit(f"{ours} is not there: rivals get as many passes as ours, so run {OURS} first")
    budget = math.ceil(mean_passes(ours, len(subject.x))) if rival else 0
    spent = mean_passes(path, len(subject.x))
    if (spent >= budget) if rival else (spent and not again):
        return
    frame = against(subject, norm, method, budget) if rival else own(subject, norm, effort, method)
    frame.insert(0, "point", range(len(frame)))
    for name, value in (("method", method), ("effort", effort), ("norm", norm), ("network", subject.name)):
        frame.insert(0, name, value)
    frame.to_parquet(path)
    found = frame["distance"][frame["distance"] < math.inf]
    print(
        f"{path.stem}: {len(found)} of {len(frame)} found, mean {found.mean():.5g}, "
        f"{frame['passes'].mean():.0f} passes, {frame['seconds'][0]:.1f} s",
        flush=True,
    )


def mean_passes(path: Path, points: int) -> float:
    """The passes for each image that a file says; 0 where there is none for as many images."""
    if not path.exists():
        return 0.0
    passes = pd.read_parquet(path)["passes"].to_numpy()
    return float(passes.mean()) if len(passes) == points else 0.0


def own(subject: Subject, norm: str, effort: str, method: str) -> pd.DataFrame:
    """The library's search, after a small one that loads what is loaded once; `seconds` are of the processor."""
    classifier = brittle.Classifier(load_model(subject.path).module, bounds=(0, 1))
    attack = method.removeprefix(OURS).removeprefix("_") or "best"
    brittle.nearest(classifier, subject.x[:1], norm=norm, attack=attack, effort="fast")
    start = time.process_time()
    found = brittle.nearest(classifier, subject.x, norm=norm, attack=attack, effort=effort)
    seconds = time.process_time() - start
    numbers = {"passes": found.passes.double(), "masked": found.masked, "seconds": seconds}
    return pd.DataFrame({"distance": judge(subject, found.points, norm), **numbers})


def against(subject: Subject, norm: str, method: str, budget: int) -> pd.DataFrame:
    """A rival, on as many passes."""
    counted = Counted(subject.network)
    start = time.process_time()
    points = RIVALS[method][0](counted, subject.x, subject.labels, norm, budget)
    seconds = time.process_time() - start
    passes = counted.passes / len(subject.x)
    return pd.DataFrame(
        {"distance": judge(subject, points, norm), "passes": passes, "masked": False, "seconds": seconds}
    )


def judge(subject: Subject, points: Tensor, norm: str) -> Tensor:
    """The distance of each input that is classified otherwise alone, in float64; infinity where none is, `[B]`."""
    return torch.tensor([_judge_one(subject, row, points[row], norm) for row in range(len(points))])


def _judge_one(subject: Subject, row: int, point: Tensor, norm: str) -> float:
    x = subject.x[row]
    for stretch in STRETCHES:
        there = (x + (1 + stretch) * (point - x)).clamp(0, 1)
        with torch.no_grad():
            logits = subject.network(there[None])[0]
        if bool(logits.isfinite().all()) and int(logits.argmax()) != int(subject.labels[row]):
            delta = (there.double() - x.double()).flatten()
            return float(delta.norm(p=ORDER[norm]))
    return math.inf
