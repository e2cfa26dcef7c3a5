"""Flip probabilities that no count reaches: two ways to sample the same rare flips, which fail differently."""

from __future__ import annotations

from brittle.measure.rare.rare_flips import RareFlips, RareSampled

__all__ = ["RareFlips", "RareSampled"]
