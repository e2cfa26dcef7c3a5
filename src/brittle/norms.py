"""The norms in which distances between inputs are measured, and their duals."""

from __future__ import annotations

from brittle.errors import ParameterError

DUAL_ORDER = {"l2": 2, "linf": 1}
"""Each norm by name, with the order of its dual: `|<a, b>| <= ||a||_p ||b||_q`, `1/p + 1/q = 1`."""


def check_norm(norm: str) -> str:
    """`norm` itself.

    Raises:
        ParameterError: it is not one of `DUAL_ORDER`.
    """
    if norm not in DUAL_ORDER:
        raise ParameterError("norm", f"the norm must be one of {', '.join(DUAL_ORDER)}; found {norm!r}")
    return norm
