"""What the report's command prints beside the page."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from helpers.change_runs import change_run, other_run

import brittle
from brittle.analysis import compare, format_comparison
from brittle.cli import main
from brittle.errors import DataError
from brittle.store.table import Table

pytestmark = pytest.mark.usefixtures("figures_drawn_once")


@pytest.fixture(scope="module")
def table() -> Table:
    return change_run()


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: Table) -> None:
    """Run folders `clean`, `a/run` and `b/run`."""
    monkeypatch.chdir(tmp_path)
    table.save("clean")
    for seed, name in enumerate(("a/run", "b/run"), 1):
        other_run(seed).save(name)


@pytest.mark.usefixtures("folders")
def test_the_command_prints_what_the_page_shows(table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "clean"]) == 0
    said = capsys.readouterr().out
    assert "hold: kept with probability 0.9 or more" in said
    assert "Against" not in said
    assert 'id="expected-change"' in Path("clean/report.html").read_text(encoding="utf-8")
    assert main(["report", "clean", "--against", "a/run"]) == 0
    comparison = format_comparison(compare(table, other_run()))
    assert f"Against run: {comparison}" in capsys.readouterr().out
    assert main(["report", "clean", "--against", "a/run", "b/run"]) == 0
    said = capsys.readouterr().out
    assert "Against a/run: " in said
    assert "Against b/run: " in said
    assert "All runs at a glance" in Path("clean/report.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("folders")
def test_what_the_command_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "clean", "--against", "nowhere"]) == 2
    assert "nowhere" in capsys.readouterr().err
    change_run(seed=1).save("others")
    assert main(["report", "clean", "--against", "others"]) == DataError.exit_code
    assert "runs_differ" in capsys.readouterr().err
    assert not Path("clean/report.html").exists()


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--help"]) == 0
    assert "--against" in capsys.readouterr().out


def test_a_run_without_monte_carlo_begins_with_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    x = torch.rand(12, 3, generator=torch.Generator().manual_seed(0))
    classifier = brittle.Classifier(torch.nn.Linear(3, 2).eval(), bounds=(0, 1))
    points = brittle.data.array_points(x)
    noise = brittle.noise.PerFeature.of(points, 0.1)
    table = brittle.score(classifier, points, [brittle.scores.Shrinkage(noise=noise, draws=20)])
    table.save("alone")
    assert main(["report", "alone"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Under noise of 0.1 deviations per feature, ")
    page, digest = Path("alone/report.html").read_text(encoding="utf-8"), str(table.columns[0].parameters["scale"])
    assert "by shrinkage(adaptive=True, draws=20, noise=per_feature, sigma=0.1)." in page
    assert table["shrinkage(adaptive=True, draws=20, noise=per_feature, sigma=0.1)"].label.count(digest) == 1
    assert main(["show", "alone", "--by", table.columns[0].shown]) == 0
    assert digest not in capsys.readouterr().out
