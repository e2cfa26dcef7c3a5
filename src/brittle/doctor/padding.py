"""Does what stands in the padding of a point change its logits?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from brittle.doctor.finding import Finding
from brittle.doctor.subject import Subject
from brittle.model.aside import Aside


def check_padding(subject: Subject) -> Iterator[Finding | str]:
    """The logits stay as they are where the padding of the points holds other numbers."""
    aside = subject.aside
    name, padding = (None, None) if aside is None else padding_of(aside, subject.inputs)
    if aside is None or padding is None:
        yield "no padding"
        return
    filled = torch.where(padding, subject.random_inputs(len(padding)), subject.inputs)
    with torch.no_grad():
        logits = subject.classifier(filled, replace(aside, varies=None, inputs=None))
    found = subject.excess(logits)
    rows = int(padding.flatten(1).any(dim=1).sum())
    if found is not None:
        yield Finding(
            "padding_leaks",
            f"where {name} is 0, other numbers in the input change the logits: row {subject.numbers[found.row]} "
            f"differs by {found}. Scores leave this padding as it is, but they depend on how the points were padded; "
            f"let the model leave it out, in attention and in means",
        )
    yield f"other numbers where {name} is 0 change nothing, in {rows} of {len(padding)} rows"


def padding_of(aside: Aside, inputs: Tensor) -> tuple[str | None, Tensor | None]:
    """The coordinates of points that are padding, `[V, *shape]`, and the name of the tensor that says so.

    They do not vary, and a tensor `...mask` beside the inputs, over the first axes of these, is 0 there. None where
    there are none.
    """
    for name, mask in aside.tensors.items():
        axes = mask.dim()
        if not name.endswith("mask") or axes < 2 or mask.shape != inputs.shape[:axes] or aside.varies is None:
            continue
        absent = (mask == 0).view(*mask.shape, *[1] * (inputs.dim() - axes)).expand_as(inputs).to(inputs.device)
        padding = absent & ~aside.varies.to(inputs.device).expand_as(inputs)
        if bool(padding.any()):
            return name, padding
    return None, None
