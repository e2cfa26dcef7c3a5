"""The first pass of a model, and a copy of the model as it was before."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn.parameter import is_lazy

from brittle.model.aside import Aside
from brittle.model.classifier import Classifier
from brittle.model.outputs import scores_of


@dataclass(frozen=True)
class FirstPass:
    """What the first pass of the points showed.

    Attributes:
        logits: `[V, C]`.
        overwritten: how many numbers of its input the model overwrote.
        returned: the tensor that the model returned, as it gave it: a later pass may overwrite it.
        content: a copy of `returned`, taken at once.
    """

    logits: Tensor
    overwritten: int
    returned: Tensor
    content: Tensor


def take_first_pass(classifier: Classifier, inputs: Tensor, aside: Aside | None = None) -> FirstPass:
    """Send `inputs` `[V, *shape]` through the model, and look at what it was given and what it returned."""
    given: list[tuple[Tensor, Tensor]] = []
    returned: list[tuple[Tensor, Tensor]] = []
    model = classifier.model

    def watched(*inputs: Tensor, **others: Tensor) -> object:
        own = others[classifier.perturb] if classifier.perturb is not None else inputs[0]
        given.append((own, own.clone()))
        output = model(*inputs, **others)
        scores = scores_of(output)[0].detach()
        returned.append((scores, scores.clone()))
        return output

    # A twin that is called through `watched`, so that the tensors the model gets and gives can be looked at.
    twin = copy(classifier)
    twin.model = watched
    with torch.no_grad():
        logits = twin(inputs, aside)
    classifier.forward_passes, classifier.output_dtype = twin.forward_passes, twin.output_dtype
    classifier.taken = twin.taken
    after, before = given[0]
    same = (after == before) | (after.isnan() & before.isnan())
    return FirstPass(logits, int((~same).sum()), *returned[0])


def untouched_copy(model: Callable[[Tensor], Any]) -> nn.Module | str:
    """A copy of `model` that shares its weights and no other state; or why there is none."""
    if not isinstance(model, nn.Module):
        return "a function cannot be copied"
    if isinstance(model, fx.GraphModule):
        return "an exported program keeps nothing but weights and buffers"
    if any(map(is_lazy, model.parameters())):
        return "a model without shapes cannot be copied"
    try:
        return deepcopy(model, {id(parameter): parameter for parameter in model.parameters()})
    except Exception as error:  # noqa: BLE001 - whatever the model's own __deepcopy__ or state raises
        return f"the model cannot be copied: {type(error).__name__}: {str(error).partition(chr(10))[0]}"
