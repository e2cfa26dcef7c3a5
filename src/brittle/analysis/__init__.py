"""What a table says: plain frames and records, one question per module, without loading torch."""

from brittle.analysis.agreement import agreement, format_agreement
from brittle.analysis.class_bias import ClassBias, class_bias
from brittle.analysis.class_differences import Differences, mean_differences
from brittle.analysis.comparison import compare
from brittle.analysis.comparison_text import format_comparison
from brittle.analysis.decisions import decide, decisions, format_decisions
from brittle.analysis.detection import Detection, auroc, detection, detection_curve, roc_curve
from brittle.analysis.distribution import distribution, histogram
from brittle.analysis.expected_change import expected_change_points, expected_change_table, format_expected_change
from brittle.analysis.extremes import extremes, ranked
from brittle.analysis.features import changed_features, feature_names, features, kept_counterexamples, kept_inputs
from brittle.analysis.group_means import GroupMeans, format_group_means, group_means
from brittle.analysis.kendall import kendall_tau
from brittle.analysis.label_flips import label_flips
from brittle.analysis.margin_consistency import (
    Equidistance,
    Isometry,
    MarginConsistency,
    equidistance,
    isometry,
    margin_consistency,
)
from brittle.analysis.mean_absolute import MeanAbsolute, mean_absolute
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
from brittle.analysis.rank_correlation import rank_correlation
from brittle.analysis.robust_accuracy import (
    EstimatedRobustAccuracy,
    RobustAccuracy,
    direct_robust_accuracy,
    estimate_robust_accuracy,
    subset_study,
)
from brittle.analysis.sample_points import sample_points
from brittle.analysis.sanity import Sanity, sanity
from brittle.analysis.worst_case import format_worst_case, margin_columns, worst_case_table
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
    "Sanity",
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
    "distribution",
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
    "histogram",
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
    "roc_curve",
    "sample_points",
    "sanity",
    "subset_study",
    "worst_case_table",
]
