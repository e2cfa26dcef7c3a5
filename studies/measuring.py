"""What a study measures of one network: its test points, and steps that know all that decides their numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor

import brittle
from studies.networks import Network, points_digest, test_points
from studies.study import HERE, Setting, Step, Tables

Size = TypeVar("Size")


@dataclass(frozen=True)
class Measuring(Generic[Size]):
    """What is measured of a network.

    Attributes:
        network: which.
        setting: what the command line says.
        size: how much is measured, a dataclass.
        measures: the files that do it, as `code_digest` takes them: all of the study's but those that only read tables.
    """

    measures: ClassVar[tuple[str, ...]] = ()
    network: Network
    setting: Setting
    size: Size

    def step(self, name: str, run: Callable[[], Tables], **identity: Any) -> Step:
        """The step of this name; `identity` is what else decides its numbers."""
        size: Any = self.size
        same = {
            "network": self.network.digest, "dataset": self.network.dataset,
            "data": points_digest(self.setting.shared, self.network.dataset), "seed": self.setting.seed,
            "size": asdict(size), "code": code_digest(*self.measures),
        }  # fmt: skip
        assert not same.keys() & identity.keys()
        return Step(f"{self.network.name}/{name}", same | identity, run)

    def points(self, count: int, first: int = 0) -> tuple[Tensor, Tensor]:
        """Test points from `first` on in an order that the seed decides, and their labels."""
        x, y = test_points(self.setting.shared, self.network.dataset, first + count, self.setting.seed)
        return x[first:], y[first:]


@cache
def code_digest(*measures: str) -> str:
    """SHA-256 of the code that decides numbers: the library's, these files', and the version of PyTorch.

    The files are named below the folder `studies`, without their ending.
    """
    library = sorted(Path(brittle.__file__).parent.rglob("*.py"))
    paths = [*library, *(HERE / f"{name}.py" for name in ("networks", "measuring", *measures))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths) + torch.__version__.encode()).hexdigest()
