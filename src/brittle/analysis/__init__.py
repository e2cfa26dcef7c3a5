"""What a table says: plain frames and records, one question per module, without loading torch."""

from brittle.analysis.agreement import agreement, format_agreement
from brittle.analysis.class_bias import ClassBias, class_bias
from brittle.analysis.class_differences import Differences, mean_differences
from brittle.analysis.columns import margin_columns
from brittle.analysis.comparison import compare, format_comparison
from brittle.analysis.correlation import kendall_tau
from brittle.analysis.decisions import decide, decisions, format_decisions
from brittle.analysis.detection import Detection, auroc, detection, detection_curve
from brittle.analysis.expected_change import expected_change_points, expected_change_table, format_expected_change
from brittle.analysis.extremes import extremes, ranked
from brittle.analysis.features import changed_features, feature_names, features, kept_counterexamples, kept_inputs
from brittle.analysis.group_means import GroupMeans, format_group_means, group_means, sample_points
from brittle.analysis.label_flips import MeanAbsolute, label_flips, mean_absolute
from brittle.analysis.margin_consistency import (
    Equidistance,
    Isometry,
    MarginConsistency,
    equidistance,
    isometry,
    margin_consistency,
)
from brittle.analysis.mean_interval import MeanInterval, mean_interval
from brittle.analysis.outcomes import outcomes
from brittle.analysis.overview import Overview, overview
from brittle.analysis.overview_text import NextStep, format_overview, next_steps
from brittle.analysis.point_card import find_point, format_point_card, point_card
from brittle.analysis.point_list import format_point_list, point_list
from brittle.analysis.prediction_powered import PoweredMean, powered_mean
from brittle.analysis.probabilistic_accuracy import (
    ProbabilisticAccuracy,
    format_probabilistic_accuracy,
    probabilistic_accuracy,
)
from brittle.analysis.robust_accuracy import (
    EstimatedRobustAccuracy,
    RobustAccuracy,
    direct_robust_accuracy,
    estimate_robust_accuracy,
    subset_study,
)
from brittle.analysis.worst_case import format_worst_case, rank_correlation, worst_case_table
from brittle.store.columns import Column
from brittle.store.settings import Setting

__all__ = [
    "ClassBias",
    "Column",
    "Detection",
    "Differences",
    "Equidistance",
    "EstimatedRobustAccuracy",
    "GroupMeans",
    "Isometry",
    "MarginConsistency",
    "MeanAbsolute",
    "MeanInterval",
    "NextStep",
    "Overview",
    "PoweredMean",
    "ProbabilisticAccuracy",
    "RobustAccuracy",
    "Setting",
    "agreement",
    "auroc",
    "changed_features",
    "class_bias",
    "compare",
    "decide",
    "decisions",
    "detection",
    "detection_curve",
    "direct_robust_accuracy",
    "equidistance",
    "estimate_robust_accuracy",
    "expected_change_points",
    "expected_change_table",
    "extremes",
    "feature_names",
    "features",
    "find_point",
    "format_agreement",
    "format_comparison",
    "format_decisions",
    "format_expected_change",
    "format_group_means",
    "format_overview",
    "format_point_card",
    "format_point_list",
    "format_probabilistic_accuracy",
    "format_worst_case",
    "group_means",
    "isometry",
    "kendall_tau",
    "kept_counterexamples",
    "kept_inputs",
    "label_flips",
    "margin_columns",
    "margin_consistency",
    "mean_absolute",
    "mean_differences",
    "mean_interval",
    "next_steps",
    "outcomes",
    "overview",
    "point_card",
    "point_list",
    "powered_mean",
    "probabilistic_accuracy",
    "rank_correlation",
    "ranked",
    "sample_points",
    "subset_study",
    "worst_case_table",
]
