"""Common parts of all measurements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.estimate import CONFIDENCE, LARGEST_DRAWS
from brittle.measure.forward import Clean, look
from brittle.model.classifier import Classifier
from brittle.model.inputs import ExtraInputs
from brittle.user_code import failing

PROOFS = ("full", "middle", "fast")
"""Budgets of the proof of a certificate, the largest first."""


@dataclass(frozen=True)
class Passes:
    """Passes through the network of one point, forward and backward."""

    forward: float
    backward: float = 0

    @property
    def total(self) -> float:
        return self.forward + self.backward

    def __add__(self, more: Passes) -> Passes:
        return Passes(self.forward + more.forward, self.backward + more.backward)


class NetworkTraits(Protocol):
    """Facts on which the cost of a measurement depends: classes, coordinates of an input, why the network never has a
    gradient, where it has none, whether its probabilities take a pass apart from its logits, and what a measurement
    finds at a few points."""

    @property
    def classes(self) -> int: ...
    @property
    def dimension(self) -> int: ...
    @property
    def forward_only(self) -> str | None: ...
    @property
    def own_probability(self) -> bool: ...
    def try_out(self, need: Measurement) -> Any: ...


@dataclass(frozen=True)
class Measurement(ABC):
    """A kind of pass through the network. Equal measurements are taken once.

    A result says what it cost as `passes`: passes per point, forward and backward, the clean one included; one number,
    or `[B]` where points differ.

    Class attributes:
        differentiates: whether it sends anything backward through the model.
        needs_gradients: whether it fails where the model has no gradients, rather than go on without them.
        uses_graph: whether it differentiates the clean pass itself, where that pass kept its graph.
        uses_features: whether it reads what the last linear layer sees in the clean pass.
        kept_competitors: how many competing classes it keeps; None for the default.
        certifies: whether its result has the `radius` that is proved for each point, and the layer `unsupported`.
    """

    differentiates: ClassVar[bool] = True
    needs_gradients: ClassVar[bool] = True
    uses_graph: ClassVar[bool] = False
    uses_features: ClassVar[bool] = False
    kept_competitors: ClassVar[int | None] = None
    certifies: ClassVar[bool] = False

    @abstractmethod
    def cost(self, network: NetworkTraits) -> Passes:
        """Return the passes for a point beyond the clean pass."""

    @property
    def code(self) -> tuple[Any, ...]:
        """Functions and classes that it uses and that may be of another package, beside its own class."""
        return ()

    @property
    def missing(self) -> Sequence[str]:
        """Extensions that it would use and that are missing, so that its numbers may be others with them."""
        return ()

    @property
    def stream(self) -> Hashable:
        """Measurements of equal stream share their passes."""
        return self

    @property
    def noise_source(self) -> Hashable:
        """Key of the noise that it draws; of equal sources the fewer draws are the first of the more."""
        return (type(self), self.stream)

    @classmethod
    @abstractmethod
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[Any]:
        """Return the results of `needs`, which share one stream."""

    def __call__(self, classifier: Classifier, clean: Clean) -> Any:
        """Take this measurement alone."""
        with classifier.evaluating():
            return self.measure([self], classifier, clean)[0]


def by_stream(needs: Iterable[Measurement]) -> list[list[Measurement]]:
    """`needs`, each once, those together that share their passes."""
    streams: dict[Hashable, dict[Measurement, None]] = {}
    for need in needs:
        streams.setdefault((type(need), need.stream), {})[need] = None
    return [list(group) for group in streams.values()]


def take(needs: Iterable[Measurement], classifier: Classifier, clean: Clean) -> dict[Measurement, Any]:
    """Take every measurement of `needs` once, those of one stream together."""
    results: dict[Measurement, Any] = {}
    with classifier.evaluating():
        for members in by_stream(needs):
            kind = type(members[0])
            with failing(kind, "measure"):
                results |= zip(members, kind.measure(members, classifier, clean), strict=True)
            if members[0].uses_graph:
                clean = replace(clean, graph=None)
    return results


def look_for(
    needs: Sequence[Measurement],
    classifier: Classifier,
    inputs: Tensor,
    ids: Sequence[str],
    seed: int,
    rows: int | None = None,
    confidence: float = CONFIDENCE,
    extra_inputs: ExtraInputs | None = None,
) -> Clean:
    """Return the clean pass with what `needs` read of it: the graph where one differentiates it, the features where
    one does. Arguments as for `brittle.measure.forward.look`."""
    differentiate, observe = (any(getattr(need, use) for need in needs) for use in ("uses_graph", "uses_features"))
    recorded = {"differentiate": differentiate, "observe": observe}
    return look(classifier, inputs, ids, seed, rows=rows, **recorded, confidence=confidence, extra_inputs=extra_inputs)


def passes_of(results: Mapping[Measurement, Any], clean: Clean) -> Tensor:
    """Return passes beyond the clean one that the results say they cost, `[B]`; those of one stream count once. A
    result without `passes` says nothing and counts as 0."""
    total = torch.zeros_like(clean.predicted)
    for members in by_stream(results):
        with failing(type(members[0]), "measure"):
            stated = [torch.as_tensor(getattr(results[need], "passes", clean.passes)) for need in members]
            largest = torch.stack([passes.to(total).expand_as(total) for passes in stated]).amax(dim=0)
        total = total + (largest - clean.passes).clamp_min(0)
    return total


def check_draws(draws: int, antithetic: bool = True) -> None:
    """Raise unless `draws` is a number of noisy copies that can be taken."""
    if type(draws) is not int or not 2 <= draws <= LARGEST_DRAWS or (antithetic and draws % 2):
        kind = "an even number, as noisy copies come in pairs of opposite noise," if antithetic else "a whole number"
        raise ParameterError(
            f"draws must be {kind} from 2 to {LARGEST_DRAWS:,}; found {draws}. Each costs a pass or more per point"
        )


def check_enough(name: str, count: int) -> None:
    """Raise unless `count` directions, the parameter `name`, are enough for an error of their mean."""
    if count < 2:
        raise ParameterError(f"at least 2 {name} are needed for an error; found {count}")


def check_rank(rank: int) -> None:
    """Raise unless `rank` is a place among the classes, 1 that of the predicted one."""
    if type(rank) is not int or rank < 1:
        raise ParameterError(f"rank must be a whole number of 1 or more, 1 for the predicted class; found {rank}")


def check_classes(classes: int | None) -> None:
    """Raise unless at least one competing class is kept; None keeps the default."""
    if classes is not None and classes < 1:
        raise ParameterError(f"at least 1 competitor must be kept; found classes={classes}")
