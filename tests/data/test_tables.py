"""Tables of features, in text files and in Parquet: the points of their arrays, and refused files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from helpers.data_files import inputs, only, refused
from sklearn.datasets import load_iris

from brittle.data import Points, choose_points, open_points

pytestmark = pytest.mark.usefixtures("nothing_drawn")  # sentences are tested here

IRIS: Any = load_iris(as_frame=True)
FEATURES, SPECIES = IRIS.data.iloc[::10], IRIS.target_names[IRIS.target.iloc[::10]]
X, Y = FEATURES.to_numpy(copy=True), tuple(IRIS.target.iloc[::10].tolist())
NAMES = list(FEATURES.columns)


def csv_points(path: Path, frame: pd.DataFrame, **options: Any) -> Points:
    frame.to_csv(path / "table.csv", index=False)
    return open_points(path / "table.csv", **options)


def semicolon_points(path: Path, frame: pd.DataFrame, **options: Any) -> Points:
    frame.to_csv(path / "table.csv", index=False, sep=";", lineterminator="\r\n", encoding="utf-8-sig")
    return open_points(path / "table.csv", **options)


def parquet_points(path: Path, frame: pd.DataFrame, **options: Any) -> Points:
    frame.to_parquet(path / "table.parquet", index=False)
    return open_points(path / "table.parquet", **options)


def shards_points(path: Path, frame: pd.DataFrame, **options: Any) -> Points:
    (path / "parts").mkdir()
    for shard, rows in enumerate((slice(0, 6), slice(6, None))):
        frame.iloc[rows].to_parquet(path / "parts" / f"test-{shard:05}-of-00002.parquet", index=False)
    return open_points(path / "parts", **options)


Reader = Callable[..., Points]
READERS = (csv_points, semicolon_points, parquet_points, shards_points)
each_reader = pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
csv_and_parquet = pytest.mark.parametrize("reader", [csv_points, parquet_points], ids=lambda reader: reader.__name__)


def text(path: Path, content: str, **options: Any) -> Points:
    (path / "table.csv").write_text(content, encoding="utf-8")
    return open_points(path / "table.csv", **options)


@each_reader
def test_a_table_is_its_arrays(reader: Reader, tmp_path: Path) -> None:
    points = reader(tmp_path, FEATURES.assign(Class=Y))
    assert torch.equal(inputs(points), torch.from_numpy(X))
    assert points.labels == Y
    assert points.class_names is None
    provenance = points.provenance
    assert (provenance["format"], provenance["label_column"], provenance["feature_names"]) == ("table", "Class", NAMES)
    assert provenance["points"] == len(points) == len(X)
    assert only(points).ids == tuple(map(str, range(len(X))))
    assert json.loads(json.dumps(provenance)) == provenance


@each_reader
def test_text_labels_are_classes_in_sorted_order(reader: Reader, tmp_path: Path) -> None:
    points = reader(tmp_path, FEATURES.assign(species=SPECIES[::-1]), label_column="species")
    assert points.class_names == ("setosa", "versicolor", "virginica")
    assert points.labels == Y[::-1]


@each_reader
def test_ids_are_the_column_id(reader: Reader, tmp_path: Path) -> None:
    ids = [f"flower {row}" for row in range(len(X))]
    points = reader(tmp_path, FEATURES.assign(Id=ids, target=Y))
    assert only(points).ids == tuple(ids)
    assert points.provenance["columns"] == ["target", "Id"]
    assert torch.equal(inputs(choose_points(points, ids[3:5])), torch.from_numpy(X[3:5]))
    (tmp_path / "again").mkdir()
    refused("ids", "rows 0 and 1", reader, tmp_path / "again", FEATURES.assign(id="same"))
    (tmp_path / "bare").mkdir()
    bare = reader(tmp_path / "bare", FEATURES)
    assert (bare.labels, bare.provenance["label_column"]) == (None, None)
    assert torch.equal(inputs(bare), torch.from_numpy(X))


@csv_and_parquet
def test_a_missing_label_column_is_refused(reader: Reader, tmp_path: Path) -> None:
    frame = FEATURES.assign(target=Y)
    refused("parameter", "no column '-1'; it has sepal", reader, tmp_path, frame, label_column="-1")


@csv_and_parquet
def test_one_of_several_label_columns_has_to_be_named(reader: Reader, tmp_path: Path) -> None:
    frame = FEATURES.assign(label=Y, y=0.5)
    refused("parameter", "has the columns 'label' and 'y'; name that of the labels", reader, tmp_path, frame)
    points = reader(tmp_path, frame, label_column="label")
    assert points.provenance["feature_names"] == [*NAMES, "y"]


@pytest.mark.parametrize(
    "content",
    [
        "0,1,2\n0.5,0.25,1\n",
        "5.1,3.5,setosa\n4.9,3.0,virginica\n",
        "id,1,2\na,0.5,0\n",
        "0.1,0.2,Y\n0.3,0.4,n\n",
    ],
)
def test_a_first_row_that_may_be_values_is_refused(content: str, tmp_path: Path) -> None:
    refused("parameter", "must name the columns, and holds numbers", text, tmp_path, content)
    assert len(text(tmp_path, "0.1,0.2,y\n0.3,0.4,n\n", label_column="y")) == 1, "a named label column"
    assert len(text(tmp_path, "na,k,y\n1,2,0\n")) == 1, "a word for a missing value is no number"


@pytest.mark.parametrize("name", ["y", "LABEL"])
def test_a_header_may_hold_numbers(name: str, tmp_path: Path) -> None:
    points = text(tmp_path, f"0,1,{name}\n0.5,0.25,1\n")
    assert (inputs(points).tolist(), points.labels) == ([[0.5, 0.25]], (1,))


@pytest.mark.parametrize(
    ("content", "code", "match"),
    [
        ("a,sex,y\n1,2,0\n1,male,0\n", "columns", "row 1, column 'sex' of .*csv holds 'male'"),
        ("a,b,y\n1,1_000,0\n", "columns", "holds '1_000'"),
        ("a,b,y\n1,2,0\n1,2,\n", "labels", "row 1 of the label column 'y' in .* is empty"),
        ("a,b,y\n1,2,0\n1,2,0.5\n", "labels", "holds 0.5 in row 1"),
        ("a,b,y\n1,2,0\n1,2,ant\n", "labels", "holds text and numbers: 'ant' and 0"),
        ("a,b,y\n1,2,0\n1,2\n", "columns", "a row of 2"),
        ("a,,y\n1,2,0\n", "columns", "called ''"),
        ("Unnamed: 0,a,y\n1,2,0\n", "columns", "called 'Unnamed: 0'"),
        ("a,a,y\n1,2,0\n", "columns", "two columns called 'a'"),
        ("id,y\n1,2\n", "columns", "no column of features"),
        ('a,b,y\n1,2,"ant"s\n', "corrupt", "expected after"),
        ('a,b,y\n1,2,ant\n3,4,"bee', "corrupt", "unexpected end of data"),
        ('a,b,y\n1,2,"ant\n3,4,bee\n', "corrupt", "unexpected end of data"),
        ("a,b,y\n", "empty_dataset", "holds no rows"),
        ("", "empty_dataset", "holds no rows"),
        ('a,b,y\n1,"2,0\n', "corrupt", "not a readable table in UTF-8"),
    ],
)  # fmt: skip
def test_tables_of_another_form_get_one_sentence(content: str, code: str, match: str, tmp_path: Path) -> None:
    refused(code, match, text, tmp_path, content)


@pytest.mark.parametrize(
    ("columns", "code", "match"),
    [
        ({"a": [1.0, 2.0], "sex": ["f", "m"], "y": [0, 1]}, "columns", "row 0, column 'sex' .* holds 'f'"),
        ({"a": [1.0, 2.0], "v": [[1], [2]], "y": [0, 1]}, "columns", r"column 'v' .* holds \[1\]"),
        ({"a": [1.0, 2.0], "y": [0, None]}, "labels", "row 1 of the label column 'y'"),
        ({"a": [1.0, 2.0], "y": [[0], [1]]}, "labels", "\\[0\\]"),
        ({"a": pa.array([], pa.float64())}, "empty_dataset", "holds no rows"),
    ],
)
def test_unusable_parquet_tables_are_refused(columns: dict[str, Any], code: str, match: str, tmp_path: Path) -> None:
    pq.write_table(pa.table(columns), tmp_path / "table.parquet")
    refused(code, match, open_points, tmp_path / "table.parquet")


def test_whole_numbers_and_booleans_are_features(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": [True, False], "y": pd.Categorical(["ant", "bee"])})
    points = parquet_points(tmp_path, frame)
    assert inputs(points).tolist() == [[1, 1], [2, 0]]
    assert (points.labels, points.class_names) == ((0, 1), ("ant", "bee"))


def test_a_limit_keeps_the_first_and_the_names_of_all_classes(tmp_path: Path) -> None:
    points = csv_points(tmp_path, FEATURES.assign(species=SPECIES), label_column="species", limit=7)
    assert torch.equal(inputs(points), torch.from_numpy(X[:7]))
    assert (len(points), points.labels, points.provenance["limit"]) == (7, Y[:7], 7)
    assert points.class_names == ("setosa", "versicolor", "virginica")
