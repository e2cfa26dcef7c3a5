"""Whether the logit margin follows the distance to the nearest input with another prediction, and what that is good for."""
