"""Trains the networks that the studies look at, from seeds, so that anybody can have the same ones."""
