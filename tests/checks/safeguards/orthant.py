"""Safeguards of `orthant/`, each with what is taken out and the test that turns red."""

from __future__ import annotations

from checks.safeguards.named_tests import CALLER
from checks.taken_out import mutation

SAFEGUARDS = (
    # Threads, and what a caller has switched.
    mutation(
        "lattices of one dtype", "orthant/lattice.py",
        "% size).double() / size\n", "% size) / size\n",
        f"{CALLER}every_score_has_the_same_bytes[float64]",
    ),
)  # fmt: skip
