"""The scores of a run, one column at a time."""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from brittle.errors import DataError, ParameterError, StorageError, listed
from brittle.estimate import FLIP_PROBABILITY, Evidence, Parameter, Status, parameters_json, score_label, short_labels
from brittle.store.record import ScoreRecord
from brittle.store.settings import Setting, setting_of

if TYPE_CHECKING:
    import pandas as pd

WITHOUT_VALUE = frozenset(status.slug for status in Status if not status.has_value)  # statuses without a number
BULKY = ("image", "input")  # columns of points that no frame for people holds
HOLDS, BREAKS, UNDECIDED = "holds", "breaks", "undecided"  # states of a prediction by its interval

_NUMBERS = ["value", "low", "high"]
_COMMON = ("sigma", "noise", "action", "unit", "code", "draws")


def _of_rows(name: str, doc: str) -> Any:
    return property(lambda column: column.rows[name], doc=doc)


@dataclass(frozen=True, eq=False, kw_only=True)
class Column(ScoreRecord):
    """A score with its parameters, for every point of a run.

    Attributes:
        rows: the score's rows of the table, indexed by point in the order of the data; `value`, `low` and `high` are
            NaN wherever the status carries no number.
        variant: the score's name, with those parameters other than noise and draws that tell it from its siblings.
        shown: the label without what tells people nothing (`brittle.estimate.short_labels`); a key, too.
    """

    rows: pd.DataFrame
    variant: str
    shown: str

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return f"Column({self.label}, {len(self)} points)"

    def __len__(self) -> int:
        return len(self.rows)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return the values, `[N]`, as `numpy.asarray(column)` gives them."""
        values = self.value.to_numpy(dtype=np.float64 if dtype is None else dtype)
        return values.copy() if copy else values

    @property
    def is_probability(self) -> bool:
        """True where the value is a flip probability."""
        return self.quantity == FLIP_PROBABILITY

    @property
    def setting(self) -> Setting:
        """The noise that the column refers to."""
        return setting_of(self.parameters)

    @property
    def draws(self) -> int | None:
        """Noise draws per point, where the score samples and all points have as many."""
        return None if self.stops else self.most_draws

    @property
    def most_draws(self) -> int | None:
        """Noise draws that a point can have, where the score samples; where points stop, some have fewer."""
        draws = self.parameters.get("draws")
        return draws if isinstance(draws, int) else None

    @property
    def stops(self) -> bool:
        """True where points have as many draws as they needed, and not all the same number."""
        return self.limit is not None or "precision" in self.parameters

    value = _of_rows("value", "The score of each point; NaN where there is none.")
    low = _of_rows("low", "Lower end of the interval of each point; NaN where there is none.")
    high = _of_rows("high", "Upper end of the interval of each point; NaN where there is none.")
    status = _of_rows("status", "Status of each point, such as `ok`.")
    passes = _of_rows("passes", "Passes through the network for each point; shared ones count in full.")

    @property
    def votes(self) -> list[bytes | None]:
        """The classes that the noisy copies of each point became, as cells (`brittle.store.schemas`)."""
        return [cell if isinstance(cell, bytes) else None for cell in self.rows["votes"]]

    @property
    def interval_evidence(self) -> pd.Series:
        """Evidence of the interval of each point: its own, or `counted` where it holds that of counting."""
        return interval_evidence(self.rows)

    @property
    def p_robust(self) -> pd.Series:
        """Probability that the prediction keeps, `1 - value`."""
        if not self.is_probability:
            raise DataError("no_such_score", f"p_robust needs a flip probability; {self.label} is a {self.quantity}")
        return 1.0 - self.value

    @property
    def limit(self) -> float | None:
        """The number that `p_robust` was compared with while its points were drawn; None where they were not."""
        limit = self.parameters.get("limit")
        return float(limit) if isinstance(limit, int | float) else None

    @property
    def is_decisive(self) -> bool:
        """True where points hold or break by it: a flip probability with intervals, unlike `softmax` and `taylor`."""
        if not self.is_probability or bool((self.value.notna() & self.high.isna()).any()):
            return False
        return self.noise is not None or bool((self.high > self.low).any())

    def states(self, limit: float) -> pd.Series:
        """Return for each point whether its whole interval `holds` at `limit` or `breaks`, else `undecided`."""
        import pandas as pd

        self.p_robust  # noqa: B018 - raises where the value is no flip probability
        choices = {HOLDS: self.high <= 1.0 - limit, BREAKS: self.low >= 1.0 - limit, UNDECIDED: self.value.notna()}
        states = np.select([*choices.values()], [*choices], "").astype(object)
        if not self.is_decisive:
            return pd.Series([None] * len(self), index=self.value.index, dtype=object)
        return self.value.astype(object).where(self.value.isna(), states).replace({np.nan: None})

    @property
    def cost(self) -> float:
        """Mean passes through the network per point with a value; NaN where no point has one."""
        return float(self.rows.loc[self.value.notna(), "passes"].mean())


Row = dict[Any, Any]  # of a frame, by the names of its columns


def columns_of(points: pa.Table, scores: pa.Table, records: Sequence[ScoreRecord]) -> tuple[Column, ...]:
    """Return the columns of the tables of a run, in the order of its record."""
    import pandas as pd

    record_by_key = {(record.score, parameters_json(record.parameters)): _storable(record) for record in records}
    ids = points["point"].to_pylist()
    _check_once(pd.Index(ids), "the points")
    short = short_labels(record.label for record in record_by_key.values())
    return tuple(
        Column(
            **vars(record),
            rows=_rows_of(scores, *key).reindex(ids),
            variant=storable(variant),
            shown=short[record.label],
        )
        for (key, record), variant in zip(record_by_key.items(), _variants(record_by_key.values()), strict=True)
    )


def _rows_of(scores: pa.Table, score: str, parameters: str) -> pd.DataFrame:
    """Return the rows of one score by point; of a long run only these are a frame, beside the table."""
    matches = scores.filter((pc.field("score") == score) & (pc.field("parameters") == parameters))
    rows = matches.drop_columns(["score", "parameters"]).to_pandas().set_index("point")
    _check_once(rows.index, f"the rows of {score}")
    without_value = rows["status"].isin(WITHOUT_VALUE).to_numpy()
    for name in _NUMBERS:  # array by array: an assignment to part of a frame takes longer than all else
        rows[name] = np.where(without_value, math.nan, rows[name].to_numpy("float64", na_value=math.nan))
    return rows


def _check_once(ids: pd.Index, place: str) -> None:
    if not ids.is_unique:
        twice = ids[ids.duplicated()][0]
        raise StorageError("run_damaged", f"point {twice!a:.60} stands twice among {place}; score again")


def storable(text: object) -> str:
    """`text` without the halves of characters that JSON can hold and a frame cannot."""
    return str(text).encode("utf-8", "replace").decode("utf-8")


def interval_evidence(rows: pd.DataFrame) -> pd.Series:
    """Return the evidence of the interval of each row: its own, or `counted` where it holds that of counting."""
    held = (rows["low"] <= rows["counted_low"]) & (rows["high"] >= rows["counted_high"])
    return cast("pd.Series", rows["evidence"]).mask(held, Evidence.COUNTED.slug)


def _storable(record: ScoreRecord) -> ScoreRecord:
    texts = {name: storable(getattr(record, name)) for name in ("score", "label", "title", "reference", "explanation")}
    return replace(record, **texts)  # type: ignore[arg-type]


def _variants(records: Collection[ScoreRecord]) -> list[str]:
    """Names that tell siblings apart by their parameters other than noise and draws, where they differ."""
    pairs = [(row.score, {k: v for k, v in row.parameters.items() if k not in _COMMON}) for row in records]
    distinct = {(score, parameters_json(parameters)) for score, parameters in pairs}
    times = Counter(score for score, _ in distinct)
    return [score_label(score, parameters) if times[score] > 1 else score for score, parameters in pairs]


def distinct_names(columns: Sequence[Column]) -> list[str]:
    """Return for each column the name of its score, with the parameters in which it differs from others of it."""
    names = []
    for column in columns:
        peers = [peer.parameters for peer in columns if peer.score == column.score]
        pairs = [pair for pair in column.parameters.items() if not all(pair in peer.items() for peer in peers)]
        differing = ", ".join(f"{name}={value}" for name, value in pairs)
        names.append(f"{column.score}[{differing}]" if differing else column.score)
    return names


class Labelled(Protocol):
    """Interface of keys with a label, such as a `brittle.scores.Score` and a `Column`."""

    @property
    def label(self) -> str: ...


Key = Labelled | str | tuple[str, Parameter]  # name and sigma, or else a parameter


def column_of(columns: Sequence[Column], key: Key) -> Column:
    """Return the one column that `key` asks for, as `Table` takes it."""
    text, score, fits = _parse_key(key)
    fitting = [column for column in columns if fits(column)]
    fitting = fitting or [column for column, name in zip(columns, distinct_names(columns), strict=True) if name == key]
    if len(fitting) > 1:
        labels = listed([column.label for column in fitting])
        raise DataError("no_such_score", f"{text} is one of {len(fitting)} columns: {labels}; say which by its label")
    if fitting:
        return fitting[0]
    labels = [column.label for column in columns]
    same = [column.label for column in columns if column.score == score]
    near = dict.fromkeys([*same, *difflib.get_close_matches(text, labels, 5, cutoff=0.3), *labels])
    nearest = listed([*near]) or "none"
    raise DataError("no_such_score", f"expected a score of this run, found {text}; the nearest: {nearest}")


def _parse_key(key: object) -> tuple[str, str, Callable[[Column], bool]]:
    """Return a key in words, the name of its score, and a predicate for its columns."""
    match key:
        case str():
            return key, key.partition("(")[0], lambda column: key in (column.label, column.shown, column.score)
        case (str() as score, int() | float() | str() as value) if not isinstance(value, bool):
            return f"{score}, {value}", score, lambda column: column.score == score and value in _beside_name(column)
    label = getattr(key, "label", None)
    if isinstance(label, str):
        return label, label.partition("(")[0], lambda column: column.label == storable(label)
    expected = "expected a score such as Moments(sigma=0.1), a label, a name, or a name and its sigma"
    raise ParameterError(f"{expected}; found {key!r:.80}")


def _beside_name(column: Column) -> list[Parameter]:
    """Return the values by which a column may be asked for: its sigma, else any parameter."""
    facts = column.parameters
    return [facts["sigma"]] if "sigma" in facts else [value for value in facts.values() if not isinstance(value, bool)]
