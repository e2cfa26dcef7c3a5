"""A classifier, and the conditions under which it computes."""
