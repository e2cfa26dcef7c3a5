"""Flips too rare to count: `rare_event`."""
