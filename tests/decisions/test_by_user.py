"""Custom decisions: functions may work in place, and must compare each row by itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import brittle
from brittle.decisions import Custom
from brittle.errors import ModelError, ResumeError
from brittle.scores import InputMargin, MonteCarlo
from brittle.user_code import find_named

pytestmark = pytest.mark.usefixtures("short_search")

NEAR = 1.2


def network() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 6)).eval()


def points() -> Tensor:
    return torch.rand(20, 4, generator=torch.Generator().manual_seed(1))


def near(output: Tensor, at_point: Tensor) -> Tensor:
    return NEAR - (output - at_point).abs().sum(1)


def test_a_function_may_work_in_place() -> None:
    def in_place(output: Tensor, at_point: Tensor) -> Tensor:
        output -= at_point
        at_point *= 0
        return NEAR - output.abs_().sum(1)

    scores = [MonteCarlo(sigma=0.5, draws=100, limit=None), InputMargin(norm="l2", effort="fast")]
    tables = [
        brittle.score(brittle.Classifier(network(), bounds=None, decision=Custom(function)), points()[:8], scores)
        for function in (near, in_place)
    ]
    for score in scores:
        plain, changed = (table[score] for table in tables)
        assert plain.value.tolist() == changed.value.tolist()
        assert plain.status.tolist() == changed.status.tolist()
    assert tables[0][scores[0]].value.max() > 0.05


class Stateful:
    """A function that grows with every call."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, output: Tensor, at_point: Tensor) -> Tensor:
        self.calls += 1
        return near(output, at_point) + 0.01 * self.calls


def by_chance(output: Tensor, at_point: Tensor) -> Tensor:
    away = (output - at_point).abs().sum(1)
    return NEAR - away + 0.5 * torch.randn(len(output)) * (away > 0)


def with_the_mean(output: Tensor, at_point: Tensor) -> Tensor:
    away = (output - at_point).abs().sum(1)
    return NEAR - away + 0.5 * (away.mean() - away)


def by_place(output: Tensor, at_point: Tensor) -> Tensor:
    return near(output, at_point) + 0.1 * torch.arange(len(output))


@pytest.mark.parametrize("function", [Stateful(), by_chance, with_the_mean, by_place])
def test_a_function_of_more_than_its_row_is_refused(function: Callable[..., Tensor]) -> None:
    classifier = brittle.Classifier(network(), bounds=None, decision=Custom(function))
    with pytest.raises(ModelError) as caught:
        brittle.score(classifier, points(), [MonteCarlo(sigma=0.1, draws=10, limit=None)])
    assert caught.value.code == "decision"


def test_a_run_is_not_resumed_with_a_changed_file(tmp_path: Path) -> None:
    """A change of a constant in the file counts, too."""
    file = tmp_path / "nearness.py"

    def run(limit: float) -> None:
        file.write_text(f"LIMIT = {limit}\n\n\ndef near(y, at):\n    return LIMIT - (y - at).abs().sum(1)\n")
        compare: Any = find_named(f"{file}:near")
        classifier = brittle.Classifier(network(), bounds=None, decision=Custom(compare))
        brittle.score(
            classifier, points()[:8], [MonteCarlo(sigma=0.5, draws=4, limit=None)], out=tmp_path / "run", resume=True
        )

    run(1.2)
    run(1.2)
    with pytest.raises(ResumeError, match=r"nearness\.py"):
        run(1.3)
