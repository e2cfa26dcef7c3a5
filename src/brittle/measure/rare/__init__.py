"""Flip probabilities that no count reaches: three ways to sample the same rare flips."""

from __future__ import annotations

from brittle.measure.rare.rare_flips import RareFlips, RareSampled

__all__ = ["RareFlips", "RareSampled"]
