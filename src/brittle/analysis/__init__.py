"""What a table says: plain frames and records, one question per module, without loading torch."""

from brittle.analysis.agreement import agreement, format_agreement
from brittle.analysis.class_bias import ClassBias, class_bias
from brittle.analysis.columns import Column, Setting, columns
from brittle.analysis.distribution import distribution, histogram
from brittle.analysis.extremes import extremes, ranked
from brittle.analysis.mean_interval import MeanInterval, mean_interval
from brittle.analysis.outcomes import outcomes
from brittle.analysis.rank_correlation import kendall_tau, rank_correlation

__all__ = [
    "ClassBias",
    "Column",
    "MeanInterval",
    "Setting",
    "agreement",
    "class_bias",
    "columns",
    "distribution",
    "extremes",
    "format_agreement",
    "histogram",
    "kendall_tau",
    "mean_interval",
    "outcomes",
    "rank_correlation",
    "ranked",
]
