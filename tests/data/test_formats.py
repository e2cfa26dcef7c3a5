"""A path that is opened: its format is recognised, or what it may be is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.data_files import refused

from brittle.data import FORMATS, open_points
from brittle.errors import DataError


def test_a_path_that_does_not_exist(tmp_path: Path) -> None:
    refused("no_such_path", "data.npz does not exist", open_points, tmp_path / "data.npz")


def test_an_unknown_format_lists_the_known(tmp_path: Path) -> None:
    (tmp_path / "data.pt").write_bytes(b"anything")
    with pytest.raises(DataError, match=r"data\.pt is none of the formats") as caught:
        open_points(tmp_path / "data.pt")
    assert all(f"{known.name}:" in str(caught.value) for known in FORMATS)
