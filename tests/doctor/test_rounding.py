"""How far logits may lie apart: rounding is allowed, and a difference at no size of the logits is hidden by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from helpers.examined import COUNT, Recurrent, codes, examined, subject_of
from helpers.problems import Wrapped, inputs, small_network
from torch import Tensor, nn

import brittle
from brittle.doctor.rounding import allowed, excess, precision_of
from brittle.scores import Softmax


def test_rounding_is_measured_by_the_logits_that_compete() -> None:
    logits = torch.tensor([[3.0, 1.0, -1e9], [2.0, -1.0, -1e9], [2.5, 2.0, -1e9]])
    found = allowed(logits, torch.finfo(torch.float32).eps)
    assert float(found[:, :2].max()) < 1e-3
    assert float(found[:, 2].min()) > 64  # a unit in the last place of 1e9
    scaled = allowed(1e-6 * logits, torch.finfo(torch.float32).eps)
    assert torch.allclose(scaled, 1e-6 * found)


def steps(x: Tensor, logits: Tensor) -> Tensor:
    """Logits in steps, with a sum that is rounded in another way where the batch is larger."""
    return ((logits * 100 + 1e-6 * len(x)).round()) / 100


def shifted_to_a_step(network: nn.Module, x: Tensor) -> Wrapped:
    """The network in steps of which one lies where the first row is, but for rounding."""
    with torch.no_grad():
        offset = 0.005 - (network(x)[0] % 0.01) - 0.32e-7
    return Wrapped(lambda x, z: steps(x, z + offset))


def test_a_step_of_the_network_excuses_what_rounding_does() -> None:
    """The first row lies on a step to a hair; a difference as large as the step is what rounding makes of it there."""
    x = inputs(8)
    classifier = brittle.Classifier(shifted_to_a_step(small_network(), x))
    with torch.no_grad(), classifier.evaluating():
        one = classifier(x)
        other = one.clone()
        other[0] += 0.01  # whether this batch falls beside the step depends on the processor
        assert float(allowed(one, precision_of(classifier))[0].max()) < 0.005
        assert excess(classifier, x, one, other) is None
        other[1] += 0.5
        found = excess(classifier, x, one, other)
    assert found is not None
    assert (found.row, round(found.largest, 3)) == (1, 0.5)


def every_kind(scale: float) -> Iterator[Callable[[Tensor, Tensor], Tensor]]:
    yield lambda x, z: scale * z
    yield lambda x, z: z + scale


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1e3, 1e5])
def test_no_alarm_and_no_blindness_at_any_size_of_the_logits(scale: float) -> None:
    """Healthy logits pass at any scale, and with a number added to all of them; dropout that stays on does not."""
    for change in every_kind(scale):
        assert codes(subject_of(Wrapped(change))) == {}
        torch.manual_seed(0)
        dropout = codes(subject_of(Wrapped(lambda x, z, change=change: change(x, z * (1 + torch.rand_like(z))))))
        assert dropout["repeatable"] == "nondeterministic_model"


@pytest.mark.parametrize("unit", [1e-19, 1e-12, 1.0, 1e6])
def test_no_unit_of_the_inputs_makes_every_difference_a_step(unit: float) -> None:
    model = Recurrent(nn.LSTM)
    subject = examined(lambda x: model(x / unit), [Softmax()], inputs(COUNT) * unit, bounds=(0.0, unit))
    assert codes(subject)["rows apart"] == "batch_dependent"
