"""Inputs that a run keeps, by their features: small inputs other than images."""

import math
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from brittle.analysis.columns import key_of
from brittle.errors import DataError
from brittle.store.columns import Key, column_of, storable
from brittle.store.record import DataRecord
from brittle.store.schemas import MAX_KEPT, keeps, unpack
from brittle.store.table import Table


def feature_names(data: DataRecord) -> list[str]:
    """Return the name of every number of an input, in the order of its axes (C order), `[D]`.

    Those that the data give, if they are as many; otherwise `x0`, `x1`, ..., and `x[0, 3]` where inputs have more axes.

    Raises:
        DataError: inputs of this shape are not kept.
    """
    shape = data.input_shape
    if shape is None or not keeps(shape):
        raise _nothing_kept(shape)
    if data.feature_names is not None and len(data.feature_names) == math.prod(shape):
        return [storable(name) for name in data.feature_names]
    if len(shape) == 1:
        return [f"x{place}" for place in range(shape[0])]
    return [f"x[{', '.join(map(str, place))}]" for place in product(*map(range, shape))]


def kept_inputs(table: Table) -> np.ndarray:
    """Return the inputs of all points in the order of `table.points`, `[N, D]`, float64, in the declared units.

    They are what the network got, without a rounding: in the precision in which it computes. Rows of NaN are those of
    points that were not read.

    Raises:
        DataError: the run keeps no inputs, because they are images or have more than `MAX_KEPT` numbers.
    """
    return _inputs(table, table.points["input"])


def kept_counterexamples(table: Table, score: Key | None = None) -> np.ndarray:
    """Return the nearest inputs of another prediction, `[N, D]`, in the order of `table.points`; NaN without any.

    Args:
        table: a run.
        score: the score that found them, as `table[score]` takes it; by default the first of the run that found any.

    Raises:
        DataError: the run keeps no inputs, or has no such score, or none of its scores found such an input.
    """
    rows = _found_by(table, table.counterexamples, score)
    places = {point: place for place, point in enumerate(table.points["point"].to_pylist())}
    inputs = _inputs(table, rows["input"])
    all_inputs = np.full((len(places), inputs.shape[1]), np.nan)
    for point, values in zip(rows["point"].to_pylist(), inputs, strict=True):
        if point in places:
            all_inputs[places[point]] = values
    return all_inputs


def features(table: Table, point: str) -> pd.DataFrame:
    """Return the features of a point: `feature` (its name) and `value`, in the declared units, one row per feature.

    Args:
        table: a run.
        point: its id (`find_point` gives it).

    Raises:
        DataError: the run keeps no inputs.
    """
    value = _inputs(table, table.points.filter(pc.field("point") == point)["input"])[0]
    return pd.DataFrame({"feature": feature_names(table.record.data), "value": value})


def changed_features(table: Table, point: str, score: Key | None = None) -> pd.DataFrame:
    """Return the features in which the nearest input with another prediction differs from a point.

    Args:
        table: a run.
        point: its id (`find_point` gives it).
        score: the score that found that input, as `table[score]` takes it; by default the first of the run that found
            one for this point.

    Returns:
        One row per feature: `feature` (its name), `value` at the point, `other` at the input that was found,
        and `change`, which is `other - value`, the largest absolute change first, equal ones in the order of the
        features; in the declared units.

    Raises:
        DataError: the run keeps no inputs, has no such score, or found no such input for the point.
    """
    value = features(table, point)["value"].to_numpy()
    rows = table.counterexamples.filter(pc.field("point") == point)
    counterexample = _inputs(table, _found_by(table, rows, score)["input"])[0]
    frame = pd.DataFrame({"feature": feature_names(table.record.data), "value": value, "other": counterexample})
    frame["change"] = np.where(np.isnan(value), 0.0, counterexample - value)  # a missing value stays missing
    return frame.iloc[np.argsort(-frame["change"].abs().to_numpy(), kind="stable")].reset_index(drop=True)


def _found_by(table: Table, rows: pa.Table, score: Key | None) -> pa.Table:
    """Return the counterexamples in `rows` of a score, by default of the first score of the run with any."""
    keys = list(zip(rows["score"].to_pylist(), rows["parameters"].to_pylist(), strict=True))
    columns = table.columns if score is None else (column_of(table.columns, score),)
    key = next((key_of(column) for column in columns if key_of(column) in keys), None)
    if key is None:
        who = "any score of the run" if score is None else columns[0].label
        advice = "--scores input_margin searches for one"
        raise DataError("no_such_point", f"no input with another prediction was found by {who}; {advice}")
    return rows.filter(pa.array([pair == key for pair in keys], pa.bool_()))


def _inputs(table: Table, column: pa.ChunkedArray) -> np.ndarray:
    """Return the inputs in a column of points or counterexamples, `[N, D]`."""
    shape = table.record.data.input_shape
    if shape is None or not keeps(shape) or table.points["input"].null_count == len(table.points):
        raise _nothing_kept(shape)
    return unpack(column, math.prod(shape))


def _nothing_kept(shape: tuple[int, ...] | None) -> DataError:
    shape_note = "" if shape is None else f" of shape {list(shape)!s:.40}"
    limit = f"those of at most {MAX_KEPT} numbers that are no images"
    return DataError("no_such_point", f"the run keeps none of its inputs{shape_note}; it keeps {limit}")
