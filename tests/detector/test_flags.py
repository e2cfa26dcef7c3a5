"""The table of flags: a row for every point."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from helpers.calibrated import classifier, points

from brittle.detector import FLAGS, Detector, write_flags
from brittle.errors import ParameterError, StorageError


def test_force_is_written_into_every_row(detector: Detector) -> None:
    ours, forced = detector.apply(classifier(), points(8)), detector.apply(classifier(seed=5), points(8), force=True)
    assert ours["forced"].to_pylist() == [False] * 8
    assert forced["forced"].to_pylist() == [True] * 8
    assert detector.apply(classifier(), points(8), force=True)["forced"].to_pylist() == [False] * 8
    assert detector.wrap(classifier(seed=5), force=True).forced


def test_flags_are_written(tmp_path: Path, detector: Detector) -> None:
    flags = detector.apply(classifier(), points(8))
    names = ["=HYPERLINK(1)", "+1", "-1", "@x", "\tx", "plain", None, 'a,"b"\nc']
    flags = flags.set_column(2, FLAGS.field("name"), pa.array(names, pa.string()))
    assert pq.read_table(write_flags(flags, tmp_path / "flags.parquet")).equals(flags)
    read = csv.read_csv(write_flags(flags, tmp_path / "flags.csv"))
    assert read["name"].to_pylist()[:6] == ["'=HYPERLINK(1)", "'+1", "'-1", "'@x", "\\tx", "plain"]
    assert read["brittle"].to_pylist() == flags["brittle"].to_pylist()
    with pytest.raises(ParameterError, match=r"\.parquet or \.csv"):
        write_flags(flags, tmp_path / "flags.xlsx")
    with pytest.raises(StorageError, match="folder must exist"):
        write_flags(flags, tmp_path / "absent" / "flags.csv")
