"""Families of scores and inputs over which laws are checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from brittle.noise import Ball, Laplace, Sphere, Uniform
from brittle.scores import (
    MMSE,
    MMSEMVS,
    ChangeBound,
    Entropy,
    FeatureDistance,
    FeatureMargin,
    FirstOrderChange,
    FirstOrderMargin,
    InputMargin,
    Laplacian,
    LogitMargin,
    MaxProbability,
    Moments,
    MonteCarlo,
    NoiseScore,
    ProbabilityChange,
    ProbabilityMargin,
    RareEvent,
    Score,
    Shrinkage,
    Softmax,
    Taylor,
    TaylorMVS,
)
from brittle.scores.catalogue import CATALOGUE

SIGMA = 0.2

EXAMPLES: list[Score] = [
    MonteCarlo(SIGMA, draws=64, limit=None),
    MonteCarlo(SIGMA, draws=64, clip=True, limit=None),
    MonteCarlo(noise=Sphere(SIGMA), draws=16, limit=None),
    MonteCarlo(SIGMA, draws=100),
    Moments(SIGMA, draws=32),
    Moments(noise=Laplace(SIGMA), draws=8),
    Shrinkage(SIGMA, draws=32, limit=None),
    Shrinkage(SIGMA, draws=8, clip=True, limit=None),
    Shrinkage(SIGMA, draws=32),
    Shrinkage(SIGMA, draws=200),
    Taylor(SIGMA),
    Taylor(noise=Uniform(SIGMA)),
    Taylor(SIGMA, classes=2),
    TaylorMVS(SIGMA),
    MMSE(SIGMA, draws=6),
    MMSE(SIGMA, draws=5, antithetic=False),
    MMSE(SIGMA, draws=6, form="linear"),
    MMSEMVS(SIGMA, draws=6),
    MMSEMVS(noise=Ball(SIGMA), draws=4),
    Softmax(),
    Softmax(temperature=3.0),
    RareEvent(SIGMA, copies=50),
    InputMargin(effort="fast"),
    InputMargin("linf", effort="fast"),
    InputMargin("linf", effort="fast", certify=True, proof="fast"),
    LogitMargin(),
    FirstOrderMargin(),
    FirstOrderMargin(norm="linf"),
    FeatureDistance(effort="fast"),
    FeatureMargin(),
    FeatureMargin(norm="linf"),
    MaxProbability(),
    ProbabilityMargin(),
    Entropy(),
    Laplacian(),
    Laplacian("gram", classes=2),
    Laplacian("probes", probes=8),
    ProbabilityChange(SIGMA, draws=32),
    ProbabilityChange(noise=Sphere(SIGMA), draws=32, statistic="variance"),
    ProbabilityChange(SIGMA, draws=32, statistic="absolute", clip=True),
    FirstOrderChange(SIGMA),
    FirstOrderChange(noise=Sphere(SIGMA), statistic="absolute"),
    ChangeBound(SIGMA, columns=8),
]
"""At least one of every kind; `test_catalogue.py` checks that."""


def one_of(name: str, **parameters: Any) -> Score:
    """Return a score of the catalogue by name, at `SIGMA` where it has one."""
    kind = CATALOGUE[name]
    return kind(sigma=SIGMA, **parameters) if issubclass(kind, NoiseScore) else kind(**parameters)


def said(**changes: object) -> type[Score]:
    """Return a score that declares all it must, but for `changes`."""
    texts = {name: name for name in ("title", "quantity", "cost", "reference", "explanation")}
    body = {
        **texts,
        "name": "mine",
        "needs": (),
        "estimate": lambda self, measured, confidence: None,
        "__annotations__": {},
    }
    return dataclass(frozen=True)(type("Mine", (Score,), body | changes))
