"""What the page of the study of estimators reads."""
def content(results): return {}
