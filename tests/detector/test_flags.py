"""The table of flags: a row for every point."""

from __future__ import annotations

from pathlib import Path

import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from helpers.calibrated import classifier, points

from brittle.detector import FLAGS, Detector, write_flags
from brittle.errors import ParameterError, StorageError


def test_force_is_written_into_every_row(detector: Detector) -> None:
    ours, forced = detector.apply(classifier(), points(8)), detector.apply(classifier(seed=5), points(8), force=True)
    assert ours["forced"].tolist() == [False] * 8
    assert forced["forced"].tolist() == [True] * 8
    assert detector.apply(classifier(), points(8), force=True)["forced"].tolist() == [False] * 8
    assert detector.wrap(classifier(seed=5), force=True).forced


def test_flags_are_written(tmp_path: Path, detector: Detector) -> None:
    flags = detector.apply(classifier(), points(8))
    names = ["=HYPERLINK(1)", "+1", "-1", "@x", "\tx", "plain", None, 'a,"b"\nc']
    flags["name"] = names
    flags.loc[3, "score"] = None
    written = pq.read_table(write_flags(flags, tmp_path / "flags.parquet"))
    assert written.schema == FLAGS
    assert written["name"].to_pylist() == names
    assert [written[name].null_count for name in ("score", "label", "predicted")] == [1, 8, 0]
    assert written["score"].drop_null().to_pylist() == flags["score"].dropna().tolist()
    read = csv.read_csv(write_flags(flags, tmp_path / "flags.csv"))
    assert read["name"].to_pylist()[:6] == ["'=HYPERLINK(1)", "'+1", "'-1", "'@x", "\\tx", "plain"]
    assert read["brittle"].to_pylist() == flags["brittle"].tolist()
    with pytest.raises(ParameterError, match=r"\.parquet or \.csv"):
        write_flags(flags, tmp_path / "flags.xlsx")
    with pytest.raises(StorageError, match="folder must exist"):
        write_flags(flags, tmp_path / "absent" / "flags.csv")
