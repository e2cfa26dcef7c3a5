"""What a table says: plain frames and records, one question per module, without loading torch."""

from brittle.analysis.agreement import agreement, format_agreement
from brittle.analysis.class_bias import ClassBias, class_bias
from brittle.analysis.comparison import compare, format_comparison
from brittle.analysis.detection import Detection, detection, detection_curve, roc_curve
from brittle.analysis.distribution import distribution, histogram
from brittle.analysis.expected_change import expected_change_points, expected_change_table, format_expected_change
from brittle.analysis.extremes import extremes, ranked
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
from brittle.analysis.rank_correlation import rank_correlation
from brittle.analysis.robust_accuracy import (
    EstimatedRobustAccuracy,
    RobustAccuracy,
    Sanity,
    direct_robust_accuracy,
    estimate_robust_accuracy,
    sanity,
    subset_study,
)
from brittle.analysis.worst_case import format_worst_case, margin_columns, worst_case_table
from brittle.store.columns import Column, Setting

__all__ = [
    "ClassBias",
    "Column",
    "Detection",
    "Equidistance",
    "EstimatedRobustAccuracy",
    "Isometry",
    "MarginConsistency",
    "MeanAbsolute",
    "MeanInterval",
    "RobustAccuracy",
    "Sanity",
    "Setting",
    "agreement",
    "class_bias",
    "compare",
    "detection",
    "detection_curve",
    "direct_robust_accuracy",
    "distribution",
    "equidistance",
    "estimate_robust_accuracy",
    "expected_change_points",
    "expected_change_table",
    "extremes",
    "format_agreement",
    "format_comparison",
    "format_expected_change",
    "format_worst_case",
    "histogram",
    "isometry",
    "kendall_tau",
    "label_flips",
    "margin_columns",
    "margin_consistency",
    "mean_absolute",
    "mean_interval",
    "outcomes",
    "rank_correlation",
    "ranked",
    "roc_curve",
    "sanity",
    "subset_study",
    "worst_case_table",
]
