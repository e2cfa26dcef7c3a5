def findings(t): return {}
