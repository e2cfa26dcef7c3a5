"""Fixtures shared by several files of this room."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.commands import FACTORY, score
from helpers.problems import inputs, small_network
from safetensors.torch import save_file


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write `net.py`, `data.npz` and the weights to a folder, and make it the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(FACTORY.format(tests=str(Path(__file__).parents[1])))
    np.savez(tmp_path / "data.npz", x=inputs(8).numpy(), y=np.arange(8) % 4)
    save_file(small_network(seed=5).state_dict(), tmp_path / "weights.safetensors")
    return tmp_path


@pytest.fixture
def run(place: Path) -> Path:
    """`place` with a run."""
    assert score("--quiet") == 0
    return place
