"""A certificate or a search at a few of the first points, with its time."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.measure import Certified, CertifiedRadius, Measurement
from brittle.measure.base import look_for
from brittle.model.aside import Aside
from brittle.model.classifier import Classifier


@dataclass(frozen=True)
class Trial:
    """What a measurement of some points took.

    Attributes:
        need: the measurement.
        passes: passes per point beyond the clean one, on average.
        seconds: seconds for all of them.
        unsupported: the layer because of which there is no certificate; None where there is one, or none was asked for.
    """

    need: Measurement
    passes: float
    seconds: float
    unsupported: str | None = None


def tried(
    need: Measurement, classifier: Classifier, inputs: Tensor, aside: Aside | None, seed: int, count: int = 1
) -> Trial:
    """Take `need`, whose result says its `passes`, at the first `count` of `inputs`, `[V, *shape]`.

    Args:
        need: the measurement.
        classifier: with the decision of the run.
        inputs: at least one.
        aside: what they have beside them.
        seed: of the run.
        count: how many points.
    """
    some = inputs[:count]
    beside = None if aside is None else aside.only(torch.arange(len(some)))
    ids = tuple(f"doctor {row}" for row in range(len(some)))
    clean = look_for([need], classifier, some, ids, seed, aside=beside)
    started = time.perf_counter()
    found = need(classifier, clean)
    passes = float((found.passes - clean.passes).double().mean())  # a number that is read, so the device is done
    seconds = time.perf_counter() - started
    unsupported = found.unsupported if isinstance(found, CertifiedRadius) else None
    return Trial(need, passes, seconds, unsupported)


def certificates_among(needs: list[Measurement]) -> list[Certified]:
    """Those of the measurements that are certificates."""
    return [need for need in needs if isinstance(need, Certified)]
