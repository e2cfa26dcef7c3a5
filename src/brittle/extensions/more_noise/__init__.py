"""Noise in the measure of the point itself, and values from other rows: `relative`, `decibels`, `swap`."""
