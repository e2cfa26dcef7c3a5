"""The loop that trains: the same seed gives the same weights, and a kill changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from studies.train.augmentation import SHIFT, augment
from studies.train.loop import Training, train
from studies.train.recipes import Recipe, Schedule
from studies.train.stored import digest
from studies.train.ways.gradient_norm import GradientNorm
from studies.train.ways.pgd import PGD
from studies.train.ways.plain import Plain

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
def test_the_same_seed_gives_the_same_weights_and_another_does_not(recipe: Recipe, tmp_path: Path) -> None:
    first, again, other = (trained(recipe, tmp_path / str(number), number // 2) for number in range(3))
    assert first == again != other


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


def test_a_checkpoint_of_other_weights_is_not_used(tmp_path: Path) -> None:
    trained(RECIPES[0], tmp_path)
    assert not begin(RECIPES[0]).restore(tmp_path / "checkpoint.pt", "another test")
    assert not begin(RECIPES[0]).restore(tmp_path / "absent.pt", "the test")
    assert begin(RECIPES[0]).restore(tmp_path / "checkpoint.pt", "the test")


def test_the_strength_grows_over_its_share_of_the_steps() -> None:
    seen = []

    @dataclass(frozen=True)
    class Seeing(Plain):
        def loss(self, network: nn.Module, x: Tensor, y: Tensor, grown: float = 1.0) -> Tensor:
            seen.append(grown)
            return super().loss(network, x, y, grown)

    training = begin(Recipe("mnist", "linear", 0, Seeing(), Schedule(epochs=2, batch=10, ramp=0.5), None))
    training.epoch()
    training.epoch()
    assert seen == pytest.approx([0, 0.25, 0.5, 0.75, 1, 1, 1, 1])


def test_an_augmented_image_is_a_shift_of_it_or_of_its_mirror_image() -> None:
    image = torch.rand(2, 6, 5, generator=torch.Generator().manual_seed(0)) + 1
    torch.manual_seed(0)
    seen = set()
    shifts = {}
    for mirrored in (False, True):
        wide = torch.zeros(2, 6 + 2 * SHIFT, 5 + 2 * SHIFT)
        wide[:, SHIFT : SHIFT + 6, SHIFT : SHIFT + 5] = image.flip(2) if mirrored else image
        for down in range(2 * SHIFT + 1):
            for right in range(2 * SHIFT + 1):
                shifts[mirrored, down, right] = wide[:, down : down + 6, right : right + 5]
    for one in augment(image.expand(200, -1, -1, -1)):
        found = [key for key, shifted in shifts.items() if torch.equal(shifted, one)]
        assert found
        seen.add(found[0])
    assert {key[0] for key in seen} == {False, True}
    assert {key[1] for key in seen} == {key[2] for key in seen} == set(range(2 * SHIFT + 1))
