"""The table of a run: its points, its scores, and the record of how they came about."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from brittle.estimate import LIMIT
from brittle.intervals import check_share
from brittle.registry import is_installed, load
from brittle.store.columns import BULKY, Column, Key, column_of, columns_of, distinct_names, storable
from brittle.store.export import CARD, cells_of, export, filled_columns
from brittle.store.folder import RunFolder, Shard
from brittle.store.record import Account, RunRecord
from brittle.store.representative import most_draws_by, representative_column
from brittle.store.schemas import COUNTEREXAMPLES, make_index, unpack_votes
from brittle.store.writing import check_target, write

if TYPE_CHECKING:
    import pandas as pd

TOLD = ("point", "name", "label", "predicted", "target", "decided", "correct")  # about a point itself


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
        """Return a few lines: what was scored, how many predictions hold and how near others are, the first columns."""
        if is_installed("report"):
            return load("view", "text")(self)
        return f"Table({len(self.points):,} points, {len(self.columns)} columns)"

    def __getitem__(self, key: Key) -> Column:
        """Return the column of one score.

        Args:
            key: a score, such as `Moments(sigma=0.1)`; a label, such as `moments(draws=100, sigma=0.1)`; a name that
                one column alone has; or a name and the value of a parameter, such as `("moments", 0.1)`.

        Raises:
            DataError: no column fits, or several do; the nearest labels are named.
        """
        return column_of(self.columns, key)

    __iter__ = None  # so that `in` and `for` do not ask for columns by number

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The scores, one column each, in the order of the record."""
        return columns_of(self.points, self.scores, self.record.scores)

    def long(self) -> pd.DataFrame:
        """Return the scores as a pandas frame, one row per point, score and parameters."""
        return self.scores.to_pandas()

    def frame(self, limit: float | None = None, *, whole: bool = False) -> pd.DataFrame:
        """Return one row per point, in the order of the data, with the columns that people read.

        `point` (its id), `name`, `label` and `predicted` (classes by name), `correct`; then of each score under the
        shortest name `S` that tells it from the others, such as `shrinkage[sigma=0.1]`: of a flip probability
        `S.p_robust`, its interval `S.low`, `S.high`, where it judges `S.state` (`holds`, `breaks`, `undecided`), and
        `S.turns_into`, the class of most noisy copies with another prediction; of another score `S`, and its interval
        unless it is exact; and `S.status`. Where a score is alone, or is the only one that judges, its columns are
        `p_robust`, `low` and so on; where several judge, the representative one has these, too, and `by` is its `S`. A
        score is shown at its largest number of draws. Empty columns are left out.

        The index is that of the frame of pandas that was scored, so that `data.join(table.frame())` puts both side by
        side, and `point` has its type. Otherwise it is text.

        Args:
            limit: a prediction holds where it is kept with this probability or more; by default the one that the
                points were drawn for, else `brittle.estimate.LIMIT`.
            whole: every column, those of the points as they are stored (without thumbnail and input), and of each
                score `S`, now its label: `S.p_robust` and `S.flip_probability`, or `S`; `S.low` and `S.high` (of the
                flip probability); `S.status`, `S.passes`, and of a flip probability `S.evidence`, `S.counted_low`,
                `S.counted_high`, and `S.state` where points were drawn until they were decided.
        """
        return self.label_points(self._text_frame(limit, whole=whole), typed=not whole)

    def _text_frame(self, limit: float | None, *, whole: bool) -> pd.DataFrame:
        """Return `frame` with the ids of the points as text."""
        frame = self.all_columns(limit, whole=whole, label=None if whole else self.representative(limit))
        return frame if whole else frame.filter(filled_columns([frame]))

    def label_points(self, frame: pd.DataFrame, *, typed: bool = True) -> pd.DataFrame:
        """Return `frame`, some points in its column `point`, with the index of the frame that was scored, or their rows
        in other data; where `typed`, ids that are the text of its labels become these."""
        import pandas as pd

        description = self.record.data.reading.get("index")
        index = None if description is None else make_index(self.points, description)
        typed = typed and index is not None
        index = pd.Index(self.points["row"].to_pylist(), dtype="int64") if index is None else index
        index = index.take(pd.Index(self.points["point"].to_pylist()).get_indexer(pd.Index(frame["point"].tolist())))
        frame, texts = frame.set_axis(index), [str(label).strip() for label in index]
        return frame.assign(point=index) if typed and frame["point"].tolist() == texts else frame

    def representative(self, limit: float | None) -> str | None:
        """Return the label of the score that `frame` tells under bare names, too, where several judge."""
        column = None if "" in self._short_names() else representative_column(self.columns, limit)
        return column.label if column is not None and column.is_decisive else None

    def all_columns(self, limit: float | None, *, whole: bool, label: str | None = None) -> pd.DataFrame:
        """Return `frame` with all columns, the same for any points of a run, whose `representative` is `label`."""
        import pandas as pd

        frame = self.points.drop_columns(list(BULKY)).to_pandas().set_index("point", drop=False)
        check_share("limit", limit)
        if whole:
            parts = [frame.rename_axis(None), *map(_full_columns, self.columns)]
            return pd.concat(parts, axis=1).reset_index(drop=True)
        parts, ends = [self.name_classes(frame)[[*TOLD]].rename_axis(None)], list[tuple[str, str]]()
        columns = self._short_names()
        if label is not None:
            names = {column.label: name for name, column in columns.items()}
            parts[0]["by"] = names.get(label, label)
            columns = {"": self[label], **columns}
        names = self._class_names
        codes = self.points["predicted"].to_pandas().fillna(-1).to_numpy("int64")
        for name, column in columns.items():
            parts.append(_short(column, name, limit))
            dot = f"{name}." if name else ""
            if column.is_probability:
                turns = unpack_votes(votes).most_other(codes).tolist() if any(votes := column.votes) else []
                class_names = [_class(names, code) if code >= 0 else None for code in turns] or [None] * len(frame)
                parts[-1][f"{dot}turns_into"] = pd.Series(class_names, parts[-1].index, object)
            else:
                ends.append((f"{dot}low", f"{dot}high"))
        frame = pd.concat(parts, axis=1).reset_index(drop=True)
        frame.attrs["ends"] = ends
        return frame

    def name_classes(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return `frame` with names in its columns `label` and `predicted`."""
        name = partial(_class, self._class_names)
        return frame.assign(**{key: frame[key].map(name, na_action="ignore") for key in ("label", "predicted")})

    @property
    def _class_names(self) -> dict[int, str]:
        return dict(enumerate(map(storable, self.record.data.names)))

    def to_arrow(self, limit: float | None = None, *, whole: bool = False) -> pa.Table:
        """Return the cells of `frame` as a table of pyarrow, which polars, DuckDB and Hugging Face `datasets` read.

        Args:
            limit, whole: as of `frame`; `point` is text, and a number that is missing is null.
        """
        return cells_of(self._text_frame(limit, whole=whole))

    def top(self, count: int = 20, by: Key | None = None) -> pd.DataFrame:
        """Return the `count` least robust points, as of `brittle show --top`; a notebook shows their images, too.

        Args:
            count: how many.
            by: the score that orders them, as for `table[...]`; by default the representative of the run.

        Returns:
            `point`, `row`, and under the names of `frame` the class and the label of each point, and `p_robust` or the
            name of the score, `low`, `high`, `state` and `status`; columns that hold nothing are left out.
        """
        return load("view", "points")(self, count, by)

    def export(self, path: str | os.PathLike[str], *, limit: float | None = None, whole: bool = False) -> Path:
        """Write `frame` to a file that ends in .csv, .parquet, .arrow, .json or .jsonl, and give its path.

        Text in a .csv file that a spreadsheet would run gets an apostrophe in front (`brittle.store.export.cell`). JSON
        has no infinite numbers: they are null there. A file that ends in .md is `brittle.analysis.model_card`.

        Args:
            path: the file; one that is there is replaced.
            limit, whole: as of `frame`.

        Raises:
            ParameterError: there is no such form, or the limit is not between 0 and 1.
            StorageError: the file cannot be written, or is a link, a pipe, a device or a folder.
        """
        file = Path(path)
        if file.suffix.lower() != CARD:
            frame = self.all_columns(limit, whole=whole, label=None if whole else self.representative(limit))
            return export(lambda: iter([frame]), file, whole=whole)
        check_target(file)
        write(file, load("analysis", "model_card")(self, limit).encode())
        return file

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        epsilon: float | str | None = None,
        against: Mapping[str, Table] | None = None,
        height: int = 640,
    ) -> Any:
        """Return the report: one page with its figures and images inside, which a notebook shows in a frame.

        The page names no address; its policy allows its own script and style, by their digests, and nothing else. The
        frame has no rights to the notebook around it. The same table gives the same bytes.

        Args:
            path: a file to write the page to; its folder must exist.
            epsilon: perturbation size of the worst-case chapter, in pixel units; by default by the margins.
            against: other runs over the same points, by the names that the page gives them.
            height: of the frame in a notebook, in pixels.

        Raises:
            StorageError: `path` cannot be written, or is a link, a pipe, a device or a folder.
            ParameterError: `epsilon` or `height` is not of its form, or another run is no table.
            DataError: the points of another run cannot be paired with these.
        """
        page = load("view", "page").of(self, height, epsilon, against)
        if path is not None:
            page.save(path)
        return page

    def _short_names(self) -> dict[str, Column]:
        """Return the scores of `frame` by the shortest distinct name; empty for the only one, or one that judges."""
        top = most_draws_by(self.columns, lambda column: (column.setting, column.variant))
        draws = {key: column.most_draws for key, column in top.items()}
        columns = [column for column in self.columns if column.most_draws == draws[column.setting, column.variant]]
        alone = columns if len(columns) == 1 else [column for column in columns if column.is_decisive]
        pairs = zip(distinct_names(columns), columns, strict=True)
        return {"" if [column] == alone else name: column for name, column in pairs}

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the run folder `folder`, which must not hold a run yet.

        Raises:
            StorageError: the folder holds a run, or cannot be written.
        """
        place = RunFolder(folder)
        place.check_free()
        with place.open():
            place.check_free()  # nobody wrote one until the folder was locked
            for number, start in enumerate(range(0, max(1, len(self.points)), self.record.shard_points)):
                points = self.points.slice(start, self.record.shard_points)
                scores, counterexamples = (
                    table.filter(pc.field("point").isin(points["point"].to_pylist()))
                    for table in (self.scores, self.counterexamples)
                )
                checks = 0 if start else self.record.account.check_passes  # which no row tells
                account = Account.of(points, scores, sum(points["passes"].to_pylist()), checks, start=start)
                tables = {"points": points, "scores": scores, "counterexamples": counterexamples}
                place.commit(Shard(number, tables, account))
            place.note(self.record)  # it is no run before all of it is there


def _class(names: Mapping[int, str], code: float) -> Any:
    """Return a class by name; where others alone have names, its number as text, so that a column has one type."""
    return names.get(int(code), str(int(code))) if names else code


def _short(column: Column, name: str, limit: float | None) -> pd.DataFrame:
    """Return a column as `Table.frame` shows it, under its name."""
    import pandas as pd

    dot, rows = f"{name}." if name else "", column.rows
    if column.is_probability:
        values = {f"{dot}p_robust": column.p_robust, f"{dot}low": 1 - rows["high"], f"{dot}high": 1 - rows["low"]}
        values[f"{dot}state"] = column.states(column.limit or LIMIT if limit is None else limit)
    else:
        values = {name or column.score: rows["value"]}
        values |= {f"{dot}low": rows["low"], f"{dot}high": rows["high"]}
    return pd.DataFrame(values | {f"{dot}status": rows["status"]}).rename_axis(None)


def _full_columns(column: Column) -> pd.DataFrame:
    """Return every field of a column, under names that begin with its label."""
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
