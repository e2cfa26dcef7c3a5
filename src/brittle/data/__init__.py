"""Data as points: files and arrays of many kinds behind one interface."""

from brittle.data.arrays import array_points
from brittle.data.datasets import dataset_points
from brittle.data.formats import open_points
from brittle.data.ids import choose_points, sample_points
from brittle.data.points import Batch, Points
from brittle.registry import find_attribute

__all__ = ["Batch", "Points", "array_points", "choose_points", "dataset_points", "open_points", "sample_points"]

__getattr__ = find_attribute(__name__, "points")
