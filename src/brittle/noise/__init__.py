"""Noise: families with a sampler keyed by point and, where there is one, a covariance; and random functions."""

from brittle.noise.base import Noise, identity
from brittle.noise.families import Ball, DiagonalGaussian, FactorGaussian, Gaussian, Laplace, Sphere, Uniform
from brittle.noise.stream import Stream
from brittle.noise.tables import PerFeature
from brittle.noise.transform import Transform, Transforming
from brittle.registry import find_attribute

__all__ = [
    "Ball", "DiagonalGaussian", "FactorGaussian", "Gaussian", "Laplace", "Noise", "PerFeature", "Sphere", "Stream",
    "Transform", "Transforming", "Uniform", "identity",
]  # fmt: skip

__getattr__ = find_attribute(__name__, "family")
