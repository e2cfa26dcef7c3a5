"""Can the outputs change what is decided by their sign, or do they lie on one side of the threshold for good?

A sigmoid declared as a logit is positive at every input: nothing flips it, and every score would say so for certain. A
network may also predict the same everywhere and be right. What tells them apart is what other weights would give: a
logit has the other sign then, and what a sigmoid, an exponential or a logarithm of probabilities made never has it.
Where no weights are seen, inputs far away stand for them: there a logit passes the threshold, or stays away from it,
and a sigmoid comes as near to it as one likes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from brittle.decisions import Custom, MultiLabel
from brittle.doctor.subject import LOOKED_AT, Finding, Subject
from brittle.errors import BrittleError, ModelError, listed

MULTIPLY = {"mm", "addmm", "_addmm_activation", "mv", "addmv", "dot", "bmm", "baddbmm", "linear", "matmul"}
MULTIPLY |= {"convolution", "_convolution", "cudnn_convolution", "mkldnn_convolution"}
"""Operations that multiply by weights."""

DRAWS, TURNED_ROWS = 24, 8
"""Networks with other weights, and points that go through each. Of a logit, no draw with large weights has the other
sign at most once in 2^16 times."""

LARGE, LARGEST = 30.0, 1e6
"""Size of the products, against that of the margins, at which no constant that is added to them decides the sign; and
the largest margin that is taken for this."""

FAR_TIMES = (-1e3, -1e2, -1e1, 1e1, 1e2, 1e3)
"""How many times as far away from a point, and on which side, an input lies than a random one of the range."""

NEARER = 1e-3
"""Share of the smallest margin at the points that a margin far away has at most, where outputs end at the threshold."""

ADVICE = (
    "of probabilities add --outputs probs (outputs='probs') once, and beside --decision multilabel (decision="
    "'multilabel') where labels hold each by itself; of an amount use --decision within:T, with a tolerance T; let a "
    "function compare a probability with 0.5; otherwise return the logits"
)


class OtherWeights(TorchDispatchMode):
    """Gives the channels of every product with weights signs by chance, and each of them the size `size`. That is what
    other weights would give, each row of them multiplied by a number. `products` counts them."""

    def __init__(self, seed: int, size: float) -> None:
        super().__init__()
        self.products, self.size = 0, size
        self._generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ in MULTIPLY and found.is_floating_point():
            self.products += 1
            wide = found.to(torch.promote_types(found.dtype, torch.float32))
            others = [axis for axis in range(wide.dim()) if axis != 1]
            largest = wide.abs().amax(dim=others, keepdim=True).clamp_min(torch.finfo(wide.dtype).tiny)
            signs = torch.randint(2, largest.shape, generator=self._generator).to(wide) * 2 - 1
            found.copy_(wide / largest * (signs * self.size))
        return found


def check_sides(subject: Subject) -> Iterator[Finding]:
    """Outputs whose sign decides, or that a function compares, can change what is decided."""
    decision = subject.decision
    if not isinstance(decision, MultiLabel | Custom) and subject.classifier.outputs != "binary-logit":
        return
    near = _outputs(subject, subject.inputs, subject.noisy, subject.random_inputs(min(subject.rows, LOOKED_AT)))
    stuck = ~_changes(subject, near)
    if not bool(stuck.all()):
        stuck &= (_margins(subject, near) != _margins(subject, near[:1])).any(dim=0)  # a masked label is no defect
    if not bool(stuck.any()):
        return
    turned = _turned(subject, near, stuck)
    fixed = stuck & ~_changes(subject, near, *turned)
    shown = near.double() if isinstance(decision, MultiLabel | Custom) else near[:, 1:].double()
    if isinstance(decision, MultiLabel | Custom) and subject.classifier.outputs == "probs":
        shown = shown.sigmoid()  # as the model returned them
    span = f"{float(shown.min()):.4g} and {float(shown.max()):.4g}"
    if bool(fixed.any()) or in_unit(near):
        far = _far(subject)
        kept = stuck & ~_changes(subject, near, far)
        ends, inside = kept & _ends_at_threshold(subject, near, far), in_unit(near) and in_unit(far)
        fixed &= kept if turned else kept & (ends | inside)
        if bool(fixed.any()) or (inside and bool(ends.any())):
            some = len(fixed) == shown.shape[1] and bool(fixed.any()) and not bool(fixed.all())
            labels = f"label {listed(fixed.nonzero().flatten().tolist())} of " if some else ""
            raise ModelError(
                "outputs",
                f"{labels}the decision {decision.label} never changes in {len(near)} rows, noisy copies and random "
                f"inputs, nor with other weights or far away: the outputs lie between {span}; {ADVICE}",
            )
    correct, labelled = subject.right
    if bool(stuck.all()) and (not labelled or correct < labelled):
        right = f", {correct} of {labelled} labelled ones right," if labelled else ""
        yield Finding(
            "outputs",
            f"{len(near)} rows, noisy copies and random inputs{right} decide the same, from outputs between {span}; "
            f"see that their sign means what the decision {decision.label} says (that of a logit; probabilities, their "
            f"logarithms and amounts have one sign alone)",
        )


def _outputs(subject: Subject, *inputs: Tensor) -> Tensor:
    """What is decided from, at the `inputs`, `[N, ...]`, where it is finite."""
    with torch.no_grad():
        outputs = torch.cat([subject.classifier.read(each, subject.beside(len(each))) for each in inputs])
    return outputs[outputs.flatten(1).isfinite().all(dim=1)]


def _margins(subject: Subject, outputs: Tensor) -> Tensor:
    """How far outputs are above the threshold, `[N, K]`; of a user's function what it says of neighbours, `[N, 1]`."""
    decision = subject.decision
    if isinstance(decision, Custom):
        return decision.margins(outputs.roll(1, 0), outputs).amin(dim=1, keepdim=True)
    return decision.margins(outputs, torch.ones_like(outputs[:, :1], dtype=torch.int64))


def _changes(subject: Subject, *outputs: Tensor) -> Tensor:
    """Whether what is decided differs among outputs, for each margin, `[K]`."""
    margins = _margins(subject, torch.cat(outputs))
    below, above = (margins < 0).any(dim=0), (margins > 0).any(dim=0)
    return below if isinstance(subject.decision, Custom) else below & above


def _turned(subject: Subject, near: Tensor, stuck: Tensor) -> list[Tensor]:
    """Outputs that other weights give, until none of the `stuck` margins `[K]` is stuck; none where that shows nothing.
    That is so where no product with weights is seen, or hardly any weights give finite outputs."""
    found: list[Tensor] = []
    points = subject.inputs[:TURNED_ROWS]
    _outputs(subject, points)  # tables that a network keeps by shape are of its own weights
    margin = float(_margins(subject, near)[:, stuck].abs().max().clamp(1.0, LARGEST))
    for draw in range(DRAWS):
        weights = OtherWeights(draw, (1.0, LARGE, LARGE * margin)[draw % 3])
        try:
            with weights:
                outputs = _outputs(subject, points)
        except BrittleError:
            return []
        if not weights.products:
            return []
        found += [outputs] * bool(len(outputs))
        if bool((_changes(subject, near, *found) | ~stuck).all()):
            return found
    return found if len(found) >= DRAWS // 3 else []


def _far(subject: Subject) -> Tensor:
    """Outputs far away; none where the model does not take such inputs."""
    start = subject.inputs
    way = subject.random_inputs(len(start)) - start
    try:
        return _outputs(subject, *(start + times * way for times in FAR_TIMES))
    except BrittleError:
        return _outputs(subject, start)[:0]


def _ends_at_threshold(subject: Subject, near: Tensor, far: Tensor) -> Tensor:
    """Whether margins far away come as near to 0 as if outputs ended there, `[K]`."""
    smallest = _margins(subject, near).abs().amin(dim=0)
    if not len(far):
        return torch.zeros_like(smallest, dtype=torch.bool)
    return _margins(subject, far).abs().amin(dim=0) <= NEARER * smallest


def in_unit(outputs: Tensor) -> bool:
    return bool(((outputs >= 0) & (outputs <= 1)).all())
