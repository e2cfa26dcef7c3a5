"""What is scored: a classifier, and what holds while it computes."""
