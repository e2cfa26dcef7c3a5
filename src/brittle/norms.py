"""The norms in which distances between inputs are measured, their duals, and the sizes of perturbations."""

from __future__ import annotations

import math
from difflib import get_close_matches

from brittle.errors import ParameterError, UnknownNameError

DUAL_ORDER = {"linf": 1.0, "l2": 2.0, "l1": math.inf}
"""The only list of norms: each by name, with the order of its dual, `|<a, b>| <= ||a||_p ||b||_q`, `1/p + 1/q = 1`."""

ORDER = {"linf": math.inf, "l2": 2.0, "l1": 1.0}
"""The order of each norm itself."""


def check_norm(norm: str) -> str:
    """`norm` itself.

    Raises:
        UnknownNameError: it is not one of `DUAL_ORDER`.
    """
    if not isinstance(norm, str) or norm not in DUAL_ORDER:
        near = get_close_matches(str(norm), DUAL_ORDER, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UnknownNameError(
            "unknown_name", f"no norm is called {norm!r:.60}; {hint}there are {', '.join(DUAL_ORDER)}"
        )
    return norm


def parse_epsilon(text: float | str) -> float:
    """A perturbation size: a positive number, or a fraction of two such as `8/255`, rounded once.

    Raises:
        ParameterError: it is not.

    Example:
        >>> parse_epsilon("8/255") == 8 / 255
        True
    """
    above, bar, below = str(text).partition("/")
    try:
        value = float(above) / float(below if bar else 1)
    except (ValueError, ZeroDivisionError):
        value = math.nan
    if not 0.0 < value < math.inf:
        raise ParameterError("epsilon", f"epsilon must be a positive number or a fraction as 8/255; found {text!r:.60}")
    return value
