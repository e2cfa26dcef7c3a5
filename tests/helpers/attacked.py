"""Networks that are attacked, and how each attack is called."""

from __future__ import annotations

from torch import Tensor

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
