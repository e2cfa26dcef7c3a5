"""Flip probabilities that no count reaches: subset simulation and importance sampling of the same rare flips."""

from __future__ import annotations

from brittle.measure.rare.rare_flips import RareFlips, RareSampled

__all__ = ["RareFlips", "RareSampled"]
