"""Robust accuracy by few attacks: those that the margins choose."""
