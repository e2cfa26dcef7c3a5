"""What `brittle demo` does and prints, on fewer points."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import brittle
from brittle.cli import main
from brittle.cli.digits import one_thread
from brittle.scores import CATALOGUE


def small_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"EPOCHS": 20, "TEST_POINTS": 60, "DRAWS": 20, "SIGMAS": (0.2,)}.items():
        monkeypatch.setattr(f"brittle.cli.digits.{name}", value)


def test_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It ends on one screen, which says what it found, where the report lies and what comes next."""
    small_demo(monkeypatch)
    for name, value in {"POINTS": 40, "DRAWS": 50}.items():
        monkeypatch.setattr(f"brittle.cli.demo.{name}", value)
    before = torch.random.get_rng_state()
    assert main(["demo", "--out", str(tmp_path / "demo"), "--quiet"]) == 0
    assert torch.equal(before, torch.random.get_rng_state())
    table = brittle.read_table(tmp_path / "demo" / "run")
    assert table.points.num_rows == 40
    page = (tmp_path / "demo" / "report.html").read_text()
    assert all(f'id="{view}"' in page for view in ("distribution", "worst-case", "expected-change"))
    printed, said = capsys.readouterr()
    assert said == ""
    lines, flat = printed.splitlines(), " ".join(printed.split())
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 100 + len(str(tmp_path))
    found = re.search(r"reads (\S+)% of 40 .* (\d+) predictions hold and (\d+) break; of the other (\d+)", flat)
    assert found is not None
    assert float(found[1]) > 80
    assert int(found[2]) + int(found[3]) + int(found[4]) == 40
    flips = table.long().query("score == 'monte_carlo' and parameters.str.contains('50')")
    assert int(found[3]) == (flips["low"] > 0.1).sum()
    worst = flips.sort_values("value")["value"].iloc[-1]
    assert f"{worst:.1%} (" in lines[[line.startswith("  point") for line in lines].index(True) + 1]
    assert f"Report: {tmp_path / 'demo' / 'report.html'}" in printed
    assert "brittle demo --full" in printed


def test_one_thread_computes_and_as_many_as_before_afterwards() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(before + 1)
    try:
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == before + 1
    finally:
        torch.set_num_threads(before)


@pytest.mark.slow
def test_the_full_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    small_demo(monkeypatch)
    assert main(["demo", "--full", "--out", str(tmp_path / "demo"), "--quiet"]) == 0
    table = brittle.read_table(tmp_path / "demo" / "run")
    assert table.points.num_rows == 60
    assert table.points.column("correct").to_pylist().count(True) > 50
    assert set(table.scores["score"].to_pylist()) == set(CATALOGUE) - {"rare_event"}
    assert (tmp_path / "demo" / "report.html").is_file()
