"""Arrays of one entry per point, side by side, without the points that lack a number."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from brittle.errors import ParameterError


def paired(**sequences: ArrayLike) -> tuple[list[NDArray[np.float64]], int]:
    """The points at which every sequence has a number, and how many were left out.

    Args:
        sequences: one entry per point, `[n]` each, by the name used in a message; None and NaN are no number, infinite
            values are.

    Returns:
        the sequences at those points, float64, in the order given, and the number of points left out.

    Raises:
        ParameterError: they are not sequences of one length.

    Example:
        >>> (margin, score), dropped = paired(margin=[0.1, None, 0.3], score=[1.0, 2.0, 3.0])
        >>> margin.tolist(), score.tolist(), dropped
        ([0.1, 0.3], [1.0, 3.0], 1)
    """
    arrays = one_length(**sequences)
    known = ~np.any(np.isnan(arrays), axis=0)
    return [array[known] for array in arrays], int((~known).sum())


def one_length(**sequences: ArrayLike) -> list[NDArray[np.float64]]:
    """The sequences as float64, `[n]` each, None as NaN.

    Raises:
        ParameterError: they are not sequences of one length.
    """
    arrays = [np.asarray(sequence, dtype=np.float64) for sequence in sequences.values()]
    if any(array.shape != arrays[0].shape[:1] for array in arrays):
        found = ", ".join(f"{name} {list(array.shape)}" for name, array in zip(sequences, arrays, strict=True))
        raise ParameterError(f"the arrays must hold one number per point, as many each; found {found}")
    return arrays


def check_epsilon(epsilon: float) -> float:
    """`epsilon` itself.

    Raises:
        ParameterError: it is not a number of at least 0.
    """
    if not epsilon >= 0.0:
        raise ParameterError(f"epsilon must be a distance of at least 0; found {epsilon}")
    return float(epsilon)
