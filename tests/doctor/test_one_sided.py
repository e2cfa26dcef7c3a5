"""A decision by a sign: outputs that cannot change it are refused; a network that predicts the same everywhere not.

`helpers/odd_signs.py` has others: thresholds, functions for decisions, networks outside PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from helpers import zoo
from torch import Tensor, nn

import brittle
from brittle import doctor
from brittle.data import array_points
from brittle.doctor.checks import CHECKS
from brittle.errors import ModelError
from brittle.scores import Moments, MonteCarlo

COUNT, SIZE, LABELS = 64, 20, 5
LOGSIGMOID = nn.functional.logsigmoid
ONE_LOGIT: dict[str, Any] = {"outputs": "binary-logit"}
LABEL_SETS: dict[str, Any] = {"decision": "multilabel"}


def points(count: int = COUNT) -> Tensor:
    return torch.rand(count, SIZE, generator=torch.Generator().manual_seed(1))


class Transformed(nn.Module):
    """A network whose numbers go through a function."""

    def __init__(self, network: nn.Module, change: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.network, self.change = network, change
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        return self.change(self.network(x))


def network(body: str, outputs: int = LABELS) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if body == "linear":
            return nn.Linear(SIZE, outputs)
        hidden = {"tanh": nn.Tanh, "relu": nn.ReLU}[body]
        return nn.Sequential(nn.Linear(SIZE, 32), hidden(), nn.Linear(32, outputs))


def outcome(model: Any, x: Tensor, targets: Tensor | None = None, **declared: Any) -> list[str]:
    """Return the outcome of the check of class scores: `refused`, `noted`, or nothing."""
    data = array_points(x, targets, targets=targets is not None)
    batch = next(iter(data.batches(COUNT)))
    classifier = brittle.Classifier(model, **declared)
    subject = doctor.Subject(classifier, batch, data.labels, [Moments(0.2, draws=4)], 0, COUNT, data)
    check = next(candidate for candidate in CHECKS if candidate.name == "class scores")
    try:
        with subject.classifier.evaluating():
            codes = [finding.code for finding in check.run(subject) if isinstance(finding, doctor.Finding)]
    except ModelError as error:
        return ["refused" if error.code == "outputs" else error.code]
    return ["noted" if code == "outputs" else code for code in codes]


ONE_SIDED: dict[str, Callable[[Tensor], Tensor]] = {
    "sigmoid": torch.sigmoid,
    "log-sigmoid": LOGSIGMOID,
    "per cent": lambda z: 100 * z.sigmoid(),
    "between two numbers": lambda z: 3 + 4 * z.sigmoid(),
    "exponential": torch.exp,
    "softplus": nn.functional.softplus,
    "rectified": torch.relu,
    "hard sigmoid": nn.functional.hardsigmoid,
    "minus a square": lambda z: -z.square(),
    "sigmoid in half precision": lambda z: z.half().sigmoid(),
}
"""Functions whose results never change sign."""


@pytest.mark.every_other
@pytest.mark.parametrize(
    ("body", "declared"),
    [("linear", ONE_LOGIT), ("tanh", LABEL_SETS), ("relu", {"decision": "multilabel:1"})],
)
@pytest.mark.parametrize("head", ONE_SIDED)
def test_outputs_of_one_sign_are_refused(head: str, declared: dict[str, Any], body: str) -> None:
    """The shift of the last layer does not matter, so rare labels and nearly constant ones are refused, too."""
    for shift in (0.0, -3.0, 3.0) if head not in ("rectified", "hard sigmoid") else (0.0,):
        base = network(body, 1 if declared == ONE_LOGIT else LABELS)
        model = Transformed(base, lambda z, added=shift: ONE_SIDED[head](z + added))
        assert outcome(model, points(), **declared) == ["refused"], shift


@pytest.mark.parametrize("count", [1, 5, 64])
def test_few_points_show_outputs_of_one_sign(count: int) -> None:
    for change in (torch.sigmoid, LOGSIGMOID):
        assert outcome(Transformed(network("linear"), change), points(count), decision="multilabel") == ["refused"]


@pytest.mark.every_other
@pytest.mark.parametrize("shift", [0.0, -100.0])
@pytest.mark.parametrize("kind", list(zoo.KINDS))
def test_a_healthy_network_is_never_refused(kind: str, shift: float) -> None:
    """Networks of 14 kinds, with small and large weights, in three precisions; labels may be rare or nearly constant.

    A constant beside the network moves its numbers, so no weight that is looked at knows of it.
    """
    x = torch.rand(COUNT, *zoo.SHAPE, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        for gain, outputs, declared in ((1.0, 1, ONE_LOGIT), (3.0, zoo.CLASSES, LABEL_SETS)):
            model = Transformed(zoo.network(kind, dtype, gain=gain), lambda z, n=outputs: z[:, :n] - shift)
            inputs = x if dtype == torch.float64 else x.float()
            assert outcome(model, inputs, **declared) in ([], ["noted"])


def test_a_constant_decision_is_noted_unless_all_labels_agree() -> None:
    rare = Transformed(network("tanh"), lambda z: z - 9)
    assert outcome(rare, points(), decision="multilabel") == ["noted"]
    assert outcome(rare, points(), torch.zeros(COUNT, LABELS), decision="multilabel") == []
    assert outcome(rare, points(), torch.eye(LABELS)[torch.arange(COUNT) % LABELS], decision="multilabel") == ["noted"]


def test_each_label_is_checked_separately() -> None:
    """Two sigmoids beside logits are named; a rare or masked label beside others is no finding."""
    model = Transformed(network("linear"), lambda z: torch.cat((z[:, :2].sigmoid(), z[:, 2:]), dim=1))
    with pytest.raises(ModelError, match="label 0, 1 ") as caught:
        brittle.score(
            brittle.Classifier(model, decision="multilabel"), points(), [MonteCarlo(0.1, draws=4, limit=None)]
        )
    assert caught.value.code == "outputs"
    assert outcome(model, points(), decision="multilabel:0") == ["refused"]
    assert outcome(model, points(), decision="multilabel:3") == []
    for value in (lambda z: z[:, :1] - 9, lambda z: torch.full_like(z[:, :1], -1e4)):
        beside = Transformed(network("linear"), lambda z, value=value: torch.cat((value(z), z[:, 1:]), dim=1))
        assert outcome(beside, points(), decision="multilabel") == []


def test_ambiguous_outputs_are_noted() -> None:
    """A threshold of trees: far inputs give what near ones give, one side of 0, and the model is opaque."""

    def steps(x: Any) -> Any:
        return 2.0 + (x > 0.5) @ torch.linspace(0.1, 1, SIZE * LABELS).reshape(SIZE, LABELS).numpy()

    assert outcome(steps, points(), decision="multilabel", arrays="numpy") == ["noted"]
