"""Fixtures that several files of this room share."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.crews import prepare, run


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return prepare(tmp_path)


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of this process alone."""
    place = prepare(tmp_path_factory.mktemp("alone"))
    with pytest.MonkeyPatch.context() as patch:
        assert run(place, "run", patch) == 0
    return place / "run"
