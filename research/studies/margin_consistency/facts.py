"""Facts of a network before its measurement: its training, and the perturbation size of the questions."""

from __future__ import annotations

from dataclasses import dataclass

from studies.groups import PUBLISHED, group_of
from studies.networks import Network
from studies.train.images import DATASETS as TRAINED

EUCLIDEAN = {"mnist": 1.5, "fashion_mnist": 1.0, "fashion_mnist_900": 1.0}
"""Perturbation sizes in L2 by data set."""

USUAL = {"linf": 8 / 255, "l2": 0.5}
"""Perturbation sizes of data sets that nothing is said about."""

NORMS = ("linf", "l2")


@dataclass(frozen=True)
class Facts:
    """Facts of a network.

    Attributes:
        architecture: as its `meta.json` says; empty where it says nothing.
        way: of training.
        group: one of `GROUPS`.
        linf: the perturbation size in Linf: that of its training, or that of its data set.
        l2: in L2, by data set.
    """

    architecture: str
    way: str
    group: str
    linf: float
    l2: float


def facts_of(network: Network) -> Facts:
    """Read the facts in `meta.json`, with defaults for the others."""
    meta = network.meta()
    method, trained_epsilon = str(meta.get("way") or PUBLISHED.get(network.name, "")), meta.get("epsilon")
    data = TRAINED.get(network.dataset)
    return Facts(
        architecture=str(meta.get("architecture") or ""),
        way=method,
        group=group_of(method),
        linf=float(trained_epsilon or (data.epsilon if data else USUAL["linf"])),
        l2=EUCLIDEAN.get(network.dataset, USUAL["l2"]),
    )
