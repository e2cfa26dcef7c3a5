"""The command `brittle compare`: what it prints, writes and refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.csv as csv
import pytest
from helpers.tables import first_points, with_scores
from helpers.two_runs import renamed, two_runs

from brittle.analysis import compare, format_comparison
from brittle.cli import main


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two run folders, `one` and `two`."""
    monkeypatch.chdir(tmp_path)
    for table, name in zip(two_runs(), ("one", "two"), strict=True):
        table.save(name)


@pytest.mark.usefixtures("folders")
def test_the_command_prints_and_writes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "one", "two", "--out", "comparison.csv"]) == 0
    said = capsys.readouterr()
    frame = compare(*two_runs())
    assert said.out == format_comparison(frame) + "\ncomparison.csv\n"
    assert said.err == ""
    written = csv.read_csv("comparison.csv").to_pandas()
    assert written["score"].tolist() == frame["score"].tolist()
    assert written["difference"].to_numpy() == pytest.approx(frame["difference"].to_numpy())


@pytest.mark.usefixtures("folders")
def test_a_spreadsheet_runs_nothing_of_what_the_command_wrote() -> None:
    first, _ = two_runs()
    hostile = '=HYPERLINK("https://evil.example")'
    scores = [replace(entry, label=hostile, title="@x") for entry in first.record.scores]
    with_scores(first, scores).save("hostile")
    assert main(["compare", "hostile", "two", "--out", "safe.csv"]) == 0
    written = csv.read_csv("safe.csv").to_pandas()
    assert set(written["score"]) == {"accuracy", f"'{hostile}"}
    assert set(written["title"][1:]) == {"'@x"}


@pytest.mark.usefixtures("folders", "nothing_drawn")
def test_a_page_beside_another_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "one", "--against", "two"]) == 0
    said = capsys.readouterr().out
    assert "hold: kept with probability 0.9 or more" in said
    assert said.endswith("one/report.html\n")
    assert 'id="other-runs"' in Path("one/report.html").read_text(encoding="utf-8")
    first_points(renamed(two_runs()[1]), 50).save("other")
    for other, code in (("nowhere", "no_run"), ("other", "runs_differ")):
        assert main(["report", "two", "--against", other]) != 0
        assert code in capsys.readouterr().err
    assert not Path("two/report.html").exists()


@pytest.mark.usefixtures("folders")
def test_what_the_command_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, code, named in (
        (["one", "absent"], 2, "absent is not a run folder"),
        (["one", "two", "--out", "comparison.txt"], 3, "must end in .csv"),
        (["one", "two", "--out", "absent/comparison.csv"], 7, "its folder must exist"),
    ):
        assert main(["compare", *arguments]) == code
        assert named in capsys.readouterr().err
    first_points(renamed(two_runs()[1]), 50).save("other")
    assert main(["compare", "one", "other"]) == 3
    assert "runs_differ" in capsys.readouterr().err
