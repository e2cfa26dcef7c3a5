"""Common parts of all measurements, and those of the clean pass alone: logits, the input of the last linear layer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.estimate import LARGEST_DRAWS
from brittle.measure.forward import Clean
from brittle.model.classifier import Classifier
from brittle.user_code import failing

PROOFS = ("full", "middle", "fast")  # budgets of the proof of a certificate, the largest first


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
    """Facts on which the cost of a measurement depends: among them why the network never has a gradient, whether its
    probabilities take a pass apart from its logits, and what a measurement finds at a few points."""

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
    """A kind of pass through the network. Equal measurements are taken once. A result says what it cost as `passes`,
    per point, forward and backward, with the clean one: a number, or `[B]`."""

    differentiates: ClassVar[bool] = True  # whether it sends anything backward through the model
    needs_gradients: ClassVar[bool] = True  # whether it fails without gradients, rather than go on
    uses_graph: ClassVar[bool] = False  # whether it differentiates the clean pass itself, where that kept its graph
    uses_features: ClassVar[bool] = False  # whether it reads what the last linear layer sees in the clean pass
    kept_competitors: ClassVar[int | None] = None  # competing classes that it keeps; None for the default
    certifies: ClassVar[bool] = False  # whether its result has the proved `radius` of each point, and `unsupported`

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


@dataclass(frozen=True)
class Forward(Measurement):
    """The clean forward pass, which comes first; with the log-probabilities of an estimator by another pass."""

    probabilities: bool = False

    differentiates = False

    def cost(self, network: NetworkTraits) -> Passes:
        return Passes(int(self.probabilities and network.own_probability))

    @classmethod
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[Clean]:
        if needs[0].probabilities and classifier.own_probability:
            clean = replace(clean.with_probabilities(classifier), passes=clean.passes + 1)
        return [clean for _ in needs]


@dataclass(frozen=True)
class HeadInputs:
    """Input of the last linear layer of the network at each point, and that layer, in double precision."""

    clean: Clean
    features: Tensor  # `h`, `[B, d]`
    weight: Tensor  # `W` of the logits `W h + b`, `[C, d]`
    passes: int


@dataclass(frozen=True)
class Features(Measurement):
    """The features of the clean pass, which cost nothing where it kept them."""

    differentiates = False
    uses_features = True

    def cost(self, network: NetworkTraits) -> Passes:
        return Passes(0)

    @classmethod
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[HeadInputs]:
        features, passes = clean.features, clean.passes
        if features is None:
            passes += 1
            with torch.no_grad():
                features = classifier.observe(clean.inputs, clean.extra_inputs)[1]
        head_inputs = HeadInputs(clean, features.detach().double(), classifier.head.weight.detach().double(), passes)
        return [head_inputs for _ in needs]


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


def passes_of(results: Mapping[Measurement, Any], clean: Clean) -> Tensor:
    """Return the passes beyond the clean one that results state, `[B]`, 0 where they do not; a stream counts once."""
    total = torch.zeros_like(clean.predicted)
    for members in by_stream(results):
        with failing(type(members[0]), "measure"):
            stated = [torch.as_tensor(getattr(results[need], "passes", clean.passes)) for need in members]
            largest = torch.stack([passes.to(total).expand_as(total) for passes in stated]).amax(dim=0)
        total = total + (largest - clean.passes).clamp_min(0)
    return total


def check_draws(draws: int, antithetic: bool = True) -> None:
    if type(draws) is not int or not 2 <= draws <= LARGEST_DRAWS or (antithetic and draws % 2):
        kind = "an even number, as noisy copies come in pairs of opposite noise," if antithetic else "a whole number"
        raise ParameterError(
            f"draws must be {kind} from 2 to {LARGEST_DRAWS:,}; found {draws}. Each costs a pass or more per point"
        )


def check_enough(name: str, count: int) -> None:
    if count < 2:
        raise ParameterError(f"at least 2 {name} are needed for an error; found {count}")


def check_rank(rank: int) -> None:
    if type(rank) is not int or rank < 1:
        raise ParameterError(f"rank must be a whole number of 1 or more, 1 for the predicted class; found {rank}")


def check_classes(classes: int | None) -> None:
    if classes is not None and classes < 1:
        raise ParameterError(f"at least 1 competitor must be kept; found classes={classes}")
