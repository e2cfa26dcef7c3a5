"""Columns of every type, the estimators that read them, and the sources of a frame."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

import brittle
from brittle.errors import BrittleError

ROWS = 48

DRAWN = np.random.default_rng(0)
FLOATS, PLACES, HOLES = DRAWN.normal(size=ROWS), DRAWN.integers(0, 3, ROWS), DRAWN.random(ROWS) < 0.2
TEXT = pd.Series(np.array(["ant", "bee", "cat"])[PLACES])
DATES = pd.Series(pd.Timestamp("2020-01-01 12:30") + pd.to_timedelta(np.arange(ROWS) // 4, "D"))

KINDS: dict[str, Any] = {
    "float": pd.Series(FLOATS),
    "int": pd.Series(PLACES * 40 + np.arange(ROWS)),
    "bool": pd.Series(PLACES > 0),
    "category": TEXT.astype("category"),
    "ordered category": TEXT.astype(pd.CategoricalDtype(["cat", "ant", "bee", "dog"], ordered=True)),
    "category of numbers": pd.Series(PLACES * 10).astype("category"),
    "text": TEXT,
    "object": TEXT.astype(object),
    "datetime": DATES,
    "datetime with zone": DATES.dt.tz_localize("Europe/Berlin"),
    "timedelta": DATES - DATES[0],
    "Int64": pd.Series(PLACES * 40 + np.arange(ROWS), dtype="Int64"),
    "boolean": pd.Series(PLACES > 0, dtype="boolean"),
    "string": TEXT.astype("string"),
    "constant": pd.Series(np.full(ROWS, 7)),
    "one value": pd.Series(np.where(np.arange(ROWS) == 5, 1.0, np.nan)),
    "interval": pd.cut(pd.Series(FLOATS), 3),
}
"""A column of each type."""

KINDS |= {
    f"{name} with holes": KINDS[name].mask(HOLES)
    for name in (
        *("float", "int", "bool", "category", "text", "object", "datetime", "timedelta", "Int64", "boolean", "string"),
    )
}
KINDS["object with None"] = TEXT.astype(object).where(~HOLES, None)


def frame_of(kind: str) -> pd.DataFrame:
    """Return two columns of numbers and one of `kind`."""
    if kind == "number as name":
        return pd.DataFrame(np.stack((FLOATS, FLOATS[::-1], PLACES), axis=1), columns=[0, 1, 2])
    if kind == "duplicated name":
        return pd.DataFrame(np.stack((FLOATS, FLOATS[::-1], PLACES), axis=1), columns=["a", "b", "b"])
    return pd.DataFrame({"a": FLOATS, "b": 300 + 50 * FLOATS[::-1], "c": KINDS[kind]})


ALL_KINDS = (*KINDS, "number as name", "duplicated name")


def seconds(frame: Any) -> Any:
    """Return dates as numbers that no float represents."""
    return frame.astype("int64").where(frame.notna(), 0) / 1e9 % 1e6


def _pipeline(frame: pd.DataFrame) -> Any:
    last = frame.columns[-1]
    column = frame.iloc[:, -1]
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        steps: list[Any] = [(FunctionTransformer(seconds), [last])]
    elif pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        steps = [(SimpleImputer(), [last])]
    else:
        steps = [(OneHotEncoder(handle_unknown="ignore"), [last])]
    return make_pipeline(make_column_transformer(*steps, remainder="passthrough"), LogisticRegression(max_iter=1000))


def _lightgbm(frame: pd.DataFrame) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=3, min_child_samples=3, verbose=-1, n_jobs=1)


def _xgboost(frame: pd.DataFrame) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=3, enable_categorical=True, n_jobs=1)


def _catboost(frame: pd.DataFrame) -> Any:
    from catboost import CatBoostClassifier

    dtype = frame.iloc[:, -1].dtype
    number = pd.api.types.is_numeric_dtype(dtype)
    coded = [] if number else [frame.columns[-1]]
    options = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}
    return CatBoostClassifier(iterations=3, cat_features=coded, **options)


READERS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "HistGradientBoosting": lambda frame: HistGradientBoostingClassifier(
        categorical_features="from_dtype", max_iter=3, min_samples_leaf=3
    ),
    "pipeline": _pipeline,
    "LightGBM": _lightgbm,
    "XGBoost": _xgboost,
    "CatBoost": _catboost,
}
"""Estimators to fit on a frame."""

WAYS: dict[str, tuple[str, Callable[[Any], Any] | None]] = {
    "frame": ("", None),
    "CSV": (".csv", pd.read_csv),
    "Parquet": (".parquet", pd.read_parquet),
}
"""Sources of a frame: the ending of a file, and the function of pandas that reads it."""

CELLS = tuple(product(ALL_KINDS, READERS, WAYS))


def outcome(kind: str, reader: str, source: str, folder: Path) -> str:
    """Score a frame and return `not fitted`, `scored`, the number of rows `refused`, or the sentence of an error.

    Raises:
        AssertionError: a prediction or a probability differs from the estimator's own, a row that the estimator
            takes was refused, or another error than a `BrittleError` was raised.
    """
    frame = frame_of(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = READERS[reader](frame).fit(frame, (FLOATS + PLACES > 1).astype(int))
        except Exception:  # noqa: BLE001 - of five libraries
            return "not fitted"
        ending, read = WAYS[source]
        data: Any = frame
        if read is not None:
            data = folder / f"data{ending}"
            try:
                frame.to_csv(data, index=False) if source == "CSV" else frame.to_parquet(data)
            except (TypeError, ValueError, pa.ArrowException):
                return "not written"
            frame = read(data)
        try:
            noisy: dict[str, Any] = {"noise": "per-feature", "sigma": 0.1, "draws": 8, "limit": None}
            options = {"most_failures": None, "skip_doctor": True}  # its checks have laws of their own
            table = brittle.score(model, data, ["monte_carlo", "softmax"], **options, **noisy).frame()
        except BrittleError as error:
            sentence = error
        else:
            return _compared(model, frame, table)
    accepted = sentence.code == "model_failed" and _probabilities(model, frame) is not None
    assert not accepted, sentence
    return str(sentence)


def _probabilities(model: Any, frame: Any) -> np.ndarray | None:
    """Return the probabilities of the estimator; None where it refuses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            probabilities = np.asarray(model.predict_proba(frame))
        except Exception:  # noqa: BLE001 - of five libraries
            return None
    return probabilities if np.isfinite(probabilities).all() else None


def _compared(model: Any, frame: pd.DataFrame, table: pd.DataFrame) -> str:
    scored = table["softmax.status"].eq("ok").to_numpy()
    assert scored.any()
    probabilities = _probabilities(model, frame[scored])
    assert probabilities is not None, "rows were scored that the estimator refuses"
    classes = probabilities.argmax(axis=1).astype(str)
    assert table["predicted"][scored].tolist() == classes.tolist()
    np.testing.assert_allclose(table["softmax.p_robust"][scored].astype(float), probabilities.max(axis=1), rtol=1e-5)
    for row in np.flatnonzero(~scored):
        assert table["status"][row] == "nonfinite_input"
        assert _probabilities(model, frame.iloc[[row]]) is None, f"row {row} was refused that the estimator takes"
    return f"{int((~scored).sum())} rows refused" if not scored.all() else "scored"
