"""Certified lower bounds of the input margin, by linear relaxation of the network."""

from brittle.measure.certified.radius import Certified, CertifiedRadius

__all__ = ["Certified", "CertifiedRadius"]
