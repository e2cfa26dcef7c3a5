"""Regions of an image: the decisions `masks` and `boxes`."""
