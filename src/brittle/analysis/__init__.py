"""What a table says: plain frames and records, one question per module, without loading torch."""

from brittle.analysis.class_bias import ClassBias, class_bias, mean_differences
from brittle.analysis.class_votes import class_votes, confusions
from brittle.analysis.columns import margin_columns
from brittle.analysis.comparison import compare, format_comparison
from brittle.analysis.correlation import kendall_tau
from brittle.analysis.decisions import decide
from brittle.analysis.detection import Detection, auroc, detection
from brittle.analysis.features import changed_features, feature_names, features, kept_counterexamples, kept_inputs
from brittle.analysis.mean_interval import mean_interval
from brittle.analysis.outcomes import outcomes
from brittle.analysis.overview import Overview, overview
from brittle.analysis.overview_text import format_overview, next_steps
from brittle.analysis.point_card import find_point, format_point_card, point_card
from brittle.analysis.point_list import format_point_list, point_list
from brittle.analysis.rules import Checked, Verdict
from brittle.registry import find_attribute
from brittle.store.columns import Column
from brittle.store.settings import Setting

__all__ = [
    "Checked", "ClassBias", "Column", "Detection", "Overview", "Setting", "Verdict", "auroc", "changed_features",
    "class_bias", "class_votes", "compare", "confusions", "decide", "detection", "feature_names",
    "features", "find_point", "format_comparison", "format_overview", "format_point_card", "format_point_list",
    "kendall_tau", "kept_counterexamples", "kept_inputs", "margin_columns", "mean_differences", "mean_interval",
    "next_steps", "outcomes", "overview", "point_card", "point_list",
]  # fmt: skip

__getattr__ = find_attribute(__name__, "analysis")
