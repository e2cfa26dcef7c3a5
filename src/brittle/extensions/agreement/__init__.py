"""Agreement of estimators with Monte Carlo: `brittle.analysis.agreement` and its chapter."""
