def pictures(t): return {}
