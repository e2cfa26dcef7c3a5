"""Measurements of one network: its test points, and steps whose identity holds all that decides their numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from studies.networks import Network, points_digest, test_points
from studies.sources import files_behind
from studies.study import Setting, Step, Tables

Size = TypeVar("Size")


@dataclass(frozen=True)
class Measuring(Generic[Size]):
    """Measurements of a network.

    Attributes:
        network: the network.
        setting: options of the command line.
        size: size of the measurements, a dataclass.
    """

    network: Network
    setting: Setting
    size: Size

    def step(self, name: str, run: Callable[[], Tables], **identity: Any) -> Step:
        """Return the step of this name; `identity` is what else decides its numbers."""
        size: Any = self.size
        same = {
            "network": self.network.digest, "dataset": self.network.dataset,
            "data": points_digest(self.setting.shared, self.network.dataset), "seed": self.setting.seed,
            "size": asdict(size), "device": self.setting.device, "code": code_digest(type(self).__module__),
        }  # fmt: skip
        assert not same.keys() & identity.keys()
        return Step(f"{self.network.name}/{name}", same | identity, run)

    def load(self) -> nn.Module:
        """Return the network, on the device that the command line says."""
        return self.network.load(self.setting.device)

    def points(self, count: int, start: int = 0) -> tuple[Tensor, Tensor]:
        """Test points from `start` on in an order that the seed decides, and their labels."""
        x, y = test_points(self.setting.shared, self.network.dataset, start + count, self.setting.seed)
        return x[start:], y[start:]


@cache
def code_digest(module: str) -> str:
    """SHA-256 of the code that decides what a module measures, and of the version of PyTorch."""
    code = b"".join(path.read_bytes() for path in files_behind(module))
    return hashlib.sha256(code + torch.__version__.encode()).hexdigest()
