"""Tables: which column holds what, and the points of their rows, features or images."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from brittle.data.arrays import bytes_of, feature_record, read_arrays
from brittle.data.arrow import LABEL_NAMES, ArrowFile, EncodedColumn, Sheet, is_csv, is_image, is_number, open_table
from brittle.data.folder import encoded_points
from brittle.data.labels import answers_of, classes_of
from brittle.data.points import ListedPoints, RowIds
from brittle.data.reading import IMAGE_OPTIONS, Reading
from brittle.errors import DataError, ParameterError, first_line, listed
from brittle.model.arrays import Levels
from brittle.model.inputs import ExtraInputs
from brittle.store.schemas import describe_index

if TYPE_CHECKING:
    import pandas as pd

INDEX_NAME = re.compile(r"(unnamed: \d+|__index_level_\d+__)?", re.IGNORECASE)  # of the index of pandas

BOOLEAN_TEXTS = {word: float(word.lower() == "true") for word in ("True", "TRUE", "true", "False", "FALSE", "false")}
BOOLEANS = frozenset(BOOLEAN_TEXTS)  # texts that pandas reads as booleans in a column of a text file, and their numbers
MISSING = frozenset(  # texts that pandas reads as missing in a text file
    (
        *("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"),
        *("", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    )
)

MOST_LEVELS = 10_000  # different texts that a column of categories may hold


class Roles(NamedTuple):
    """Roles of the columns of a table: labels or targets, ids, and features."""

    answers: tuple[str, ...]
    id: tuple[str, ...]
    features: tuple[str, ...]

    @property
    def columns(self) -> list[str]:
        """Columns of labels and ids."""
        return [*self.answers, *self.id]

    @property
    def record(self) -> dict[str, Any]:
        """Record of the roles for a run."""
        return {"label_column": ",".join(self.answers) or None, "columns": self.columns}


def read_table(path: Path, reading: Reading) -> ListedPoints:
    """Return the rows of a table: images where a column has them, else numbers; labels are whole numbers or text."""
    table = open_table(path, reading)
    images = [field.name for field in table.schema if is_image(field.type)]
    return _images(table, images, reading) if images else _features(table, reading)


def read_frame(frame: Any, y: Any, reading: Reading) -> ListedPoints:
    """Return the rows of a frame of pandas by the rules of table files; all columns are features where `y` is given.
    Ids are by default its index as text. The record describes the index, so that `Table.frame` has it again."""
    if y is not None and reading.label_column is not None:
        raise ParameterError(f"y and label_column={reading.label_column!r:.60} both say what is right; give one")
    frame = frame.set_axis([*map(str, frame.columns)], axis=1)
    if len(doubled := frame.columns[frame.columns.duplicated()]):
        raise DataError("columns", f"the frame has two columns called {doubled[0]!r:.60}; give each a name of its own")
    try:
        cells = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError) as error:
        raise DataError(
            "columns", f"the frame has a column of mixed values, {first_line(error)}; write all as text, or as numbers"
        ) from error
    file = ArrowFile(Path("frame"), cells.schema, (len(cells),), cells.select)
    points = _features(Sheet((file,), "the frame", reading.record(None, "", format="memory")), reading, y, frame)
    labels = tuple(map(str, frame.index))
    stripped = tuple(label.strip() for label in labels)
    if isinstance(points.ids, RowIds) and len(set(stripped)) == len(stripped):
        points = replace(points, ids=stripped)
    index = describe_index(frame.index, pa.table({"point": points.ids[:], "row": range(len(frame)), "name": labels}))
    if index["column"] == "name":
        points = replace(points, names=labels)
    facts = {name: points.source.get(name) for name in ("feature_names", "categories")}
    facts |= {"dtypes": points.source["dtypes"]} if "dtypes" in points.source else {}
    digest = hashlib.sha256(repr((facts, tuple(points.ids), points.names, points.labels)).encode())
    for part in (points.read(0, len(points)).inputs, points.targets):
        digest.update(b"" if part is None else bytes_of(part))
    return replace(points, source=points.source | {"sha256": digest.hexdigest(), "index": index})


def _features(table: Sheet, reading: Reading, y: Any = None, frame: Any = None) -> ListedPoints:
    """Return the rows of a table of numbers and booleans, with `reading.levels` also columns of categories."""
    if wrong := sorted(reading.given & IMAGE_OPTIONS):
        raise ParameterError(f"{wrong[0]} is for encoded images, and {table.source} has no column of them")
    roles = find_roles(table, reading) if y is None else Roles((), (), tuple(table.schema.names))
    odd = next((name for name in roles.features if INDEX_NAME.fullmatch(name)), None)
    if odd is not None or not roles.features:
        fault = "no column of features" if odd is None else f"a column called {odd!r}, as the index of pandas"
        raise DataError("columns", f"{table.source} has {fault}; write it with names of features and index=False")
    cells = table.read(table.schema.names)
    record = table.record | roles.record
    coded: dict[str, tuple[np.ndarray, Levels]] = {}
    for name, series in _series(cells, roles.features, table, frame) if reading.levels else ():
        if series is not None and not _is_number(series, cells[name]):
            coded[name] = _levels(series, f"column {name!r:.60} of {table.source}")
        elif series is not None and str(series.dtype) not in ("float64", "float32", "object"):
            record.setdefault("dtypes", {})[name] = str(series.dtype)
    columns = [coded[name][0] if name in coded else _numbers(cells, name, table.source) for name in roles.features]
    inputs, extra = torch.from_numpy(np.stack(columns, axis=1)), None
    record |= feature_record(np.array(roles.features), table.source, inputs)
    if coded:
        record["categories"] = {name: levels._asdict() for name, (_, levels) in coded.items()}
        varies = torch.tensor([name not in coded for name in roles.features])
        if not bool(varies.any()):
            raise DataError("columns", f"all columns of {table.source} are categories, which noise never changes")
        extra = ExtraInputs(varies=varies.expand(inputs.shape), inputs=inputs)
    read = partial(read_arrays, inputs, reading.bounds, extra)
    answers = answers_in(cells, roles, table, reading)
    answers |= answers_of(y, "y", table.rows, reading.targets)
    return reading.points(record, ids_in(cells, roles, table), read, **answers)


def _series(cells: pa.Table, names: Sequence[str], table: Sheet, frame: Any) -> Iterator[tuple[str, pd.Series | None]]:
    """Yield each column as pandas has it; None for one of text and numbers in a text file."""
    if is_csv(table.files[0].path):
        yield from ((name, _text_series(cells[name].to_pylist())) for name in names)
        return
    frame = cells.to_pandas().set_axis(cells.column_names, axis=1) if frame is None else frame
    yield from ((name, frame[name]) for name in names)


def _text_series(cells: Sequence[str]) -> pd.Series | None:
    """Return the cells of a text file as pandas types them."""
    import pandas as pd

    texts = [None if cell in MISSING else cell for cell in cells]
    present = [cell for cell in texts if cell is not None]
    numbers = sum(map(is_number, present))
    if numbers == len(present):
        is_integral = len(present) == len(texts) and all(cell.strip().lstrip("+-").isdecimal() for cell in present)
        return pd.Series([0 if is_integral else 0.0], dtype="int64" if is_integral else "float64")
    if numbers:
        return None
    if BOOLEANS.issuperset(present):
        return pd.Series([np.nan if cell is None else bool(BOOLEAN_TEXTS[cell]) for cell in texts])
    return pd.Series([np.nan if cell is None else cell for cell in texts])


def _is_number(series: pd.Series, column: pa.ChunkedArray) -> bool:
    """Tell whether a column holds numbers; booleans are none."""
    import pandas as pd

    if series.dtype == object:
        return not is_text(column.type) and not pa.types.is_boolean(column.type) and _cast(column) is not None
    return pd.api.types.is_numeric_dtype(series) and not pd.api.types.is_bool_dtype(series)


def _levels(series: pd.Series, source: str) -> tuple[np.ndarray, Levels]:
    """Return codes of a column that stays as it is, `[N]`, float64, NaN where missing, and what they stand for."""
    import pandas as pd

    if category := isinstance(series.dtype, pd.CategoricalDtype):
        places, values = series.cat.codes.to_numpy(), series.cat.categories
    elif series.dtype == bool:
        places, values = series.to_numpy().astype(int), pd.Index([False, True])
    else:
        places, values = pd.factorize(series, sort=True)
        values = pd.Index(values, dtype=series.dtype)
    if len(values) > MOST_LEVELS and not category:
        raise DataError(
            "columns",
            f"{source} holds {len(values):,} different values of type {series.dtype}, more than {MOST_LEVELS:,}; leave "
            "it out, or score fewer rows at a time",
        )
    levels = [value if isinstance(value, str | int | float) else str(value) for value in values.tolist()]
    missing = {str(cell) for cell in series[series.isna()]} if series.dtype == object else set[str]()
    codes = np.where(places < 0, np.nan, places)
    ordered = category and bool(series.cat.ordered)
    result = Levels(levels, category, ordered, str(values.dtype), next(iter(missing), "nan"))
    try:
        restored = len(missing) < 2 and result.column(codes).equals(series.reset_index(drop=True))
    except (TypeError, ValueError, LookupError):
        restored = False
    if not restored:
        example = f"{series.dropna().iloc[0]!r:.40}"
        raise DataError(
            "columns",
            f"{source} is of type {series.dtype} with values, such as {example}, that cannot be restored; write "
            "them as text or numbers",
        )
    return codes, result


def _images(table: Sheet, images: list[str], reading: Reading) -> ListedPoints:
    """Return the rows of a table of images: a column of type struct with `bytes`, and perhaps `path`."""
    image = next((name for name in ("image", "img") if name in images), images[0] if len(images) == 1 else None)
    if image is None:
        raise DataError("columns", f"{table.source} has {len(images)} columns of images; call one of them image or img")
    roles = find_roles(table, reading)
    cells = table.read(roles.columns) if roles.columns else pa.table({})
    paths = [None] * table.rows
    if any(field.name == "path" for field in table.schema.field(image).type):
        paths = table.read([f"{image}.path"]).column(0).to_pylist()
    encoded, example = EncodedColumn(table, image), next((name for name in paths if name), None)
    if example is not None and not any(encoded(row).read(1) for row in range(min(8, table.rows))):
        raise DataError(
            "corrupt",
            f"{table.source} holds paths of images, such as {example!r:.80}, and not their bytes; give their folder",
        )
    return encoded_points(
        encoded,
        [name or f"row {row}" for row, name in enumerate(paths)],
        ids_in(cells, roles, table),
        reading,
        table.record | roles.record | {"columns": [image, *roles.columns]},
        has_names=example is not None,
        **answers_in(cells, roles, table, reading),
    )


def find_roles(table: Sheet, reading: Reading) -> Roles:
    """Return the role of each column."""
    names, source, label_column = table.schema.names, table.source, reading.label_column
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise DataError("columns", f"{source} has two columns called {twice!r:.60}; give each a name of its own")
    if label_column is not None:
        several = label_column.split(",") if reading.targets and label_column not in names else [label_column]
        answers = [find_column(table, name) for name in several]
    else:
        answers = [name for name in names if name.lower() in LABEL_NAMES] or list(table.class_names)
        if len(answers) > 1:
            found = " and ".join(map(repr, answers))
            raise ParameterError(
                f"{source} has the columns {found}; name that of the labels (--label-column, label_column=)"
            )
    ids = [name for name in names if name.lower() == "id" and name not in answers][:1]
    features = [name for name in names if name not in (*answers, *ids)]
    return Roles(tuple(dict.fromkeys(answers)), tuple(ids), tuple(features))


def find_column(table: Sheet, name: str, option: str = "--label-column (label_column=)") -> str:
    """Return the column that is called so; `option` asked for it."""
    names = table.schema.names
    if name in names:
        return name
    raise ParameterError(
        f"{table.source} has no column {name!r:.60}; it has {listed(names)}: name one with {option}; several, "
        "with commas between them, are for --decision multilabel or within:T (decision=)"
    )


def ids_in(cells: pa.Table, roles: Roles, table: Sheet) -> Sequence[str]:
    """Return the ids of the rows: those of their column, or their numbers."""
    if not roles.id:
        return RowIds(table.rows)
    ids = cells[roles.id[0]].to_pylist()
    if None in ids:
        raise DataError(
            "ids", f"{roles.id[0]} in {table.source} is empty in row {ids.index(None)}; give all an id or none"
        )
    return tuple(str(id_).strip() for id_ in ids)


def answers_in(cells: pa.Table, roles: Roles, table: Sheet, reading: Reading) -> dict[str, Any]:
    """Return the labels of each row, as keywords of `Reading.points`."""
    if not roles.answers:
        return {}
    if reading.targets:
        numbers = np.stack([_numbers(cells, name, table.source, complete=True) for name in roles.answers], axis=1)
        names = roles.answers if len(roles.answers) > 1 else None
        return {"targets": torch.from_numpy(numbers), "class_names": names}
    (label,) = roles.answers
    labels, names = classes_of(cells[label].to_pylist(), f"the label column {label!r:.60} in {table.source}")
    return {"labels": labels, "class_names": names or table.class_names.get(label)}


def _numbers(cells: pa.Table, name: str, source: str, complete: bool = False) -> np.ndarray:
    """Return a column as numbers, `[N]`, float64; NaN where one is missing, unless all are to be there."""
    column: Any = cells[name]
    if is_text(column.type):  # without the space around it, null where it stands for no value
        column = pc.call_function("utf8_trim_whitespace", [column])
        missing = pc.call_function("is_in", [column], pc.SetLookupOptions(pa.array(sorted(MISSING), column.type)))
        column = pc.call_function("if_else", [missing, pa.scalar(None, column.type), column])
    numbers = _cast(column)
    if is_text(column.type) and BOOLEANS.issuperset(texts := {*column.drop_null().unique().to_pylist()}) and texts:
        numbers = np.array([BOOLEAN_TEXTS.get(cell, np.nan) for cell in column.to_pylist()])
    if numbers is not None and not (complete and np.isnan(numbers).any()):
        return numbers
    odd = (row for row in range(len(column)) if (number := _cast(column[row : row + 1])) is None or np.isnan(number[0]))
    row = next(row for row in odd if complete or column[row].is_valid)
    cell, place = column[row].as_py(), f"row {row}, column {name!r:.60} of {source}"
    if cell is None or cell != cell:
        raise DataError("columns", f"{place} holds no value; fill it, or leave the row or the column out")
    raise DataError(
        "columns",
        f"{place} holds {cell!r:.60}, which is no number; if the column holds the labels, name it with --label-column "
        "(label_column=); else write text as numbers first, or leave the column out",
    )


def _cast(column: pa.ChunkedArray) -> np.ndarray | None:
    """Cells as numbers, `[N]`, NaN where there is none; None where one is something else."""
    try:
        return column.cast(pa.float64(), safe=False).to_numpy()
    except pa.ArrowException:
        return None


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type is that of text."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)
