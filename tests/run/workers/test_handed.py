"""Workers of a run that was started in Python give the bytes of a run without any, or one sentence."""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.artefacts import refused
from helpers.problems import small_classifier
from PIL import Image
from torch import nn

import brittle
from brittle.data import open_points
from brittle.decisions import Custom
from brittle.run.arguments import make_job
from brittle.run.workers.handed import _packed
from brittle.scores import LogitMargin, Moments

pytestmark = pytest.mark.xdist_group("crew")

COUNT = 300
"""Points: two shards."""

SCORES = [Moments(0.1, draws=8), LogitMargin()]


def inputs() -> torch.Tensor:
    return torch.rand(COUNT, 1, 4, 4, generator=torch.Generator().manual_seed(0))


def network() -> brittle.Classifier:
    torch.manual_seed(0)
    return brittle.Classifier(nn.Sequential(nn.Flatten(), nn.Linear(16, 3)).eval(), mean=0.5, std=0.5)


def same(one: brittle.Table, other: brittle.Table) -> bool:
    return one.points.equals(other.points) and one.scores.equals(other.scores)


def _npz(folder: Path) -> Path:
    np.savez(folder / "x.npz", x=inputs().numpy())
    return folder / "x.npz"


def _images(folder: Path) -> Path:
    for row, levels in enumerate((255 * inputs()[:5, 0]).byte().numpy()):
        Image.fromarray(levels).save(folder / f"{row}.png")
    return folder


@pytest.mark.parametrize("write", [_npz, _images])
def test_points_of_files_are_the_same_in_another_process(write: Callable[[Path], Path], tmp_path: Path) -> None:
    points = open_points(write(tmp_path), limit=5)
    again = pickle.loads(_packed(make_job(network(), points, SCORES, 0, None, 0.99))[0]).points
    for one, other in zip(points.batches(3), again.batches(3), strict=True):
        assert torch.equal(one.inputs, other.inputs)
        assert one.ids == other.ids


TWICE = """
from dataclasses import dataclass, replace
from typing import ClassVar
from brittle.scores import LogitMargin

@dataclass(frozen=True)
class Times(LogitMargin):
    factor: ClassVar[float] = 1.0
    name: ClassVar[str] = "times"

    def estimate(self, measured, confidence):
        found = super().estimate(measured, confidence)
        return replace(found, **{part: getattr(found, part) * self.factor for part in ("value", "low", "high")})
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A score of a module that another process can import."""
    (tmp_path / "own_times.py").write_text(TWICE)
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("own_times", None)
    return importlib.import_module("own_times").Times


def test_the_table_is_that_of_one_process(own: Any) -> None:
    data = (inputs(), torch.arange(COUNT) % 3)
    plain, shared = (brittle.score(network(), data, [*SCORES, own()], workers=some) for some in (None, 1))
    assert same(plain, shared)
    assert plain.record.account == shared.record.account


def test_a_class_that_was_changed_in_memory_is_refused(own: Any) -> None:
    """Another process imports it as its module has it, and gave other numbers with status ok."""
    own.factor = 2.0
    refused("workers", "own_times:Times is not what its", brittle.score, network(), inputs(), [own()], workers=1)


class _Local(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.flatten(1)[:, :3]


def _of_the_program() -> nn.Module:
    kind = type("Typed", (_Local,), {"__module__": "__main__"})
    return kind()


def _inside() -> nn.Module:
    class Inside(_Local):
        pass

    return Inside()


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: brittle.Classifier(_of_the_program()), "Typed is defined in the program that you started"),
        (lambda: brittle.Classifier(_inside()), "Inside"),
        (lambda: brittle.Classifier(_Local(), decision=Custom(lambda a, b: (a - b).sum(1) == 0)), "lambda"),
    ],
)
def test_what_no_other_process_can_import_is_refused(make: Callable[[], brittle.Classifier], why: str) -> None:
    refused("workers", f"{why}.*into a module that is imported", brittle.score, make(), inputs(), SCORES[:1], workers=2)


@pytest.mark.parametrize("number", [0, 1000, 2.0, True, "2"])
def test_numbers_that_cannot_be_started_are_refused(number: Any) -> None:
    refused("workers", "workers must be", brittle.score, small_classifier(), inputs(), SCORES, workers=number)
