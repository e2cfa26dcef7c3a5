"""The logit margin as a proxy of the distance to the nearest other prediction, and its uses."""
