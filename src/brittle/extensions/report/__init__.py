"""The page of a run, one HTML file, its notebook frame, and a run in a few lines."""
