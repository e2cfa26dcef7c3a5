"""For which classes the noisy copies of a point voted, as the table holds it: bytes in a cell.

A cell holds little-endian whole numbers of four bytes: how many units of noise, how many copies each of them has (two
in antithetic pairs), and of every class that a copy became its index, the units of which one copy did, and those of
which both did; classes in their order. Copies that are missing there tied, or were not finite.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_NUMBER, _HEAD, _ENTRY = np.dtype("<i4"), 2, 3


@dataclass(frozen=True, eq=False)
class ClassVotes:
    """The votes of `N` points, and a row for each class that a point has votes for, `K` in all; int64.

    Of each point: independent `units` of noise, 0 where nothing was counted, and copies in each, `members`, 1 or 2,
    `[N]`. Of each row, `[K]`: the `place` of its point, the class, the units of which one copy voted for it, `once`,
    and of which both did.
    """

    units: NDArray[np.int64]
    members: NDArray[np.int64]
    place: NDArray[np.int64]
    index: NDArray[np.int64]
    once: NDArray[np.int64]
    both: NDArray[np.int64]

    @property
    def copies(self) -> NDArray[np.int64]:
        """Copies that voted for the class, `[K]`."""
        return self.once + 2 * self.both

    @property
    def draws(self) -> NDArray[np.int64]:
        """Copies of each point, `[N]`."""
        return self.units * self.members

    def most_other(self, than: NDArray[np.int64]) -> NDArray[np.int64]:
        """The class with the most votes other than that of each point, `[N]`; of equals the first, -1 for none."""
        found = np.full(len(self.units), -1)
        other = np.flatnonzero(self.index != than[self.place])
        order = other[np.lexsort((-self.index[other], self.copies[other]))]
        found[self.place[order]] = self.index[order]  # the last of each point stays
        return found


def pack_votes(units: NDArray, classes: NDArray) -> list[bytes]:
    """Votes as cells, `[N]`. Each row, `[N, C, members]`, holds of each class the units of which one copy voted for it
    and, in pairs, those of which both did."""
    members = classes.shape[2]
    place, index = np.nonzero(classes.any(axis=2))
    entries = np.zeros((len(place), _ENTRY), _NUMBER)
    entries[:, 0], entries[:, 1 : 1 + members] = index, classes[place, index]
    ends = np.searchsorted(place, np.arange(len(units) + 1))
    heads = np.stack((units, np.full(len(units), members)), axis=1).astype(_NUMBER)
    return [
        head.tobytes() + entries[start:end].tobytes()
        for head, start, end in zip(heads, ends[:-1], ends[1:], strict=True)
    ]


def unpack_votes(cells: list[bytes | None]) -> ClassVotes:
    """What cells hold, in their order; None holds no votes."""
    known = [cell or np.zeros(_HEAD, _NUMBER).tobytes() for cell in cells]
    sizes = np.array([len(cell) for cell in known], dtype=np.int64) // _NUMBER.itemsize
    if any((len(cell) // _NUMBER.itemsize - _HEAD) % _ENTRY or len(cell) % _NUMBER.itemsize for cell in known):
        raise ValueError("a cell has another number of bytes than votes take")
    numbers = np.frombuffer(b"".join(known), _NUMBER).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    entries = np.ones(len(numbers), dtype=bool)
    entries[starts] = entries[starts + 1] = False
    index, once, both = numbers[entries].reshape(-1, _ENTRY).T
    place = np.repeat(np.arange(len(known)), (sizes - _HEAD) // _ENTRY)
    votes = ClassVotes(numbers[starts], numbers[starts + 1], place, index, once, both)
    given = np.bincount(place, votes.copies, minlength=len(known))
    ordered = (np.diff(index) > 0) | (np.diff(place) > 0)
    if numbers.min(initial=0) < 0 or (votes.members > 2).any() or (given > votes.draws).any() or not ordered.all():
        raise ValueError("a cell holds votes that no copies give")
    return votes


def problem_of_votes(rows: pa.Table) -> str | None:
    """What is wrong with the votes that scores hold, in words; None where nothing is."""
    try:
        unpack_votes(rows["votes"].unique().to_pylist())
    except ValueError as error:
        return f"holds damaged votes: {error}"
    return None
