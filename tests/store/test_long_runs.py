"""Runs too long to be held: a file for other programs is written by shards, a screen speaks of a sample."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
from torch import nn

import brittle
from brittle import check
from brittle.analysis import point_card, point_list
from brittle.cli.commands import main
from brittle.scores import LogitMargin, Shrinkage
from brittle.store import reading
from brittle.store.export import FORMS
from brittle.store.folder import MANIFEST
from brittle.store.reading import export_run, read_shards, read_table

COUNT = 1000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of some hundred shards in which other columns hold something: exact margins first, names of classes, failures."""
    folder = tmp_path_factory.mktemp("long") / "run"
    x = torch.rand(COUNT, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    x[900:910] = torch.nan
    y = torch.arange(COUNT) % 4
    scores = [
        Shrinkage(draws=20, sigma=2.0, limit=None),
        LogitMargin(),
    ]  # every point turns into another class somewhere
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 4))
    brittle.score(network, (x, y), scores, out=folder, skip_doctor=True, most_failures=None, batch_size=64)
    return folder


def test_without_images_all_else_is_there(run: Path) -> None:
    table, whole = read_table(run, images=False), read_table(run)
    assert table.points["image"].null_count == len(table.points) > whole.points["image"].null_count
    pd.testing.assert_frame_equal(table.frame(whole=True), whole.frame(whole=True))


def test_a_sample_of_chosen_points_is_not_one_of_all(run: Path, tmp_path: Path) -> None:
    whole = read_table(run)
    data = replace(whole.record.data, chosen_from=5000, ids_sha256="0" * 64)
    replace(whole, record=replace(whole.record, data=data)).save(tmp_path / "run")
    found = read_table(tmp_path / "run", 300).record.data
    assert (found.chosen_from, found.sample_seed, found.ids_sha256) == (5000, None, "0" * 64)


@pytest.mark.every_other
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_a_file_by_shards_holds_what_one_of_the_table_holds(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, whole: bool
) -> None:
    monkeypatch.setattr("brittle.store.export.GROUP", 300)
    assert len(list(run.glob("points-*.parquet"))) > 3
    own = export_run(run, tmp_path / f"own{form}", whole=whole)
    other = read_table(run).export(tmp_path / f"other{form}", whole=whole)
    if form == ".parquet":
        assert pq.read_table(own).equals(pq.read_table(other))
    elif form == ".arrow":
        pd.testing.assert_frame_equal(pd.read_feather(own), pd.read_feather(other))
    else:
        assert own.read_bytes() == other.read_bytes()


def test_a_column_of_one_shard_alone_is_kept(tmp_path: Path) -> None:
    """What the copies turn into, where those of the points of the other shards all keep their prediction."""
    x = torch.cat([torch.full((256, 1), 9.0), torch.zeros(64, 1)])
    network = nn.Linear(1, 2)
    network.weight.data, network.bias.data = torch.tensor([[1.0], [-1.0]]), torch.zeros(2)
    classifier = brittle.Classifier(network, bounds=None)
    brittle.score(
        classifier,
        (x, None),
        [Shrinkage(0.1, draws=20, limit=None)],
        out=tmp_path / "run",
        skip_doctor=True,
        batch_size=64,
    )
    shards = [{*one.frame()} for one in read_shards(tmp_path / "run")]
    assert [("turns_into" in names) for names in shards][:: len(shards) - 1] == [False, True]
    found = pd.read_parquet(export_run(tmp_path / "run", tmp_path / "x.parquet"))
    pd.testing.assert_frame_equal(found, read_table(tmp_path / "run").to_arrow().to_pandas())
    assert found["turns_into"].notna().sum() > 0


def test_a_run_that_grows_meanwhile_is_exported_as_it_was(run: Path, tmp_path: Path) -> None:
    """Its manifest is read once: columns are chosen by the rows that are written."""
    part = tmp_path / "run"
    shutil.copytree(run, part)
    whole = (part / MANIFEST).read_bytes()
    few = json.loads(whole)
    few["shards"] = few["shards"][:2]
    (part / MANIFEST).write_text(json.dumps(few))
    reads = []

    def grown(path: Path) -> Any:
        reads.append(path)
        found = opened(path)
        (part / MANIFEST).write_bytes(whole)
        return found

    opened = reading.open_run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "open_run", grown)
        found = pq.read_table(export_run(part, tmp_path / "x.parquet"))
    assert (len(reads), len(found)) == (1, sum(one["account"]["points"] for one in few["shards"]))


def test_a_sample_is_even_over_rows_and_classes(run: Path) -> None:
    most = 300
    table, whole = read_table(run, most), read_table(run)
    rows, labels = table.points["row"].to_numpy(), table.points["label"].to_numpy()
    assert len(rows) == pytest.approx(most, abs=60)
    assert np.histogram(rows, 10, (0, COUNT))[0] == pytest.approx(np.full(10, most / 10), abs=20)
    assert np.bincount(labels) == pytest.approx(np.full(4, most / 4), abs=30)
    assert (table.record.data.chosen_from, len(table.scores)) == (COUNT, 2 * len(rows))
    own, of_all = (one.frame(whole=True).set_index("point") for one in (table, whole))
    pd.testing.assert_frame_equal(own, of_all.loc[own.index], check_dtype=False)
    assert read_table(run, COUNT).points.equals(whole.points), "which is read as a whole"


def test_a_shard_may_have_no_point_in_a_sample(run: Path) -> None:
    assert 0 < len(read_table(run, 3).points) < 20


def test_a_smaller_sample_lies_in_a_larger_one(run: Path) -> None:
    """So that two runs of which the scores differ have points in common."""
    few, many = ({*read_table(run, most).points["point"].to_pylist()} for most in (100, 500))
    assert few < many


@pytest.mark.usefixtures("long", "nothing_drawn")
def test_screen_and_page_say_that_they_speak_of_a_sample(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(run)]) == 0
    assert f"out of {COUNT:,}" in capsys.readouterr().out
    assert main(["show", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["chosen_from"] == COUNT
    assert main(["report", str(run), "--out", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert f"out of {COUNT:,}" in page
    assert f"{read_table(run).record.account.passes / COUNT:,.0f} per point" in page, "passes are of all points"


@pytest.fixture
def long(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that 600 rows of two scores are as many as are shown."""
    monkeypatch.setattr("brittle.store.reading.MOST_READ", 600)


@pytest.mark.usefixtures("long")
@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["--top", "1000"], {}),
        (["--top", "25"], {}),
        (["--state", "breaks"], {"state": "breaks"}),
        (["--state", "failed", "--top", "3"], {"state": "failed"}),
        (["--class", "2", "--wrong", "--top", "7"], {"of_class": 2, "correct": "wrong"}),
    ],
)
def test_a_list_is_of_all_points(
    run: Path, options: list[str], wanted: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    whole = point_list(read_table(run), **wanted)
    top = int(options[options.index("--top") + 1]) if "--top" in options else 20
    assert main(["show", str(run), *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["points"]
    assert [one["point"] for one in found] == whole["point"].tolist()[:top]
    assert [one["value"] for one in found] == whole["value"].astype(object).where(
        whole["value"].notna(), None
    ).tolist()[:top]
    assert main(["show", str(run), *options]) == 0
    head, *_, last = capsys.readouterr().out.splitlines()
    assert head.startswith(f"{len(whole):,} of {COUNT:,} points")
    assert (f"{len(whole) - top:,} more" in last) == (len(whole) > top)


@pytest.mark.usefixtures("long")
def test_a_list_of_a_class_that_is_not_there_is_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(run), "--class", "4"]) == 3
    assert "classes: class 0, class 1, class 2, class 3" in capsys.readouterr().err


@pytest.mark.usefixtures("long")
def test_each_point_is_found(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn, whole = {*read_table(run, 300).points["point"].to_pylist()}, read_table(run)
    left_out = next(one for one in whole.points["point"].to_pylist() if one not in drawn)
    assert main(["show", str(run), left_out, "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    assert [one["value"] for one in scores] == point_card(whole, left_out)["value"].tolist()
    assert main(["show", str(run), str(COUNT)]) == 3
    assert main(["show", str(run), "9" * 30]) == 3


@pytest.mark.usefixtures("long")
def test_check_and_compare_say_that_they_speak_of_a_sample(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = read_table(run, 300)
    assert main(["check", str(run), "--accuracy", "0", "--against", str(run), "--no-worse-than", "0.5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    alone = check(table, accuracy=0.0, against=table, no_worse_than=0.5)
    assert [one["points"] for one in found["verdicts"]] == [one.points for one in alone.verdicts]
    assert f"out of {COUNT:,}" in found["remark"]
    assert main(["compare", str(run), str(run)]) == 0
    assert f"out of {COUNT:,}" in capsys.readouterr().out.splitlines()[0]
