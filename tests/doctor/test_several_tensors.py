"""The checks on points of several tensors: a sound model passes all, and each defect is named by the check for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from helpers.several import Reader, texts
from torch import Tensor, nn

import brittle
from brittle.doctor import CHECKS, Subject, run_all
from brittle.errors import ModelError
from brittle.scores import FeatureMargin, Score, Shrinkage, Taylor

POINTS = 24
SCORES: list[Score] = [Taylor(sigma=0.2), Shrinkage(sigma=0.2), FeatureMargin()]
Outputs = Callable[[Tensor, Tensor, Tensor], Tensor]


class Changed(nn.Module):
    """A reader with something done to it."""

    def __init__(self, change: Outputs | None = None) -> None:
        super().__init__()
        self.reader, self.change = Reader(), change
        self.kept: Tensor | None = None
        self.calls = 0

    def forward(self, inputs_embeds: Tensor, attention_mask: Tensor, shift: Tensor) -> Tensor:
        return self.answer(inputs_embeds, attention_mask, shift)

    def answer(self, inputs: Tensor, mask: Tensor, shift: Tensor) -> Tensor:
        return self.reader(inputs, mask, shift)["logits"]


class MixesRows(Changed):
    def answer(self, inputs: Tensor, mask: Tensor, shift: Tensor) -> Tensor:
        logits = super().answer(inputs, mask, shift)
        return logits + 0.5 * logits.mean(dim=0)


class MixesTensors(Changed):
    def answer(self, inputs: Tensor, mask: Tensor, shift: Tensor) -> Tensor:
        return super().answer(inputs, mask, shift.roll(1) if len(shift) > 1 else shift)


class LooksBesideAlone(Changed):
    def answer(self, inputs: Tensor, mask: Tensor, shift: Tensor) -> Tensor:
        return super().answer(torch.zeros_like(inputs), mask, shift)


class RemembersItsFirst(Changed):
    def answer(self, inputs: Tensor, mask: Tensor, shift: Tensor) -> Tensor:
        if self.kept is None:
            self.kept = inputs.detach().mean()
        return super().answer(inputs, mask, shift) + self.kept * torch.arange(3)


class HidesGradients(Changed):
    def answer(self, inputs: Tensor, mask: Tensor, shift: Tensor) -> Tensor:
        return super().answer(inputs.detach() + 0 * inputs, mask, shift)


class ReturnsProbabilities(Changed):
    def answer(self, inputs: Tensor, mask: Tensor, shift: Tensor) -> Tensor:
        return super().answer(inputs, mask, shift).softmax(dim=1)


class ChangesAtTheEnd(Changed):
    def answer(self, inputs: Tensor, mask: Tensor, shift: Tensor) -> Tensor:
        self.calls += torch.is_grad_enabled()
        return super().answer(inputs, mask, shift) + (self.calls > 1) * torch.arange(3)


DEFECTS = {
    "batch_dependent": (MixesRows, MixesTensors),
    "constant_output": (LooksBesideAlone,),
    "model_changed": (RemembersItsFirst, ChangesAtTheEnd),
    "masked_gradient": (HidesGradients,),
    "outputs": (ReturnsProbabilities,),
}


def subject_of(model: nn.Module, masked: bool = True) -> Subject:
    x, mask, shift = texts(points=POINTS)
    beside = {"attention_mask": mask, "shift": shift}
    points = brittle.data.array_points(
        x, extra_inputs=beside, mask="attention_mask" if masked else None, bounds=(-3, 3)
    )
    classifier = brittle.Classifier(model.eval(), bounds=(-3, 3), perturb="inputs_embeds", head="reader.out")
    batch = next(iter(points.batches(POINTS)))
    return Subject(classifier, batch, None, SCORES, 0, 32, points)


def found(model: nn.Module, masked: bool = True) -> dict[str, tuple[str, str | None]]:
    subject = subject_of(model, masked)
    with subject.classifier.evaluating():
        return {one.name: (one.state, one.code) for one in run_all(subject)}


@pytest.mark.parametrize("masked", [True, False])
def test_a_sound_model_passes_every_check(masked: bool) -> None:
    outcomes = found(Changed(), masked)
    assert outcomes.keys() == {check.name for check in CHECKS}
    assert {state for state, _ in outcomes.values()} == {"ok"}


@pytest.mark.parametrize(("code", "defect"), [(code, kind) for code, kinds in DEFECTS.items() for kind in kinds])
def test_a_defect_is_named_and_nothing_is_scored(code: str, defect: type[Changed]) -> None:
    x, mask, shift = texts(points=POINTS)
    data = brittle.data.array_points(
        x, extra_inputs={"attention_mask": mask, "shift": shift}, mask="attention_mask", bounds=(-3, 3)
    )
    classifier = brittle.Classifier(defect().eval(), bounds=(-3, 3), perturb="inputs_embeds")
    with pytest.raises(ModelError) as raised:
        brittle.score(classifier, data, SCORES[:2])
    assert raised.value.code == code


class MeansOverAll(Changed):
    """The mean of all tokens, those of the padding among them."""

    def answer(self, inputs: Tensor, mask: Tensor, shift: Tensor) -> Tensor:
        return super().answer(inputs, mask, shift) + inputs.mean(dim=(1, 2))[:, None] * torch.arange(3)


def test_padding_that_leaks_is_noted() -> None:
    assert found(MeansOverAll())["padding"] == ("note", "padding_leaks")
    assert found(MeansOverAll(), masked=False)["padding"] == ("ok", None)
