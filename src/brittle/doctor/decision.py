"""Does a function of the user's, from which the decision follows, compare each output by itself?"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from brittle.decisions import Custom
from brittle.doctor.finding import Finding
from brittle.doctor.subject import Subject
from brittle.errors import ModelError

AGREE = 1e-3
"""Share of a margin, or of 1 where that is larger, by which two of the same outputs may differ."""

AGAIN = 3
"""Times that the same outputs are compared."""


def check_decision(subject: Subject) -> Iterator[Finding | str]:
    """A function of the user's that decides gives the same margins again, in another order and for a row alone.

    Each output is compared with that of the point before it, as if it were one of its copies.

    Raises:
        ModelError: it gives others, so what it says of a point depends on chance, on earlier calls or on other rows.
    """
    decision = subject.decision
    if not isinstance(decision, Custom):
        yield "no function of yours decides"
        return
    with torch.no_grad():
        outputs = subject.classifier.read(subject.inputs, subject.aside)
        others = outputs.roll(1, 0)
        first = decision.margins(others, outputs)
        for _ in range(AGAIN - 1):
            _check_same(decision, first, decision.margins(others, outputs), "when it is asked again")
        backwards = decision.margins(others.flip(0), outputs.flip(0)).flip(0)
        _check_same(decision, first, backwards, "when the rows come in another order")
        pairs = zip(others.split(1), outputs.split(1), strict=True)
        alone = torch.cat([decision.margins(other, own) for other, own in pairs])
        _check_same(decision, first, alone, "when it is given that row alone")
    yield f"{decision.label} gives the same margins of {len(outputs)} rows again, in another order and alone"


def _check_same(decision: Custom, first: Tensor, other: Tensor, when: str) -> None:
    """Raise where margins differ.

    Raises:
        ModelError: they do.
    """
    if other.shape != first.shape:
        raise ModelError(
            "decision",
            f"the function of the decision {decision.label} gave {first.shape[1]} margins a row and {other.shape[1]} "
            f"{when}; it must give as many for every output",
        )
    scale = first.abs().maximum(other.abs()).clamp_min(1.0)
    differ = ~((first - other).abs() <= AGREE * scale) & ~(first.isnan() & other.isnan()) & (first != other)
    if bool(differ.any()):
        row, column = (int(place[0]) for place in differ.nonzero(as_tuple=True))
        raise ModelError(
            "decision",
            f"the function of the decision {decision.label} gave the margin {float(first[row, column]):.4g} for row "
            f"{row}, and {float(other[row, column]):.4g} {when}; its margins must depend on the two outputs of a row "
            f"alone, and not on chance, earlier calls or other rows",
        )
