"""How far the usual estimate of probabilistic robust accuracy, no flip in a hundred copies, is from the truth."""
