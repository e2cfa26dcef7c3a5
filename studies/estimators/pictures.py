"""Pictures"""
def pictures(results): return {}
