"""How far estimators agree: `brittle.analysis.agreement` and its chapter."""
