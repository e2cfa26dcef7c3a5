"""Noise: families with a sampler keyed by point and, where there is one, a covariance; and random functions."""

from brittle.noise.base import Noise, at_one, identity
from brittle.noise.families import FAMILIES, Ball, DiagonalGaussian, FactorGaussian, Gaussian, Laplace, Sphere, Uniform
from brittle.noise.stream import Stream
from brittle.noise.tables import PerFeature
from brittle.noise.transform import Transform, Transforming
from brittle.registry import find_attribute

__all__ = [
    "FAMILIES", "Ball", "DiagonalGaussian", "FactorGaussian", "Gaussian", "Laplace", "Noise",
    "PerFeature", "Sphere", "Stream", "Transform", "Transforming", "Uniform", "at_one", "identity",
]  # fmt: skip

__getattr__ = find_attribute(__name__, "family")
