"""The table of a run: its points, its scores, and the record of how they came about."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from brittle.store.columns import BULKY, Column, Key, column_of, columns_of
from brittle.store.folder import RunFolder, Shard, check_free
from brittle.store.record import Account, RunRecord
from brittle.store.schemas import COUNTEREXAMPLES

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class Table:
    """The result of a run.

    Attributes:
        points: one row per point, with the schema `brittle.store.schemas.POINTS`.
        scores: one row per point, score and parameters, with the schema `brittle.store.schemas.SCORES`.
        record: everything needed to repeat the run, and what became of it; the content of `run.json`.
        counterexamples: the nearest inputs found with another prediction, with the schema
            `brittle.store.schemas.COUNTEREXAMPLES`.
    """

    points: pa.Table
    scores: pa.Table
    record: RunRecord
    counterexamples: pa.Table = field(default_factory=COUNTEREXAMPLES.empty_table)

    def __repr__(self) -> str:
        """At most three lines: what was scored, how many predictions hold, the first columns."""
        import brittle  # its door to what shows things, which knows tables; imported when it is used

        return brittle.report.table_text(self)

    def __getitem__(self, key: Key) -> Column:
        """The column of one score.

        Args:
            key: a score, such as `Moments(sigma=0.1)`; a label, such as `moments(draws=100, sigma=0.1)`; a name that
                one column alone has; or a name and the value of a parameter, such as `("moments", 0.1)`.

        Raises:
            DataError: no column fits, or several do; the nearest labels are named.
        """
        return column_of(self.columns, key)

    __iter__ = None  # so that `in` and `for` do not ask for columns by number

    @property
    def columns(self) -> tuple[Column, ...]:
        """The scores, one column each, in the order of the record."""
        return self._columns

    @cached_property
    def _columns(self) -> tuple[Column, ...]:
        return columns_of(self.points, self.scores, self.record.scores)

    def long(self) -> pd.DataFrame:
        """The scores as a pandas frame, one row per point, score and parameters."""
        return self.scores.to_pandas()

    def wide(self) -> pd.DataFrame:
        """One row per point, in the order of the data, sorted by nothing.

        The columns are those of the points (without thumbnail and input), then for each score `S` with its parameters:
        `S.p_robust` and `S.flip_probability` for probability scores, `S` itself for the others; `S.low` and `S.high`
        (the interval of the flip probability for probability scores); `S.status`; `S.passes`; and for probability
        scores `S.evidence`, `S.counted_low`, `S.counted_high`; where points were drawn until they were decided,
        `S.state` (`holds`, `breaks`, `undecided`).
        """
        import pandas as pd

        frame = self.points.drop_columns(list(BULKY)).to_pandas().set_index("point", drop=False)
        parts = [frame.rename_axis(None), *map(_wide, self.columns)]
        return pd.concat(parts, axis=1).reset_index(drop=True)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the run folder `folder`, which must not hold a run yet.

        Raises:
            StorageError: the folder holds a run, or cannot be written.
        """
        check_free(folder)
        with RunFolder.open(folder) as writer:
            check_free(folder)  # nobody wrote one until the folder was locked
            self.write(writer)

    def write(self, folder: RunFolder) -> None:
        """Write the run into an open folder; it is no run before all of it is there."""
        for shard in self._shards():
            folder.commit(shard)
        folder.note(self.record)

    def _shards(self) -> Iterator[Shard]:
        """The shards of a run of these points; the account of the first has what no row tells."""
        whole = self.record.account
        for number, start in enumerate(range(0, max(1, len(self.points)), self.record.shard_points)):
            points = self.points.slice(start, self.record.shard_points)
            scores, found = (
                table.filter(pc.field("point").isin(points["point"].to_pylist()))
                for table in (self.scores, self.counterexamples)
            )
            checks = 0 if start else whole.check_passes
            account = Account.of(points, scores, sum(points["passes"].to_pylist()), checks, first=start)
            yield Shard(number, {"points": points, "scores": scores, "counterexamples": found}, account)


def _wide(column: Column) -> pd.DataFrame:
    """A column as `Table.wide` shows it, under the names that begin with its label."""
    import pandas as pd

    label, names = column.label, ["low", "high", "status", "passes"]
    values = {label: column.rows["value"]}
    if column.is_probability:
        values = {f"{label}.p_robust": column.p_robust, f"{label}.flip_probability": column.rows["value"]}
        names += ["evidence", "counted_low", "counted_high"]
    values |= {f"{label}.{name}": column.rows[name] for name in names}
    if column.is_probability and column.limit is not None:
        values[f"{label}.state"] = column.states(column.limit)
    return pd.DataFrame(values).rename_axis(None)
