"""What is read as what, and what is none of the formats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.data_files import refused

from brittle.data import FORMATS, open_points
from brittle.errors import DataError


def test_a_format_can_be_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.zeros((3, 2)))
    assert open_points(tmp_path / "x.npz", format="npz").provenance == open_points(tmp_path / "x.npz").provenance
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    refused("unknown_format", r"expected a \.npz file .* \(format npz\)", open_points, tmp_path / "x.csv", format="npz")
    refused("usage", "no format is called 'cvs'", open_points, tmp_path / "x.csv", format="cvs")


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
