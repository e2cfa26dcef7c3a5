"""Formats from outside the package: used from Python, and what is wrong with them is named."""

from __future__ import annotations

import hashlib
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.data_files import refused
from helpers.extending import imported, write_page

import brittle
from brittle.cli import main
from brittle.data import FORMATS, Batch, Format, Points, Reading, array_points, open_points
from brittle.data.reading import ARRAY_OPTIONS, IMAGE_OPTIONS
from brittle.errors import BrittleError, DataError, ParameterError
from brittle.scores import Moments


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of the page and data, as the current one."""
    monkeypatch.chdir(tmp_path)
    return write_page(tmp_path)


@pytest.fixture
def own(place: Path) -> Iterator[Format]:
    """The format of the page, imported as a user imports it."""
    with imported(place):
        yield importlib.import_module("myformat").CSV


CSV = Format("mine", "anything", lambda path: True, lambda path, options: array_points(torch.rand(6, 3)))


def test_a_format_of_ones_own_is_used_from_python(own: Format) -> None:
    points = open_points("mydata.csv", format=own, limit=5)
    assert len(points) == len(points.labels or ()) == 5
    assert [len(batch) for batch in points.batches(2)] == [2, 2, 1]
    assert [batch.rows for batch in points.batches(2, 1, 3)] == [(1, 2)]
    known = points.provenance
    assert (known["format"], known["path"], known["points"], known["limit"]) == ("csv", "mydata.csv", 5, 5)
    assert known["code"] == {"myformat.py": hashlib.sha256(Path("myformat.py").read_bytes()).hexdigest()}
    classifier = brittle.Classifier(torch.nn.Linear(36, 4))
    table = brittle.score(classifier, open_points("mydata.csv", format=own), [Moments(0.1, draws=4)])
    assert table.record.data.sha256 == open_points("mydata.csv", format="./myformat.py:CSV").provenance["sha256"]


def test_a_format_of_brittles_own_can_be_named(place: Path) -> None:
    assert open_points("mydata.npz", format="npz").provenance == open_points("mydata.npz").provenance
    with pytest.raises(DataError, match=r"expected a \.npz file .* \(format npz\), found mydata\.csv"):
        open_points("mydata.csv", format="npz")


class Silent:
    """Points that say less, or more, of themselves than is needed."""

    labels = class_names = None

    def __init__(self, provenance: dict[str, object]) -> None:
        self.provenance = provenance

    def __len__(self) -> int:
        return 3

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        return iter(())


class Fewer(Silent):
    labels = (0,)


def broken(path: Path, options: Reading) -> Points:
    raise KeyError("label")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"name": "npz"}, "expected a format of another name than brittle's own, found 'npz'"),
        ({"name": "My format"}, "format has the name 'My format'; expected one such as 'csv'"),
        ({"read": None}, "expected a brittle.data.Format, whose recognise and read are called"),
        ({"recognise": lambda path: False}, "expected anything (format mine), found mydata.csv"),
        ({"recognise": lambda path: 1 / 0}, "cannot be read by the format mine, which failed at line"),
        ({"read": broken}, "which failed at line"),
        ({"read": lambda path, options: 3}, "gave an object of type int; expected points"),
        ({"read": lambda path, options: Fewer({})}, "gave 1 labels for 3 points; expected one each"),
    ],
)
def test_a_format_that_cannot_be_used_is_named(place: Path, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BrittleError, match=re.escape(sentence)):
        open_points("mydata.csv", format=CSV._replace(**changes))


def test_without_a_digest_that_of_the_file_is_taken_and_a_folder_is_refused(place: Path) -> None:
    silent = CSV._replace(read=lambda path, options: Silent({}))
    digest = hashlib.sha256(Path("mydata.csv").read_bytes()).hexdigest()
    assert open_points("mydata.csv", format=silent).provenance["sha256"] == digest
    with pytest.raises(ParameterError, match="gives no sha256 of what it read from a folder"):
        open_points(place, format=silent)


def test_options_that_a_format_does_not_take_are_refused(place: Path) -> None:
    options: list[dict[str, Any]] = [{"layout": "nchw"}, {"mode": "L"}]
    for option in options:
        with pytest.raises(ParameterError, match=r"mydata\.csv is anything"):
            open_points("mydata.csv", format=CSV, **option)
    taking = CSV._replace(options=ARRAY_OPTIONS | IMAGE_OPTIONS)
    known = open_points("mydata.csv", format=taking, layout="nchw", mode="L").provenance
    assert (known["layout"], known["mode"]) == ("nchw", "L")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--format", "cvs"], 2, "no format is called 'cvs'"),
        (["--format", "./myformat.py:CVS"], 2, "./myformat.py has no CVS; it has CSV"),
        (["--format", "./myformat.py:read_csv"], 3, "is an object of type function; expected a brittle.data.Format"),
    ],
)
def test_a_format_that_is_not_there(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, sentence: str
) -> None:
    assert main(["score", "./mynet.py:make", "mydata.csv", "--out", "run", *arguments]) == code
    assert sentence in capsys.readouterr().err
    assert not Path("run").exists()


def test_a_path_that_does_not_exist(tmp_path: Path) -> None:
    refused("no_such_path", "data.npz does not exist", open_points, tmp_path / "data.npz")


def test_an_unknown_format_lists_the_known(tmp_path: Path) -> None:
    (tmp_path / "data.pt").write_bytes(b"anything")
    with pytest.raises(DataError, match=r"data\.pt is none of the formats") as caught:
        open_points(tmp_path / "data.pt")
    assert all(f"{known.name}:" in str(caught.value) for known in FORMATS)


@pytest.mark.parametrize("name", ["state.json", "dataset_dict.json"])
def test_what_save_to_disk_wrote_is_to_be_written_as_parquet(name: str, tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / name).write_text("{}")
    refused("unknown_format", "to_parquet", open_points, tmp_path)
