"""Trained networks in folders, and the points that they are tested on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.export.passes import move_to_device_pass

from studies.errors import StudyError
from studies.train.images import DATASETS, read

MODEL, META = "model.pt2", "meta.json"

EXACT = {"cifar10": "cifar10_lossless_854"}
"""Data sets of networks that others trained, and those that hold the exact pixels where the first has copies."""


@dataclass(frozen=True)
class Network:
    """A trained network in a folder: `model.pt2`, a program of `torch.export` from pixels in [0, 1], and `meta.json`.

    Attributes:
        name: of its folder.
        dataset: one of `DATASETS`.
        path: of the folder.
        digest: SHA-256 of the program.
        repeat: whether it differs from another in the seed of its training alone.
    """

    name: str
    dataset: str
    path: Path
    digest: str
    repeat: bool = False

    def meta(self) -> dict[str, Any]:
        """Read `meta.json`."""
        return json.loads((self.path / META).read_text(encoding="utf-8"))

    def load(self, device: str = "cpu") -> nn.Module:
        """Return the program as a module that computes on a device, whatever device its inputs are on."""
        program = torch.export.load(self.path / MODEL)
        return program.module() if device == "cpu" else Elsewhere(move_to_device_pass(program, device).module(), device)


class Elsewhere(nn.Module):
    """A network on another device than its inputs: noise is drawn and numbers are kept where they are on any machine.

    Args:
        inside: the network, on the device.
        device: where that is.
    """

    def __init__(self, inside: nn.Module, device: str) -> None:
        super().__init__()
        self.inside, self.device = inside, device

    def forward(self, x: Tensor) -> Tensor:
        return self.inside(x.to(self.device)).to(x.device)


def find_networks(shared: Path, further: Path | None, report: Callable[[str], None] = print) -> list[Network]:
    """Find networks of `shared/models` and `further` with data and gradients; report those that are left out.

    Raises:
        StudyError: a folder or file is absent, two networks have one name, or there is none.
    """
    if further is not None and not further.is_dir():
        raise StudyError(f"there is no folder {further}; train networks with `python -m studies.train --out {further}`")
    networks: dict[str, Network] = {}
    for folder in filter(None, (shared / "models", further)):
        for program in sorted(folder.glob(f"*/{MODEL}")):
            path = program.parent
            if path.name.startswith("."):  # in the making
                continue
            if not (path / META).is_file():
                raise StudyError(f'{path} holds {MODEL} and no {META}; write one that names its "dataset"')
            meta = json.loads((path / META).read_text(encoding="utf-8"))
            dataset = str(meta.get("dataset"))
            if folder != further and (shared / "data" / EXACT.get(dataset, dataset)).is_dir():
                dataset = EXACT.get(dataset, dataset)
            if path.name in networks:
                raise StudyError(f"two networks are called {path.name}, in {networks[path.name].path} and {path}")
            if dataset not in DATASETS or not (shared / "data" / dataset).is_dir():
                report(f"{path.name} is left out: there is no folder of data {shared / 'data' / dataset}")
                continue
            digest = hashlib.sha256(program.read_bytes()).hexdigest()
            network = Network(path.name, dataset, path, digest, bool(meta.get("repeat")))
            if has_gradients(network, test_points(shared, dataset, 2, 0)[0]):
                networks[path.name] = network
            else:
                report(f"{path.name} is left out: its gradients are zero, or its scores NaN")
    if not networks:
        raise StudyError(
            f"no network with data and gradients is in {shared / 'models'} or {further}; see what was left out"
        )
    return list(networks.values())


def names_of(steps: Iterable[str]) -> list[str]:
    """Return the networks of steps that are called `NETWORK/WHAT`, in their order."""
    return [*dict.fromkeys(step.partition("/")[0] for step in steps if "/" in step)]


def has_gradients(network: Network, x: Tensor) -> bool:
    """Return whether some class score of the network changes with its input at `x`, and none is NaN there."""
    x = x.clone().requires_grad_()
    scores = network.load()(x)
    (slope,) = torch.autograd.grad(scores.square().sum(), x)
    return bool((slope != 0).any() and not scores.isnan().any())


@cache
def points_digest(shared: Path, dataset: str) -> str:
    """SHA-256 of the test points of a data set and of their labels."""
    return hashlib.sha256(b"".join(part.numpy().tobytes() for part in _test_part(shared / "data", dataset))).hexdigest()


def _test_part(data: Path, dataset: str) -> tuple[Tensor, Tensor]:
    return read(data / dataset, DATASETS[dataset], "test", None)


def test_points(shared: Path, dataset: str, count: int, seed: int) -> tuple[Tensor, Tensor]:
    """The first `count` test points of a random order, `[count, *shape]`, and their labels, `[count]`."""
    x, y = _test_part(shared / "data", dataset)
    rows = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))[:count]
    return x[rows], y[rows]
