"""A metric of MAITE."""
