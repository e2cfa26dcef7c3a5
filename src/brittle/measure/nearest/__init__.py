"""Minimal-norm attacks: the nearest input with another prediction.

Attacks propose inputs (one file each); `search.Search` shows them to the network, counts the passes and keeps the
nearest that were really classified otherwise.
"""

from brittle.measure.nearest.effort import EFFORTS, Effort
from brittle.measure.nearest.nearest import ATTACKS, Nearest, NearestPoint

__all__ = ["ATTACKS", "EFFORTS", "Effort", "Nearest", "NearestPoint"]
