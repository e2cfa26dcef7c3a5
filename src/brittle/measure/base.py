"""What all measurements have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from brittle.errors import ParameterError

if TYPE_CHECKING:
    from brittle.measure.forward import Clean
    from brittle.model.classifier import Classifier

MOST_DRAWS = 10_000_000
"""More noisy copies of one point than anybody waits for; a larger number is a slip of the finger."""


@dataclass(frozen=True)
class Measurement(ABC):
    """One kind of pass through the network. Equal measurements are taken once."""

    @property
    def stream(self) -> Hashable:
        """Measurements of equal stream share their passes."""
        return self

    @property
    def uses_graph(self) -> bool:
        """Whether it differentiates the clean pass itself, where that pass kept its graph."""
        return False

    @property
    def uses_features(self) -> bool:
        """Whether it reads what the last linear layer sees in the clean pass."""
        return False

    @classmethod
    @abstractmethod
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[Any]:
        """The results of `needs`, which share one stream."""

    def __call__(self, classifier: Classifier, clean: Clean) -> Any:
        """Take this measurement alone."""
        with classifier.evaluating():
            return self.measure([self], classifier, clean)[0]


def take(needs: Iterable[Measurement], classifier: Classifier, clean: Clean) -> dict[Measurement, Any]:
    """Take every measurement of `needs` once, those of one stream together."""
    streams: dict[Hashable, dict[Measurement, None]] = {}
    for need in needs:
        streams.setdefault((type(need), need.stream), {})[need] = None
    taken: dict[Measurement, Any] = {}
    with classifier.evaluating():
        for group in streams.values():
            members = list(group)
            taken |= zip(members, type(members[0]).measure(members, classifier, clean), strict=True)
            if members[0].uses_graph:
                clean = replace(clean, graph=None)
    return taken


def check_draws(draws: int, antithetic: bool = True) -> None:
    """Raise unless `draws` is a number of noisy copies that can be taken.

    Raises:
        ParameterError: below 2, above `MOST_DRAWS`, or odd where antithetic pairs are drawn.
    """
    even = ", even (they come in antithetic pairs)" if antithetic else ""
    if not 2 <= draws <= MOST_DRAWS or (antithetic and draws % 2):
        raise ParameterError(
            "draws",
            f"draws must be between 2 and {MOST_DRAWS}{even}; found {draws}. Each costs a pass or more per point",
        )


def without_draws(measurement: Any) -> Hashable:
    """The stream of a measurement whose smaller budgets are the first draws of the larger ones."""
    return replace(measurement, draws=2)
