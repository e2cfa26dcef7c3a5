def content(t): return {}
