"""Data as points: files and arrays of many kinds behind one interface."""

from brittle.data.arrays import array_points
from brittle.data.formats import FORMATS, Format, as_points, open_points
from brittle.data.points import Batch, Points

__all__ = [
    "FORMATS",
    "Batch",
    "Format",
    "Points",
    "array_points",
    "as_points",
    "open_points",
]
