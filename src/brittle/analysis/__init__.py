"""Questions to a table, one per module, answered by plain frames and records without loading torch."""

from brittle.analysis.class_bias import class_bias
from brittle.analysis.class_votes import class_votes
from brittle.analysis.comparison import compare, format_comparison
from brittle.analysis.decisions import decide
from brittle.analysis.detection import detection
from brittle.analysis.mean_interval import mean_interval
from brittle.analysis.outcomes import outcomes
from brittle.analysis.overview import overview
from brittle.analysis.point_card import point_card
from brittle.analysis.point_list import point_list
from brittle.registry import find_attribute

__all__ = [
    "class_bias", "class_votes", "compare", "decide", "detection", "format_comparison", "mean_interval", "outcomes",
    "overview", "point_card", "point_list",
]  # fmt: skip

__getattr__ = find_attribute(__name__, "analysis")
