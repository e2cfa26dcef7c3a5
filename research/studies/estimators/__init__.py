"""The benchmark of estimators: every estimator of the flip probability at every budget, beside plain counting."""
