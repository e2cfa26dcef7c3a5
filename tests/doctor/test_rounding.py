"""Tolerances for logits: rounding is allowed, and no size of the logits hides a difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

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
    tolerance = allowed(logits, torch.finfo(torch.float32).eps)
    assert float(tolerance[:, :2].max()) < 1e-3
    assert float(tolerance[:, 2].min()) > 64  # a unit in the last place of 1e9
    small_tolerance = allowed(1e-6 * logits, torch.finfo(torch.float32).eps)
    assert torch.allclose(small_tolerance, 1e-6 * tolerance)


def steps(x: Tensor, logits: Tensor) -> Tensor:
    """Round logits to steps, with a sum that is rounded differently in larger batches."""
    return ((logits * 100 + 1e-6 * len(x)).round()) / 100


def shifted_to_a_step(network: nn.Module, x: Tensor) -> Wrapped:
    """Return the network in steps, one of which lies at the first row, up to rounding."""
    with torch.no_grad():
        offset = 0.005 - (network(x)[0] % 0.01) - 0.32e-7
    return Wrapped(lambda x, z: steps(x, z + offset))


def test_a_step_of_the_network_excuses_rounding() -> None:
    """The first row lies almost on a step; a difference as large as the step may come from rounding there."""
    x = inputs(8)
    classifier = brittle.Classifier(shifted_to_a_step(small_network(), x))
    with torch.no_grad(), classifier.evaluating():
        logits = classifier(x)
        other_logits = logits.clone()
        other_logits[0] += 0.01  # whether this batch falls beside the step depends on the processor
        assert float(allowed(logits, precision_of(classifier))[0].max()) < 0.005
        assert excess(classifier, x, logits, other_logits) is None
        other_logits[1] += 0.5
        difference = excess(classifier, x, logits, other_logits)
    assert difference is not None
    assert (difference.row, round(difference.largest, 3)) == (1, 0.5)


@pytest.mark.parametrize("period", range(2, 10))
def test_what_comes_back_after_some_passes_is_no_step(period: int) -> None:
    """Logits change their sign in every `period`-th pass, so that some passes of an input agree."""
    passes = count(1)
    subject = subject_of(Wrapped(lambda x, z: -z if next(passes) % period == 0 else z))
    assert {"nondeterministic_model", "batch_dependent"} & set(codes(subject).values())


def every_kind(scale: float) -> Iterator[Callable[[Tensor, Tensor], Tensor]]:
    yield lambda x, z: scale * z
    yield lambda x, z: z + scale


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1e3, 1e5])
def test_defects_alone_raise_an_alarm_at_any_size_of_logits(scale: float) -> None:
    """Healthy logits pass at any scale and offset; active dropout does not."""
    for change in every_kind(scale):
        assert codes(subject_of(Wrapped(change))) == {}
        torch.manual_seed(0)
        dropout = codes(subject_of(Wrapped(lambda x, z, change=change: change(x, z * (1 + torch.rand_like(z))))))
        assert dropout["repeatable"] == "nondeterministic_model"


@pytest.mark.parametrize("unit", [1e-19, 1e-12, 1.0, 1e6])
def test_no_unit_of_the_inputs_hides_differences(unit: float) -> None:
    model = Recurrent(nn.LSTM)
    subject = examined(lambda x: model(x / unit), [Softmax()], inputs(COUNT) * unit, bounds=(0.0, unit))
    assert codes(subject)["rows apart"] == "batch_dependent"
