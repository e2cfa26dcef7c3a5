"""Odd networks, built by mistake or sound and hard: one line each, with a name and a builder.

Six families. `company`: rows depend on the other rows of their batch. `state`: earlier calls matter. `outputs`: the
output is no plain class scores. `signs`: the decision is a sign. `gradients`: the gradient is not that of the function.
`geometry`: sound networks whose margins under noise are not normal, or that only look like members of the other
families.

`brittle` may refuse a network by a code on its list; else every interval that counts must hold the truth of
`tests/helpers/truth.py`. A network with an empty list must be scored.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import torch
from helpers import truth
from helpers.odd_company import FAMILY_COMPANY, FAMILY_STATE, dropped
from helpers.odd_geometry import FAMILY_GEOMETRY
from helpers.odd_parts import (
    COMPANY,
    GRADIENTS,
    STATE,
    Custom,
    OddNetwork,
    Step,
    custom,
    gradients,
    on_logits,
    outputs,
    small,
)
from helpers.odd_signs import FAMILY_SIGNS
from torch import Tensor, nn

# What is returned are no plain class scores.


def masked(value: float) -> Callable[[Tensor], Tensor]:
    """Return a function that adds a class that can never win."""
    return lambda z: torch.cat((z, z.new_full((len(z), 1), value)), dim=1)


def half_detached(x: Tensor) -> Tensor:
    return small()(x) + 2 * small(3, 4, 7)(x).detach()


def _masked_networks(value: float) -> list[OddNetwork]:
    """Return networks with a class masked by a value: a sound one and three with defects."""
    mask, name = masked(value), f"a class masked with {value:g}"
    return [
        outputs(name, on_logits(mask)),
        outputs(f"{name}, dropout left on", custom(lambda m, x: mask(dropped(m, x))), *STATE, fresh=True),
        outputs(f"{name}, centred over the batch", on_logits(lambda z: mask(z - 0.7 * z.mean(0))), *COMPANY),
        outputs(f"{name}, a detached branch", custom(lambda m, x: mask(half_detached(x))), without_gradients=GRADIENTS),
    ]


def where_first(value: float) -> Callable[[], nn.Module]:
    """Return a network with `value` as the first class's score where the first number is large."""

    def step(m: Custom, x: Tensor) -> Tensor:
        logits = m.base(x)
        return torch.where((x[:, :1] > 0.8) & (torch.arange(3) == 0), value, logits)

    return custom(step)


NOT_SCORES = ("sigmoid_outputs", "probabilities", "not_logits", "outputs")
"""Codes for outputs between 0 and 1."""

FAMILY_OUTPUTS = [
    outputs("one logit", on_logits(lambda z: z[:, :1]), outputs="binary-logit", meaning=truth.one_logit),
    outputs("a sigmoid declared as one logit", on_logits(lambda z: z[:, :1].sigmoid()), *NOT_SCORES,
            outputs="binary-logit", meaning=truth.one_probability),
    outputs("a sigmoid of a shifted logit declared as one logit", on_logits(lambda z: (z[:, :1] - 2).sigmoid()),
            *NOT_SCORES, outputs="binary-logit", meaning=truth.one_probability),
    outputs("probabilities declared as logits", on_logits(lambda z: z.softmax(1)), *NOT_SCORES),
    outputs("probabilities declared as such", on_logits(lambda z: z.softmax(1)), outputs="probs"),
    outputs("log-probabilities declared as logits", on_logits(lambda z: z.log_softmax(1))),
    outputs("log-probabilities declared as probabilities", on_logits(lambda z: z.log_softmax(1)), "outputs",
            outputs="probs"),
    outputs("logits declared as probabilities", on_logits(lambda z: z), "outputs", outputs="probs"),
    outputs("sigmoids of many labels", on_logits(lambda z: z.sigmoid()), *NOT_SCORES),
    outputs("a softmax so sharp that it saturates", on_logits(lambda z: (200 * z).softmax(1)), *GRADIENTS,
            outputs="probs"),
    outputs("the winner as a one-hot row", on_logits(lambda z: nn.functional.one_hot(z.argmax(1), 3).float()),
            *NOT_SCORES, *GRADIENTS),
    outputs("ranks", on_logits(lambda z: z.argsort(1).argsort(1).float()), *NOT_SCORES, without_gradients=GRADIENTS),
    *itertools.chain.from_iterable(_masked_networks(value) for value in (-1e2, -1e4, -1e9, -3e38)),
    outputs("a class masked with -inf", on_logits(masked(-math.inf)), "nonfinite_logits", "too_many_failures"),
    outputs("rounded to halves", on_logits(lambda z: torch.round(2 * z) / 2), without_gradients=GRADIENTS),
    outputs("rounded to whole numbers", on_logits(torch.round), without_gradients=GRADIENTS),
    outputs("clamped, so that large ones tie", on_logits(lambda z: z.clamp(-1, 1)), *GRADIENTS),
    outputs("rectified, so that small ones tie", on_logits(lambda z: torch.relu(z - 0.5)), *GRADIENTS),
    outputs("one class constant", on_logits(lambda z: torch.cat((z, torch.ones(len(z), 1)), 1))),
    outputs("two classes alike", on_logits(lambda z: torch.cat((z, z[:, :1]), 1))),
    outputs("all outputs the same", on_logits(lambda z: 0 * z + torch.arange(3)), "constant_output"),
    outputs("half precision", on_logits(lambda z: z.half())),
    outputs("brain floating point", on_logits(lambda z: z.bfloat16()), without_gradients=GRADIENTS),
    outputs("whole numbers", on_logits(lambda z: (10 * z).round().long()), without_gradients=GRADIENTS),
    outputs("scores of 1e30", on_logits(lambda z: z * 1e30), without_gradients=(*GRADIENTS, "nonfinite_gradient")),
    outputs("scores of 1e-30", on_logits(lambda z: z * 1e-30), "constant_output", *GRADIENTS),
    outputs("1e7 added to all", on_logits(lambda z: z + 1e7)),
    outputs("NaN where the first number is large", where_first(math.nan), "too_many_failures", "nonfinite_logits"),
    outputs("infinite where the first number is large", where_first(math.inf), "too_many_failures",
            "nonfinite_logits"),
    outputs("minus infinite where the first number is large", where_first(-math.inf), "too_many_failures",
            "nonfinite_logits"),
    outputs("double precision", on_logits(lambda z: z.double())),
]  # fmt: skip


# Gradients that are not those of the function.


def hidden(change: Callable[[Tensor], Tensor]) -> Step:
    """Return a step: the small network with its hidden layer changed."""
    return lambda m, x: m.base[2](change(m.base[1](m.base[0](x))))


def scaled_gradient(factor: float) -> Callable[[Tensor], Tensor]:
    """Return the identity with a gradient that is `factor` times too large."""
    return lambda z: factor * z - ((factor - 1) * z).detach()


def without_grad(m: Custom, x: Tensor) -> Tensor:
    with torch.no_grad():
        return m.base(x)


FAMILY_GRADIENTS = [
    gradients("detached features", hidden(lambda h: h.detach())),
    gradients("no_grad", without_grad),
    gradients("rounded inputs", lambda m, x: m.base(torch.round(4 * x) / 4)),
    gradients("rounded features", hidden(lambda h: torch.round(4 * h) / 4)),
    gradients("signs for features", hidden(torch.sign)),
    gradients("straight-through rounding", hidden(lambda h: h + (torch.round(2 * h) / 2 - h).detach())),
    gradients("straight-through signs", hidden(lambda h: h + (torch.sign(h) - h).detach())),
    gradients("a detached branch", lambda m, x: half_detached(x)),
    gradients("a gradient twice as large", lambda m, x: scaled_gradient(2.0)(m.base(x))),
    gradients("a gradient half as large", lambda m, x: scaled_gradient(0.5)(m.base(x))),
    gradients("a gradient of the other sign", lambda m, x: scaled_gradient(-1.0)(m.base(x))),
    gradients("half of the inputs detached", lambda m, x: m.base(torch.cat((x[:, :2].detach(), x[:, 2:]), 1))),
    gradients("through numpy", lambda m, x: m.base(torch.from_numpy(x.detach().numpy().copy()))),
    gradients("saturated", lambda m, x: torch.tanh(60 * m.base(x)) * torch.tensor([1.0, 1.1, 1.2])),
    gradients("a gradient that is clipped", lambda m, x: m.base(
        scaled_gradient(0.01)(x.clamp(-0.5, 0.5)) + x - x.clamp(-0.5, 0.5))),
    gradients("hard choice of a branch", lambda m, x: torch.where(x[:, :1] > 0, m.base(x), m.base(-x)),
              without_gradients=()),
]  # fmt: skip


ZOO: dict[str, OddNetwork] = {
    network.name: network
    for network in (
        *(*FAMILY_COMPANY, *FAMILY_STATE, *FAMILY_OUTPUTS, *FAMILY_SIGNS, *FAMILY_GRADIENTS, *FAMILY_GEOMETRY),
    )
}
"""All odd networks by name."""
