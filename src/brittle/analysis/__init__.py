"""Questions to a table, one per module, answered by plain frames and records without loading torch."""

from brittle.analysis.class_bias import class_bias
from brittle.analysis.class_votes import class_votes, confusions
from brittle.analysis.comparison import compare, format_comparison
from brittle.analysis.decisions import decide
from brittle.analysis.detection import detection
from brittle.analysis.features import changed_features, feature_names, features, kept_counterexamples, kept_inputs
from brittle.analysis.mean_interval import mean_interval
from brittle.analysis.outcomes import outcomes
from brittle.analysis.overview import overview
from brittle.analysis.point_card import point_card
from brittle.analysis.point_list import point_list
from brittle.registry import find_attribute
from brittle.store.columns import Column

__all__ = [
    "Column", "changed_features", "class_bias", "class_votes", "compare", "confusions", "decide", "detection",
    "feature_names", "features", "format_comparison", "kept_counterexamples", "kept_inputs", "mean_interval",
    "outcomes", "overview", "point_card", "point_list",
]  # fmt: skip

__getattr__ = find_attribute(__name__, "analysis")
