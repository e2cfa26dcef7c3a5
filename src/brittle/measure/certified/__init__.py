"""Certified lower bounds of the input margin, by linear relaxation of the network."""

from brittle.measure.certified.radius import PROOFS, Certified, CertifiedRadius

__all__ = ["PROOFS", "Certified", "CertifiedRadius"]
