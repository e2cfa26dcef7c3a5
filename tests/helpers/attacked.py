"""Networks that are attacked, and how each attack is called."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import brittle
from brittle.measure.forward import Clean, look
from brittle.measure.nearest import ATTACKS, Nearest, NearestPoint
from brittle.measure.nearest.norms import NORMS

PAIRS = [("best", norm) for norm in NORMS] + [
    (name, norm) for name, attack in ATTACKS.items() for norm in NORMS if norm in attack.norms
]

ONE_NORM = [*PAIRS[: len(NORMS)], *{attack: (attack, norm) for attack, norm in PAIRS[len(NORMS) :]}.values()]
"""`best` in every norm, and every attack in one."""


def run(classifier: brittle.Classifier, points: Tensor, **options) -> NearestPoint:
    return Nearest(**options)(classifier, clean_pass(classifier, points))


def clean_pass(classifier: brittle.Classifier, points: Tensor, rows: int | None = None) -> Clean:
    return look(classifier, points, [str(number) for number in range(len(points))], 0, rows=rows)


def linear_margin(network: nn.Linear, points: Tensor, norm: str) -> Tensor:
    """`min_j g_j / ||w_t - w_j||_q` without a box, `[B]`."""
    logits, weight = network(points).detach().double(), network.weight.detach().double()
    top = logits.argmax(dim=1)
    gaps = logits.gather(1, top[:, None]) - logits
    slopes = (weight[top][:, None] - weight).norm(p={"linf": 1, "l2": 2, "l1": torch.inf}[norm], dim=2)
    return (gaps / slopes).scatter(1, top[:, None], torch.inf).amin(dim=1)
