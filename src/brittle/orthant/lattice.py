"""Rank-1 lattices with random shifts, on which `brittle.orthant` integrates."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

SHIFTS = 8
"""Independent random shifts of each lattice: their spread is the error."""

LATTICES = {31: 3, 127: 3, 509: 2, 1021: 10, 2039: 7, 4093: 2, 8191: 17, 16381: 2, 32749: 2, 131071: 3}
"""Prime sizes and primitive roots of the lattices; an integral goes on to the next where its error asks it to."""


def shifts(size: int, dimension: int, seed: int) -> Tensor:
    """The random shifts of the lattice of this size: `[dimension, SHIFTS]`."""
    return torch.from_numpy(np.random.default_rng([seed, size]).random((dimension, SHIFTS)))


def coordinate(index: Tensor, shifts: Tensor, size: int, j: int) -> Tensor:
    """Coordinate `j` of the points `index` of each shifted lattice, folded by the tent: `[shifts * points]`."""
    points = (index * generating_vector(size, len(shifts))[j] % size).double() / size
    return (2 * (points + shifts[j, :, None]).frac() - 1).abs().flatten()


@lru_cache(maxsize=64)
def generating_vector(size: int, dimension: int) -> list[int]:
    """Generating vector of a rank-1 lattice of prime `size`, by fast component-by-component construction.

    Minimises the worst-case error in the Korobov space of smoothness 2 with product weights `1 / j^2`; a lattice point
    and its mirror image count alike, so half the multiplicative group is searched.
    Source: D. Nuyens, R. Cools, Fast algorithms for component-by-component construction of rank-1 lattice rules,
    Math. Comp. 75 (2006), sec. 4.
    """
    half = (size - 1) // 2
    powers = [pow(LATTICES[size], exponent, size) for exponent in range(half)]
    x = np.array(powers) / size
    kernel = 2 * np.pi**2 * (x * x - x + 1 / 6)
    spectrum = np.fft.rfft(kernel)
    product = np.ones(half)  # over the components chosen, at lattice point `root^-i`
    chosen = 0
    vector: list[int] = []
    for j in range(dimension):
        if j > 0:
            chosen = int(np.argmin(np.fft.irfft(spectrum * np.fft.rfft(product), half)))
        vector.append(powers[chosen])
        product *= 1 + np.roll(kernel[::-1], chosen + 1) / (j + 1) ** 2
    return vector
