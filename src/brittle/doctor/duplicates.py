"""Do two classes have the same logits?"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from brittle.doctor.finding import Finding
from brittle.doctor.outputs import more_logits
from brittle.doctor.subject import Subject

SHOWN = 5
"""Classes that a message names."""

ROUNDED = 1e-3
"""By how much the logarithm of the smallest probability may be rounded."""


def check_duplicates(subject: Subject) -> Iterator[Finding | str]:
    """No two classes have the same logits."""
    if not subject.decision.has_classes:
        yield f"no classes: the decision is {subject.decision.explanation}"
        return
    logits = subject.finite
    masked = _masked(logits)
    kept = (~masked).nonzero().flatten()
    zero = [own for group in _alike(logits, kept) if _underflown(subject, logits[:, group]) for own in group]
    others = torch.tensor([own for own in kept.tolist() if own not in zero], dtype=torch.int64, device=kept.device)
    repeated = _alike(logits, others)
    if repeated:  # some agree by chance in a few rows
        repeated = _alike(torch.cat((logits, more_logits(subject))), others)
    for group in repeated[:3]:
        yield Finding(
            "duplicate_classes",
            f"classes {', '.join(map(str, group[:SHOWN]))} have identical logits in all {len(logits)} rows looked at; "
            f"a tie between them decides nothing, remove the copy",
        )
    never = f"; {int(masked.sum())} more are masked" if bool(masked.any()) else ""
    none = f", but {len(zero)} whose probabilities are 0 in all rows" if zero else ""
    yield f"{len(kept)} classes, all different{none}{never}"


def _alike(logits: Tensor, classes: Tensor) -> list[list[int]]:
    """Groups of `classes` that have the same logits in every row."""
    _, owner, count = torch.unique(logits[:, classes].T, dim=0, return_inverse=True, return_counts=True)
    return [classes[owner == group].tolist() for group in (count > 1).nonzero().flatten()]


def _underflown(subject: Subject, logits: Tensor) -> bool:
    """Whether these are logarithms of probabilities so near 0 that rounding makes them alike."""
    smallest = math.log(torch.finfo(subject.classifier.output_dtype).tiny)
    return subject.classifier.outputs == "probs" and bool((logits <= smallest + ROUNDED).all())


def _masked(logits: Tensor) -> Tensor:
    """Whether a class has the same logit in every row, far below the others, `[C]`."""
    constant = (logits == logits[0]).all(dim=0)
    spread = logits[:, ~constant]
    if not bool(constant.any()) or spread.shape[1] < 2:
        return torch.zeros_like(constant)
    low, high = float(spread.min()), float(spread.max())
    return constant & (logits[0] < low - (high - low))
