"""Findings"""
def findings(results): return []
