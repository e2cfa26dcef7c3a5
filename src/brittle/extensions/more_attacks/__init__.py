"""Attacks for few features (L0) and through steps that have no gradients."""
