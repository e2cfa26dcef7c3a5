"""The one loop that every network is trained by; it goes on where it was killed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import convert_conv2d_weight_memory_format
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

from brittle.store.writing import replacing
from studies.train.architectures import build
from studies.train.augmentation import augment
from studies.train.images import DATASETS
from studies.train.recipes import Recipe

WARM = 0.25
"""Share of the steps over which the learning rate rises."""


@dataclass(frozen=True)
class Trained:
    """A network after its last epoch.

    Attributes:
        network: in evaluation mode.
        seconds: of training, those before a kill included.
        loss: the mean over the last epoch.
    """

    network: nn.Module
    seconds: float
    loss: float


class Training:
    """A network, its optimiser and its learning rate, on their way through the epochs.

    The epoch draws its order, its noise and its starts from a seed of its own, so one that is begun again after a kill
    is the same as one that was not interrupted.

    Args:
        recipe: what is trained.
        seed: of everything that is drawn.
        x: training images `[N, C, H, W]`.
        y: their classes `[N]`.
        device: on which it computes.
    """

    def __init__(self, recipe: Recipe, seed: int, x: Tensor, y: Tensor, device: torch.device) -> None:
        self.recipe, self.seed, self.device = recipe, seed, device
        self.images = TensorDataset(x, y)
        schedule = recipe.schedule
        torch.manual_seed(self._seed("weights"))
        self.network = build(recipe.architecture, DATASETS[recipe.dataset], recipe.width).to(device)
        if schedule.channels_last:
            convert_conv2d_weight_memory_format(self.network, torch.channels_last)
        self.steps = schedule.epochs * -(-len(x) // schedule.batch)
        parameters = self.network.parameters()
        if schedule.optimiser == "adam":
            self.optimiser: torch.optim.Optimizer = torch.optim.AdamW(
                parameters, schedule.rate, weight_decay=schedule.decay
            )
        else:
            self.optimiser = torch.optim.SGD(parameters, schedule.rate, 0.9, weight_decay=schedule.decay)
        self.rates = torch.optim.lr_scheduler.OneCycleLR(
            self.optimiser, schedule.rate, self.steps, pct_start=WARM, cycle_momentum=False
        )
        self.epochs, self.seconds, self.loss = 0, 0.0, float("nan")

    def epoch(self) -> None:
        """One pass over the images."""
        begun = time.perf_counter()
        torch.manual_seed(self._seed(f"epoch {self.epochs}"))
        self.network.train()
        order = BatchSampler(RandomSampler(self.images), self.recipe.schedule.batch, drop_last=False)
        losses = [self._step(x, y) for x, y in DataLoader(self.images, sampler=order, batch_size=None)]
        self.loss = float(torch.stack(losses).mean())
        self.epochs += 1
        self.seconds += time.perf_counter() - begun

    def _step(self, x: Tensor, y: Tensor) -> Tensor:
        schedule = self.recipe.schedule
        done = self.rates.last_epoch / self.steps
        grown = min(1.0, done / schedule.ramp) if schedule.ramp else 1.0
        x, y = x.to(self.device), y.to(self.device)
        if schedule.augmented:
            x = augment(x)
        if schedule.channels_last:
            x = x.contiguous(memory_format=torch.channels_last)
        self.optimiser.zero_grad()
        loss = self.recipe.way.loss(self.network, x, y, grown)
        loss.backward()
        self.optimiser.step()
        self.rates.step()
        return loss.detach()

    def _seed(self, purpose: str) -> int:
        """Return a seed of 63 bits of its own for each network, purpose and seed."""
        return int.from_bytes(hashlib.sha256(f"{self.seed}/{self.recipe.name}/{purpose}".encode()).digest()[:8]) >> 1

    def save(self, path: Path, made_by: str) -> None:
        """Write all that the next epoch starts from, whole or not at all."""
        state = {
            "made_by": made_by,
            "epochs": self.epochs,
            "seconds": self.seconds,
            "loss": self.loss,
            "network": self.network.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "rates": self.rates.state_dict(),
        }
        with replacing(path) as file:
            torch.save(state, file)

    def restore(self, path: Path, made_by: str) -> bool:
        """Go on from the state in `path`, where there is one that was made by the same."""
        if not path.is_file():
            return False
        state: dict[str, Any] = torch.load(path, map_location=self.device, weights_only=True)
        if state["made_by"] != made_by:
            return False
        self.epochs, self.seconds, self.loss = state["epochs"], state["seconds"], state["loss"]
        self.network.load_state_dict(state["network"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.rates.load_state_dict(state["rates"])
        return True


def train(training: Training, checkpoint: Path, made_by: str, say: Callable[[str], None]) -> Trained:
    """Train to the last epoch, with a checkpoint after each.

    Args:
        training: at its beginning.
        checkpoint: file of the checkpoint, in a folder that exists; it stays until the network is stored.
        made_by: what the weights depend on, in words; a checkpoint that was made by anything else is not used.
        say: is told how far it is.
    """
    name, epochs = training.recipe.name, training.recipe.schedule.epochs
    if training.restore(checkpoint, made_by):
        say(f"{name}: goes on after epoch {training.epochs} of {epochs}")
    while training.epochs < epochs:
        training.epoch()
        training.save(checkpoint, made_by)
        say(f"{name}: epoch {training.epochs} of {epochs}, loss {training.loss:.3f}, {training.seconds:.0f} s")
    return Trained(training.network.eval(), training.seconds, training.loss)
