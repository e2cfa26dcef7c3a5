"""Noise: families with a sampler keyed by point and, where there is one, a covariance."""

from brittle.noise.base import Noise, at_one, identity
from brittle.noise.families import (
    FAMILIES,
    OWN,
    Ball,
    DiagonalGaussian,
    FactorGaussian,
    FunctionGaussian,
    Gaussian,
    Laplace,
    Sphere,
    Uniform,
)
from brittle.noise.stream import Stream

__all__ = [
    "FAMILIES",
    "OWN",
    "Ball",
    "DiagonalGaussian",
    "FactorGaussian",
    "FunctionGaussian",
    "Gaussian",
    "Laplace",
    "Noise",
    "Sphere",
    "Stream",
    "Uniform",
    "at_one",
    "identity",
]
