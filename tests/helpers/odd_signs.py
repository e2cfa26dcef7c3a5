"""Networks whose decision is a sign, with outputs that cannot change it, and sound ones that look alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from helpers import truth
from helpers.odd_parts import GRADIENTS, OddNetwork, custom, on_logits, small
from torch import Tensor, nn

from brittle.decisions import Custom, Decision, MultiLabel

NO_SIGN = ("outputs",)
"""Codes for outputs whose sign means nothing."""


def signs(name: str, change: Callable[[Tensor], Tensor], *refused: str, **more: Any) -> OddNetwork:
    """Return a network of three labels, unless `more` changes it: the small network's numbers after `change`."""
    options: dict[str, Any] = {"decision": "multilabel", "meaning": truth.label_sets()} | more
    return OddNetwork(name, "signs", options.pop("build", on_logits(change)), refused=refused, **options)


def one(name: str, change: Callable[[Tensor], Tensor], *refused: str, **more: Any) -> OddNetwork:
    """Return a network of one logit: the small network's first number after `change`."""
    options: dict[str, Any] = {"decision": None, "outputs": "binary-logit", "meaning": truth.one_logit} | more
    return signs(name, lambda z: change(z[:, :1]), *refused, **options)


def in_numpy(change: Callable[[Tensor], Tensor]) -> Callable[[], nn.Module]:
    """Return the same network with its layers and ReLU in NumPy, without a product of PyTorch."""
    weights = [parameter.detach().numpy().copy() for parameter in small().parameters()]

    def step(m: nn.Module, x: Tensor) -> Tensor:
        hidden = (x.detach().numpy() @ weights[0].T + weights[1]).clip(min=0)
        return change(torch.from_numpy((hidden @ weights[2].T + weights[3]).astype("float32")))

    return custom(step)


def ensemble(m: Any, x: Tensor) -> Tensor:
    return (m.base(x).sigmoid() + small(3, 4, 7)(x).sigmoid()) / 2


def same_positive(new: Tensor, old: Tensor) -> Tensor:
    return ((new > 0) == (old > 0)).all(dim=1)


HALF, LOW = truth.label_sets(0.5), truth.label_sets(0.3)
THIRD = truth.one_of_labels(2, 0.5)
SCALE = nn.Parameter(torch.tensor([100.0]))
EACH: list[str | Decision] = ["multilabel", "multilabel:2"]
HEADS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "sigmoids": (torch.sigmoid, HALF),
    "log-sigmoids": (nn.functional.logsigmoid, lambda z: HALF(z.exp())),
    "softmax": (lambda z: z.softmax(1), HALF),
    "log-softmax": (lambda z: z.log_softmax(1), lambda z: HALF(z.exp())),
}
"""Functions from numbers to probabilities, and from these to labels."""

FAMILY_SIGNS = [
    *(
        signs(f"{head} declared as logits, {decision}", change, *NO_SIGN, decision=decision, meaning=meaning)
        for head, (change, meaning) in HEADS.items()
        for decision in EACH
    ),
    signs("sigmoids in half precision", lambda z: z.half().sigmoid(), *NO_SIGN, meaning=HALF),
    signs("sigmoids that are clipped", lambda z: z.sigmoid().clamp(0.05, 0.95), *NO_SIGN, meaning=HALF),
    signs("hard sigmoids", nn.functional.hardsigmoid, *NO_SIGN, meaning=HALF),
    signs("a mean of two networks' sigmoids", lambda z: z, *NO_SIGN, meaning=HALF, build=custom(ensemble)),
    signs("sigmoids beside one logit", lambda z: torch.cat((z[:, :2].sigmoid(), z[:, 2:]), 1), *NO_SIGN,
          meaning=lambda z: truth.label_sets()(torch.cat((z[:, :2] - 0.5, z[:, 2:]), 1))),
    signs("sigmoids in NumPy", torch.sigmoid, *NO_SIGN, meaning=HALF, build=in_numpy(torch.sigmoid)),
    signs("log-sigmoids in NumPy", nn.functional.logsigmoid, *NO_SIGN, meaning=lambda z: HALF(z.exp()),
          build=in_numpy(nn.functional.logsigmoid)),
    signs("softmax declared as probabilities of labels", lambda z: z.softmax(1), *NO_SIGN, meaning=HALF,
          outputs="probs"),
    signs("sigmoids of sigmoids", lambda z: z.sigmoid().sigmoid(), *NO_SIGN, outputs="probs",
          meaning=truth.label_sets(float(torch.tensor(0.5).sigmoid()))),
    signs("sigmoids compared with 0 by a function", torch.sigmoid, *NO_SIGN, decision=Custom(same_positive),
          meaning=HALF),
    one("a log-sigmoid as one logit", nn.functional.logsigmoid, *NO_SIGN,
        meaning=lambda z: truth.one_logit(z + 0.6931)),
    one("per cent as one logit", lambda z: 100 * z.sigmoid(), *NO_SIGN, meaning=lambda z: truth.one_logit(z - 50)),
    one("a scale that was learned", lambda z: SCALE * z.sigmoid(), *NO_SIGN, meaning=lambda z: truth.one_logit(z - 50)),
    one("an exponential as one logit", torch.exp, *NO_SIGN, meaning=lambda z: truth.one_logit(z - 1)),
    one("a softplus as one logit", nn.functional.softplus, *NO_SIGN, meaning=lambda z: truth.one_logit(z - 0.6931)),
    one("a square as one logit", torch.square, *NO_SIGN, meaning=lambda z: truth.one_logit(z - 1)),
    one("an exponential in NumPy", torch.exp, *NO_SIGN, meaning=lambda z: truth.one_logit(z - 1),
        build=in_numpy(lambda z: z[:, :1].exp())),
    # Sound ones.
    signs("labels", lambda z: z),
    signs("one label of them", lambda z: z, decision="multilabel:2", meaning=truth.one_of_labels(2)),
    signs("sigmoids declared as such", torch.sigmoid, outputs="probs", meaning=HALF),
    signs("one sigmoid declared as such", torch.sigmoid, outputs="probs", decision="multilabel:2", meaning=THIRD),
    signs("a threshold of probabilities", torch.sigmoid, outputs="probs", decision=MultiLabel(threshold=0.3),
          meaning=LOW),
    signs("thresholds of probabilities", torch.sigmoid, outputs="probs",
          decision=MultiLabel(threshold=(0.2, 0.5, 0.7)), meaning=truth.label_sets((0.2, 0.5, 0.7))),
    signs("a threshold of logits", lambda z: z, decision=MultiLabel(threshold=0.3), meaning=LOW),
    signs("a threshold between sigmoids that are no logits", torch.sigmoid, decision=MultiLabel(threshold=0.3),
          meaning=LOW),
    signs("rare labels", lambda z: z - 9),
    signs("labels that always hold", lambda z: z + 9),
    signs("labels, one of them masked", lambda z: torch.cat((z[:, :2], torch.full_like(z[:, :1], -1e4)), 1)),
    signs("labels of which one is rare", lambda z: z - torch.tensor([0.0, 0.0, 9.0])),
    one("a rare class", lambda z: z - 9),
    one("a rare class in NumPy", lambda z: z - 9, build=in_numpy(lambda z: z[:, :1] - 9), without_gradients=GRADIENTS),
    one("an amount as one logit", lambda z: 200 + 30 * z),
]  # fmt: skip
