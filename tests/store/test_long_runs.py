"""Runs too long for memory: files for other programs are written by shards, screens show a sample."""

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
    """Write a hundred shards that fill different columns: exact margins first, names of classes, failures."""
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


def test_only_images_are_left_out_on_request(run: Path) -> None:
    table, complete = read_table(run, images=False), read_table(run)
    assert table.points["image"].null_count == len(table.points) > complete.points["image"].null_count
    pd.testing.assert_frame_equal(table.frame(whole=True), complete.frame(whole=True))


def test_a_sample_of_chosen_points_keeps_their_provenance(run: Path, tmp_path: Path) -> None:
    complete = read_table(run)
    data = replace(complete.record.data, chosen_from=5000, ids_sha256="0" * 64)
    replace(complete, record=replace(complete.record, data=data)).save(tmp_path / "run")
    stored = read_table(tmp_path / "run", 300).record.data
    assert (stored.chosen_from, stored.sample_seed, stored.ids_sha256) == (5000, None, "0" * 64)


@pytest.mark.every_other
@pytest.mark.parametrize("all_columns", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_a_file_by_shards_equals_the_file_of_the_table(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, all_columns: bool
) -> None:
    monkeypatch.setattr("brittle.store.export.GROUP", 300)
    assert len(list(run.glob("points-*.parquet"))) > 3
    by_shards = export_run(run, tmp_path / f"own{form}", whole=all_columns)
    by_table = read_table(run).export(tmp_path / f"other{form}", whole=all_columns)
    if form == ".parquet":
        assert pq.read_table(by_shards).equals(pq.read_table(by_table))
    elif form == ".arrow":
        pd.testing.assert_frame_equal(pd.read_feather(by_shards), pd.read_feather(by_table))
    else:
        assert by_shards.read_bytes() == by_table.read_bytes()


def test_a_column_that_one_shard_fills_is_exported(tmp_path: Path) -> None:
    """`turns_into`, empty in all shards but the last, where the copies change their prediction."""
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
    shards = [{*shard.frame()} for shard in read_shards(tmp_path / "run")]
    assert [("turns_into" in names) for names in shards][:: len(shards) - 1] == [False, True]
    frame = pd.read_parquet(export_run(tmp_path / "run", tmp_path / "x.parquet"))
    pd.testing.assert_frame_equal(frame, read_table(tmp_path / "run").to_arrow().to_pandas())
    assert frame["turns_into"].notna().sum() > 0


def test_a_growing_run_is_exported_as_it_was_when_opened(run: Path, tmp_path: Path) -> None:
    """The manifest is read once: columns are chosen by the rows that are written."""
    part = tmp_path / "run"
    shutil.copytree(run, part)
    manifest_bytes = (part / MANIFEST).read_bytes()
    manifest = json.loads(manifest_bytes)
    manifest["shards"] = manifest["shards"][:2]
    (part / MANIFEST).write_text(json.dumps(manifest))
    reads = []

    def grown(place: Path) -> Any:
        reads.append(place)
        run_folder = opened(place)
        (part / MANIFEST).write_bytes(manifest_bytes)
        return run_folder

    opened = reading.open_run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "open_run", grown)
        rows = pq.read_table(export_run(part, tmp_path / "x.parquet"))
    assert (len(reads), len(rows)) == (1, sum(shard["account"]["points"] for shard in manifest["shards"]))


def test_a_sample_is_even_over_rows_and_classes(run: Path) -> None:
    size = 300
    table, complete = read_table(run, size), read_table(run)
    rows, labels = table.points["row"].to_numpy(), table.points["label"].to_numpy()
    assert len(rows) == pytest.approx(size, abs=60)
    assert np.histogram(rows, 10, (0, COUNT))[0] == pytest.approx(np.full(10, size / 10), abs=20)
    assert np.bincount(labels) == pytest.approx(np.full(4, size / 4), abs=30)
    assert (table.record.data.chosen_from, len(table.scores)) == (COUNT, 2 * len(rows))
    sample, population = (source.frame(whole=True).set_index("point") for source in (table, complete))
    pd.testing.assert_frame_equal(sample, population.loc[sample.index], check_dtype=False)
    assert read_table(run, COUNT).points.equals(complete.points), "which is read as a whole"


def test_a_shard_may_have_no_point_in_a_sample(run: Path) -> None:
    assert 0 < len(read_table(run, 3).points) < 20


def test_a_smaller_sample_lies_in_a_larger_one(run: Path) -> None:
    """Two runs with different scores have points in common."""
    smaller, larger = ({*read_table(run, size).points["point"].to_pylist()} for size in (100, 500))
    assert smaller < larger


@pytest.mark.usefixtures("short_limit", "nothing_drawn")
def test_screen_and_page_state_that_they_show_a_sample(
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
def short_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make 600 rows of two scores the most that are shown."""
    monkeypatch.setattr("brittle.store.reading.MOST_READ", 600)


@pytest.mark.usefixtures("short_limit")
@pytest.mark.parametrize(
    ("options", "filters"),
    [
        (["--top", "1000"], {}),
        (["--top", "25"], {}),
        (["--state", "breaks"], {"state": "breaks"}),
        (["--state", "failed", "--top", "3"], {"state": "failed"}),
        (["--class", "2", "--wrong", "--top", "7"], {"of_class": 2, "correct": "wrong"}),
    ],
)
def test_a_list_covers_all_points(
    run: Path, options: list[str], filters: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    frame = point_list(read_table(run), **filters)
    top = int(options[options.index("--top") + 1]) if "--top" in options else 20
    assert main(["show", str(run), *options, "--json"]) == 0
    points = json.loads(capsys.readouterr().out)["points"]
    assert [point["point"] for point in points] == frame["point"].tolist()[:top]
    assert [point["value"] for point in points] == frame["value"].astype(object).where(
        frame["value"].notna(), None
    ).tolist()[:top]
    assert main(["show", str(run), *options]) == 0
    head, *_, last = capsys.readouterr().out.splitlines()
    assert head.startswith(f"{len(frame):,} of {COUNT:,} points")
    assert (f"{len(frame) - top:,} more" in last) == (len(frame) > top)


@pytest.mark.usefixtures("short_limit")
def test_a_list_of_an_absent_class_is_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(run), "--class", "4"]) == 3
    assert "classes: class 0, class 1, class 2, class 3" in capsys.readouterr().err


@pytest.mark.usefixtures("short_limit")
def test_a_point_outside_the_sample_is_found(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample_ids, complete = {*read_table(run, 300).points["point"].to_pylist()}, read_table(run)
    left_out = next(id_ for id_ in complete.points["point"].to_pylist() if id_ not in sample_ids)
    assert main(["show", str(run), left_out, "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    assert [entry["value"] for entry in scores] == point_card(complete, left_out)["value"].tolist()
    assert main(["show", str(run), str(COUNT)]) == 3
    assert main(["show", str(run), "9" * 30]) == 3


@pytest.mark.usefixtures("short_limit")
def test_check_and_compare_state_that_they_use_a_sample(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = read_table(run, 300)
    assert main(["check", str(run), "--accuracy", "0", "--against", str(run), "--no-worse-than", "0.5", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    expected = check(table, accuracy=0.0, against=table, no_worse_than=0.5)
    assert [verdict["points"] for verdict in answer["verdicts"]] == [verdict.points for verdict in expected.verdicts]
    assert f"out of {COUNT:,}" in answer["remark"]
    assert main(["compare", str(run), str(run)]) == 0
    assert f"out of {COUNT:,}" in capsys.readouterr().out.splitlines()[0]
