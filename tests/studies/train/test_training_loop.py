"""The loop that trains: the same seed gives the same weights, and a kill changes nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from studies.train.loop import Training, train
from studies.train.recipes import Recipe, Schedule
from studies.train.stored import digest
from studies.train.ways.gradient_norm import GradientNorm
from studies.train.ways.pgd import PGD

EPOCHS = 3
SCHEDULE = Schedule(epochs=EPOCHS, batch=16, augmented=True)
RECIPES = [
    Recipe("mnist", "cnn", 2, PGD(0.1, 2), SCHEDULE, None),
    Recipe("cifar10", "resnet3_prelu", 2, GradientNorm(1e-3), replace(SCHEDULE, optimiser="sgd", decay=1e-3), None),
]


class KilledError(Exception):
    """The process dies."""


def dies_after(steps: int, patch: pytest.MonkeyPatch) -> None:
    """The process dies in the step after so many."""
    step, left = Training._step, [steps]

    def dying(self: Training, x: Tensor, y: Tensor) -> Tensor:
        left[0] -= 1
        if left[0] < 0:
            raise KilledError
        return step(self, x, y)

    patch.setattr(Training, "_step", dying)


@pytest.fixture(autouse=True)
def _own_generator() -> Any:
    with torch.random.fork_rng(devices=[]):
        yield


def begin(recipe: Recipe, seed: int = 0) -> Training:
    """A training of some noise; what was drawn before does not count."""
    torch.rand(seed + 3)
    generator = torch.Generator().manual_seed(0)
    shape = (1, 28, 28) if recipe.dataset == "mnist" else (3, 32, 32)
    x = torch.rand(40, *shape, generator=generator)
    return Training(recipe, seed, x, torch.arange(40) % 10, torch.device("cpu"))


def trained(recipe: Recipe, folder: Path, seed: int = 0) -> str:
    """The digest of the weights after all epochs."""
    folder.mkdir(exist_ok=True)
    return digest(train(begin(recipe, seed), folder / "checkpoint.pt", "the test", lambda text: None).network)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
@pytest.mark.parametrize("step", [1, 5])
def test_a_kill_in_the_middle_changes_no_weight(recipe: Recipe, step: int, tmp_path: Path) -> None:
    """An epoch has three steps: the first kill leaves nothing, the second the first epoch."""
    whole = trained(recipe, tmp_path / "whole")
    with pytest.MonkeyPatch.context() as patch:
        dies_after(step, patch)
        with pytest.raises(KilledError):
            trained(recipe, tmp_path / "killed")
    assert (tmp_path / "killed" / "checkpoint.pt").exists() == (step > 3)
    assert trained(recipe, tmp_path / "killed") == whole
