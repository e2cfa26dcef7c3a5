"""What a study measures of one network: its test points, and steps that know all that decides their numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from types import ModuleType
from typing import Any, ClassVar, Generic, TypeVar

from torch import Tensor

from studies.networks import Network, points_digest, test_points
from studies.study import Setting, Step, Tables

Size = TypeVar("Size")


@dataclass(frozen=True)
class Measuring(Generic[Size]):
    """What is measured of a network.

    Attributes:
        network: which.
        setting: what the command line says.
        size: how much is measured, a dataclass.
        measures: modules that do it. Their constants, those in capitals, belong to the identity of every step.
    """

    measures: ClassVar[tuple[ModuleType, ...]] = ()
    network: Network
    setting: Setting
    size: Size

    def step(self, name: str, run: Callable[[], Tables], **identity: Any) -> Step:
        """The step of this name; `identity` is what else decides its numbers."""
        size: Any = self.size
        same = {
            "network": self.network.digest, "dataset": self.network.dataset,
            "data": points_digest(self.setting.shared, self.network.dataset), "seed": self.setting.seed,
            "size": asdict(size), "constants": constants_of(*self.measures),
        }  # fmt: skip
        return Step(f"{self.network.name}/{name}", same | identity, run)

    def points(self, count: int, first: int = 0) -> tuple[Tensor, Tensor]:
        """Test points from `first` on in an order that the seed decides, and their labels."""
        x, y = test_points(self.setting.shared, self.network.dataset, first + count, self.setting.seed)
        return x[first:], y[first:]


def constants_of(*modules: ModuleType) -> Mapping[str, str]:
    """The constants of modules by `MODULE.NAME`, as text: numbers, words, and collections of these."""
    return {
        f"{module.__name__}.{name}": repr(value)
        for module in modules
        for name, value in sorted(vars(module).items())
        if name.isupper() and _plain(value)
    }


def _plain(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(map(_plain, (*value.keys(), *value.values())))
    if isinstance(value, list | tuple):
        return all(map(_plain, value))
    return value is None or isinstance(value, bool | int | float | str)
