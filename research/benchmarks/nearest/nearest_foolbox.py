"""FMN and DDN of Foolbox, where it is installed: `pip install foolbox`."""

from __future__ import annotations

import importlib
import importlib.util
import math
from typing import Any

import torch
from nearest_rivals import Network, Rival
from torch import Tensor, nn

ATTACKS = {"foolbox_fmn": {"linf": "LInfFMNAttack"}, "foolbox_ddn": {"l2": "DDNAttack"}}
"""FMN in L2 is left out: in Foolbox 3.3.4 its projection divides a norm by itself, so that no radius is kept."""


class Wrapped(nn.Module):
    """A function as the module that Foolbox needs."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x)


def installed() -> bool:
    """Return whether Foolbox can be imported."""
    return importlib.util.find_spec("foolbox") is not None


def rival(name: str) -> Rival:
    """Return one of `ATTACKS`, with the parameters that Foolbox sets."""

    def attack(network: Network, x: Tensor, labels: Tensor, norm: str, passes: int) -> Tensor:
        foolbox: Any = importlib.import_module("foolbox")
        model = foolbox.PyTorchModel(Wrapped(network).eval(), bounds=(0, 1), device=torch.device("cpu"))
        foolbox_attack = getattr(foolbox.attacks, ATTACKS[name][norm])(steps=math.ceil(passes / 2))
        return foolbox_attack.run(model, x, foolbox.Misclassification(labels)).detach()

    return attack
