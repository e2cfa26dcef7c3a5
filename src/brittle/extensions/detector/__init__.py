"""A calibrated rule that says from one forward pass whether a prediction is brittle, tied to its model."""
