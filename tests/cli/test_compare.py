"""The command `brittle compare`: what it prints, writes and refuses."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pyarrow.csv as csv
import pytest
from helpers.tables import first_points, with_scores, with_value
from helpers.two_runs import renamed, run, two_runs

from brittle.analysis import compare, format_comparison
from brittle.analysis.comparison import compare_several, format_comparisons, remarks
from brittle.cli.commands import main
from brittle.errors import DataError
from brittle.text import number, with_interval


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two run folders, `one` and `two`."""
    monkeypatch.chdir(tmp_path)
    for table, name in zip(two_runs(), ("one", "two"), strict=True):
        table.save(name)


@pytest.mark.usefixtures("folders")
def test_the_command_prints_and_writes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "one", "two", "--out", "comparison.csv"]) == 0
    printed = capsys.readouterr()
    frame = compare(*two_runs())
    assert printed.out == format_comparison(frame) + "\ncomparison.csv\n"
    assert printed.err == ""
    saved = csv.read_csv("comparison.csv").to_pandas()
    assert saved["score"].tolist() == frame["score"].tolist()
    assert saved["difference"].to_numpy() == pytest.approx(frame["difference"].to_numpy())


def test_a_line_for_each_of_several_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clean, candidate = two_runs()
    fog = replace(candidate, record=replace(candidate.record, data=replace(candidate.record.data, split="fog:3")))
    places = [str(tmp_path / name) for name in ("clean", "fog", "again", "other")]
    for table, place in zip((clean, fog, clean, renamed(first_points(candidate, 50))), places, strict=True):
        table.save(place)
    for _ in range(2):  # an earlier comparison is replaced
        assert main(["compare", *places[:3], "--out", f"{tmp_path}/several.csv"]) == 0
    printed = capsys.readouterr().out.splitlines()
    frame = csv.read_csv(f"{tmp_path}/several.csv").to_pandas()
    for place, split, table in ((places[1], "fog:3", fog), (places[2], clean.record.data.split, clean)):
        rows, expected = frame[frame["run"] == place].set_index("score"), compare(clean, table).set_index("score")
        assert rows.index.tolist() == expected.index.tolist()
        assert set(rows["split"]) == {split}
        numbers = ["first", "second", "difference", "difference_low", "difference_high", "first_larger", "p"]
        assert rows[numbers].to_numpy() == pytest.approx(expected[numbers].to_numpy(), nan_ok=True)
        speaks = expected[expected["speaks"]].iloc[0]
        line = next(line for line in printed if line.strip().startswith(place))
        texts = [number(expected.loc["accuracy", "second"]), number(speaks["second"]), number(speaks["first_larger"])]
        cells = re.split(" {2,}", line.strip().removeprefix(f"{place} ({split})"))[1:]
        assert [cells[2], cells[6], cells[8]] == texts
        assert cells[7] == with_interval(speaks, "difference")
    assert main(["compare", *places]) == 3
    assert f"runs_differ: {places[3]}" in capsys.readouterr().err


def test_several_runs_are_compared_by_one_score_in_any_order() -> None:
    baseline, candidate = two_runs()
    label, flips = next((column.label, column.value) for column in candidate.columns if column.is_probability)
    holes = [None if row % 3 else value for row, value in enumerate(flips)]
    own_noise = replace(candidate, record=replace(candidate.record, seed=baseline.record.seed + 1))
    runs = {"no flips": run(scores=("input_margin",)), "holes": with_value(candidate, label, holes), "own": own_noise}
    frame, reversed_frame = (compare_several(baseline, list(runs.items())[::step]) for step in (1, -1))
    text = format_comparisons(frame)
    assert sorted(text.splitlines()) == sorted(format_comparisons(reversed_frame).splitlines())
    (row,) = (line.split() for line in text.splitlines() if line.strip().startswith("no flips"))
    assert row[-4:] == ["-"] * 4
    flip_rows = [entry for entry in frame.to_dict("records") if entry["score"] == label]
    facts = [(entry["run"], entry["dropped"], entry["noise"]) for entry in flip_rows]
    assert facts == [("holes", 40, "shared"), ("own", 0, "own")]
    assert {*remarks(flip_rows)} <= {*text.splitlines()}
    assert len(remarks(flip_rows)) == 4 + bool(flip_rows[1]["reason"])


def test_no_run_is_left_out_in_silence() -> None:
    baseline, candidate = two_runs()
    with pytest.raises(DataError) as caught:
        compare_several(baseline, [("other", candidate), ("strange", run(scores=("softmax",), labels=False))])
    assert (caught.value.code, caught.value.args[0].split()[0]) == ("runs_differ", "strange")


@pytest.mark.usefixtures("folders")
def test_a_spreadsheet_runs_nothing_from_the_written_file() -> None:
    table, _ = two_runs()
    hostile = '=HYPERLINK("https://evil.example")'
    scores = [replace(entry, label=hostile, title="@x") for entry in table.record.scores]
    with_scores(table, scores).save("hostile")
    assert main(["compare", "hostile", "two", "--epsilon", "1/4", "--out", "safe.csv"]) == 0
    saved = csv.read_csv("safe.csv").to_pandas()
    expected = "expected_robustness(epsilon=0.25, norm=linf)"
    assert set(saved["score"]) == {"accuracy", expected, f"'{hostile}"}
    assert set(saved[saved["score"] == f"'{hostile}"]["title"]) == {"'@x"}


@pytest.mark.usefixtures("folders", "nothing_drawn")
def test_a_page_beside_another_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "one", "--against", "two"]) == 0
    printed = capsys.readouterr().out
    assert "hold: kept with probability 0.9 or more" in printed
    assert printed.endswith("one/report.html\n")
    assert 'id="other-runs"' in Path("one/report.html").read_text(encoding="utf-8")
    first_points(renamed(two_runs()[1]), 50).save("other")
    for folder, code in (("nowhere", "no_run"), ("other", "runs_differ")):
        assert main(["report", "two", "--against", folder]) != 0
        assert code in capsys.readouterr().err
    assert not Path("two/report.html").exists()


@pytest.mark.usefixtures("folders")
def test_refusals(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, code, message in (
        (["one", "absent"], 2, "absent is not a run folder"),
        (["one", "two", "--out", "comparison.txt"], 3, "must end in .csv"),
        (["one", "two", "--out", "absent/comparison.csv"], 7, "its folder must exist"),
    ):
        assert main(["compare", *arguments]) == code
        assert message in capsys.readouterr().err
    first_points(renamed(two_runs()[1]), 50).save("other")
    assert main(["compare", "one", "other"]) == 3
    assert "runs_differ" in capsys.readouterr().err
