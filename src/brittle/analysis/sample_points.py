"""A random sample of the points of a run, for what is too expensive on all of them."""

from __future__ import annotations

import hashlib

import pandas as pd

from brittle.errors import ParameterError
from brittle.store.columns import Scored


def sample_points(table: Scored, count: int, seed: int = 0) -> pd.DataFrame:
    """`count` of the points of `table`, each set of so many as likely as any other, whatever their values are.

    Every point gets a number keyed by `seed` and its id, and those with the smallest are taken. So the choice knows
    no score, does not depend on the order of the points, and a smaller sample lies within a larger one. Points that
    could not be evaluated take part: to leave them out is up to what is computed on the sample.

    Args:
        table: a run.
        count: how many points; all of them, if the run holds no more.
        seed: another one is another sample.

    Returns:
        `point` (its id), `row` (its place in the data) and `name`, in the order of the data.

    Raises:
        ParameterError: `count` is no whole number of at least 1.
    """
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ParameterError(f"the sample must hold a whole number of points, at least 1; found {count!r:.60}")
    points = table.points.select(["point", "row", "name"]).to_pandas()
    order = sorted(range(len(points)), key=lambda place: _number(seed, str(points["point"].iat[place])))
    return points.iloc[sorted(order[:count])].reset_index(drop=True)


def _number(seed: int, point: str) -> bytes:
    return hashlib.blake2b(f"{seed}\nsample of points\n{point}".encode("utf-8", "surrogatepass")).digest()
