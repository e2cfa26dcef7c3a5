"""Whether the logit margin follows the distance to the nearest other prediction, and what that is good for."""
