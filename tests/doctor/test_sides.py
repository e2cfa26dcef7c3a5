"""A decision by a sign: outputs that cannot change it are refused; a network that predicts the same everywhere not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from helpers import zoo
from helpers.examined import codes, examined
from torch import Tensor, nn

from brittle import doctor
from brittle.data import array_points
from brittle.decisions import Custom, MultiLabel
from brittle.scores import Moments

COUNT, SIZE, LABELS = 64, 20, 5
X = torch.rand(COUNT, SIZE, generator=torch.Generator().manual_seed(1))


class Changed(nn.Module):
    """A network whose numbers go through a function."""

    def __init__(self, network: nn.Module, change: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.network, self.change = network, change
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        return self.change(self.network(x))


def network(change: Callable[[Tensor], Tensor] = lambda z: z, outputs: int = LABELS) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Changed(nn.Sequential(nn.Linear(SIZE, 32), nn.Tanh(), nn.Linear(32, outputs)), change)


def found(model: Any, x: Tensor = X, y: Tensor | None = None, **declared: Any) -> str | None:
    """How the check of class scores ends, where it has something to say of the outputs."""
    subject = examined(model, [Moments(0.2, draws=4)], x, **declared)
    if y is not None:
        points = array_points(x, y, targets=True)
        batch = next(iter(points.batches(COUNT)))
        subject = doctor.Subject(subject.classifier.deciding(subject.decision), batch, None, subject.scores, 0, COUNT)
    with subject.classifier.evaluating():
        outcomes = doctor.run_all(subject)
    return next((one.state for one in outcomes if one.name == "class scores" and one.code == "outputs"), None)


ONE_SIDED: dict[str, Callable[[Tensor], Tensor]] = {
    "sigmoid": torch.sigmoid,
    "log-sigmoid": nn.functional.logsigmoid,
    "logarithm": lambda z: z.sigmoid().log(),
    "per cent": lambda z: 100 * z.sigmoid(),
    "exponential": torch.exp,
    "softplus": nn.functional.softplus,
    "rectified": lambda z: (z + 6).relu(),
    "mean of two sigmoids, clipped": lambda z: ((z.sigmoid() + (2 * z).sigmoid()) / 2).clamp(0.001, 0.999),
    "sigmoid of each label": lambda z: torch.stack([one.sigmoid() for one in z.unbind(1)], dim=1),
    "sigmoid in half precision": lambda z: z.half().sigmoid(),
}
"""Functions whose results never change sign."""


@pytest.mark.parametrize("decision", ["one-logit", "multilabel", "multilabel:each"])
@pytest.mark.parametrize("head", ONE_SIDED)
def test_what_cannot_change_sign_is_refused(head: str, decision: str) -> None:
    """At whatever the last layer adds, so also where labels are rare or hold nearly always; one point is enough."""
    for added, count in ((0.0, COUNT), (-3.0, COUNT), (3.0, 1)):
        model = network(lambda z, added=added: ONE_SIDED[head](z + added), 1 if decision == "one-logit" else LABELS)
        assert found(model, X[:count], decision=decision) == "failed", added


@pytest.mark.every_other
@pytest.mark.parametrize("shift", [0.0, -100.0])
@pytest.mark.parametrize("kind", list(zoo.KINDS))
def test_a_healthy_network_is_never_refused(kind: str, shift: float) -> None:
    """Of 14 kinds, with small and large weights; rare labels too, and such as nearly always hold."""
    x = torch.rand(COUNT, *zoo.SHAPE, generator=torch.Generator().manual_seed(0))
    for gain, outputs, decision in ((1.0, 1, "one-logit"), (3.0, zoo.CLASSES, "multilabel")):
        model = Changed(zoo.network(kind, torch.float32, gain=gain), lambda z, n=outputs: z[:, :n] - shift)
        assert found(model, x, decision=decision) in (None, "note")


def test_a_decision_that_is_the_same_everywhere_is_noted_unless_all_labels_agree() -> None:
    rare = network(lambda z: z - 9)
    assert found(rare, decision="multilabel") == "note"
    assert found(rare, y=torch.zeros(COUNT, LABELS), decision="multilabel") is None
    assert found(rare, y=torch.eye(LABELS)[torch.arange(COUNT) % LABELS], decision="multilabel") == "note"
    beside = network(lambda z: torch.cat((z[:, :1] - 9, z[:, 1:]), dim=1))
    assert found(beside, decision="multilabel") is None


def test_a_probability_beside_a_threshold_of_its_own_is_scored() -> None:
    """The same outputs are refused as logits, whose threshold is 0."""
    assert found(network(lambda z: (3 * z).sigmoid()), decision=MultiLabel(threshold=0.5)) is None
    assert found(network(torch.sigmoid), decision="multilabel", outputs="probs") is None
    assert found(network(lambda z: z.sigmoid().sigmoid()), decision="multilabel", outputs="probs") == "failed"


def positive(new: Tensor, old: Tensor) -> Tensor:
    return ((new > 0) == (old > 0)).flatten(1).all(dim=1)


def test_a_function_that_never_says_no_is_noted() -> None:
    """The sign of a sigmoid is no mask; a function may compare it with another number, so it is not refused."""
    assert found(network(torch.sigmoid), decision=Custom(positive)) == "note"
    assert found(network(), decision=Custom(positive)) is None


def outside(change: Callable[[Tensor], Tensor]) -> Callable[[Any], Any]:
    """A linear network as a function of NumPy arrays."""
    weight = torch.randn(LABELS, SIZE, generator=torch.Generator().manual_seed(0)).numpy()
    return lambda x: change(torch.from_numpy(x @ weight.T)).numpy()


def test_outside_pytorch_inputs_far_away_tell() -> None:
    declared: dict[str, Any] = {"decision": "multilabel", "arrays": "numpy"}
    for change in (torch.sigmoid, torch.exp, nn.functional.logsigmoid):
        assert found(outside(change), **declared) == "failed"
    for change in (lambda z: z - 9, lambda z: 3 + z.abs()):
        assert found(outside(change), **declared) == "note"


def test_a_softmax_is_no_set_of_labels() -> None:
    assert (
        codes(
            examined(
                network(lambda z: z.softmax(1)), [Moments(0.2, draws=4)], X, decision="multilabel", outputs="probs"
            )
        )["class scores"]
        == "outputs"
    )
