"""The norms in which distances between inputs are measured, their duals, and the sizes of perturbations."""

from __future__ import annotations

import math
from collections.abc import Collection
from difflib import get_close_matches

from brittle.errors import ParameterError, UnknownNameError

DUAL_ORDER = {"linf": 1.0, "l2": 2.0, "l1": math.inf}
"""The only list of norms: each by name, with the order of its dual, `|<a, b>| <= ||a||_p ||b||_q`, `1/p + 1/q = 1`."""

ORDER = {"linf": math.inf, "l2": 2.0, "l1": 1.0}
"""The order of each norm itself."""

COUNT = "l0"
"""The number of features that change: a distance that no norm gives, without a dual."""

DISTANCES = (*DUAL_ORDER, COUNT)
"""In what the distance between two inputs is measured."""


def check_norm(norm: str, known: Collection[str] = tuple(DUAL_ORDER)) -> str:
    """`norm` itself.

    Raises:
        UnknownNameError: it is not one of `known`.
    """
    if norm == COUNT and COUNT not in known:
        raise UnknownNameError(
            f"{COUNT} is a distance for input_margin alone; here the norm is one of {', '.join(known)}",
        )
    if not isinstance(norm, str) or norm not in known:
        near = get_close_matches(str(norm), known, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UnknownNameError(f"no norm is called {norm!r:.60}; {hint}there are {', '.join(known)}")
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
        raise ParameterError(f"epsilon must be a positive number or a fraction as 8/255; found {text!r:.60}")
    return value
