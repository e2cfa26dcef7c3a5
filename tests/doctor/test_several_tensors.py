"""Checks on points of several tensors: a sound model passes all, and each defect is named by its check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from helpers.several import Reader, texts
from torch import Tensor, nn

import brittle
from brittle.data.points import Points
from brittle.doctor import CHECKS, Subject, run_all
from brittle.errors import ModelError
from brittle.scores import FeatureMargin, Score, Shrinkage, Taylor

POINTS = 24
SCORES: list[Score] = [Taylor(sigma=0.2), Shrinkage(sigma=0.2, limit=None), FeatureMargin()]


class Changed(nn.Module):
    """A reader with a change of its inputs or its logits; `kept` is its memory."""

    def __init__(self, change: Callable[[Any, Tensor, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.reader, self.change, self.kept = Reader(), change, []
        self.eval()

    def forward(self, inputs_embeds: Tensor, attention_mask: Tensor, shift: Tensor) -> Tensor:
        return self.change(self, inputs_embeds, attention_mask, shift)

    def read(self, inputs: Tensor, mask: Tensor, shift: Tensor) -> Tensor:
        return self.reader(inputs, mask, shift)["logits"]


def remembers_its_first(model: Changed, x: Tensor, mask: Tensor, shift: Tensor) -> Tensor:
    model.kept.append(x.detach().mean())
    return model.read(x, mask, shift) + model.kept[0] * torch.arange(3)


def changes_at_the_end(model: Changed, x: Tensor, mask: Tensor, shift: Tensor) -> Tensor:
    model.kept += [1] * torch.is_grad_enabled()
    return model.read(x, mask, shift) + (len(model.kept) > 1) * torch.arange(3)


DEFECTS: dict[str, tuple[str, Callable[[Any, Tensor, Tensor, Tensor], Tensor]]] = {
    "mixes rows": ("batch_dependent", lambda m, x, a, s: (z := m.read(x, a, s)) + 0.5 * z.mean(dim=0)),
    "mixes tensors": ("batch_dependent", lambda m, x, a, s: m.read(x, a, s.roll(1) if len(s) > 1 else s)),
    "looks beside alone": ("constant_output", lambda m, x, a, s: m.read(torch.zeros_like(x), a, s)),
    "remembers its first": ("model_changed", remembers_its_first),
    "changes at the end": ("model_changed", changes_at_the_end),
    "hides gradients": ("masked_gradient", lambda m, x, a, s: m.read(x.detach() + 0 * x, a, s)),
}


def points(masked: bool = True) -> Points:
    x, mask, shift = texts(points=POINTS)
    extra = {"attention_mask": mask, "shift": shift}
    return brittle.data.array_points(x, extra_inputs=extra, mask="attention_mask" if masked else None, bounds=(-3, 3))


@pytest.mark.parametrize("masked", [True, False])
def test_a_sound_model_passes_every_check(masked: bool) -> None:
    data, model = points(masked), Changed(lambda m, *arguments: m.read(*arguments))
    classifier = brittle.Classifier(model, bounds=(-3, 3), perturb="inputs_embeds", head="reader.out")
    subject = Subject(classifier, next(iter(data.batches(POINTS))), None, SCORES, 0, 32, data)
    with classifier.evaluating():
        outcomes = run_all(subject)
    assert [(outcome.name, outcome.state) for outcome in outcomes] == [(check.name, "ok") for check in CHECKS]


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_named_and_nothing_is_scored(name: str) -> None:
    code, change = DEFECTS[name]
    classifier = brittle.Classifier(Changed(change), bounds=(-3, 3), perturb="inputs_embeds")
    with pytest.raises(ModelError) as caught:
        brittle.score(classifier, points(), SCORES[:2])
    assert caught.value.code == code
