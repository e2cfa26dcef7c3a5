"""Fixtures that several files of this room share."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.artefacts import FACTORY


@pytest.fixture
def code(tmp_path: Path) -> Path:
    (tmp_path / "net.py").write_text(FACTORY, encoding="utf-8")
    return tmp_path / "net.py"
