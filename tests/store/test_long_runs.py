"""Runs too long to be held: a file for other programs is written by shards, a screen speaks of a sample."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
from torch import nn

import brittle
from brittle.cli import common, main
from brittle.scores import InputMargin, LogitMargin, Shrinkage
from brittle.store.export import FORMS
from brittle.store.reading import export_run, read_table

COUNT = 1000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of some hundred shards in which other columns hold something: exact margins first, names of classes, failures."""
    folder = tmp_path_factory.mktemp("long") / "run"
    x = torch.rand(COUNT, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    x[900:910] = torch.nan
    y = torch.arange(COUNT) % 4
    scores = [Shrinkage(draws=20, sigma=0.5), LogitMargin()]
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 4))
    brittle.score(network, (x, y), scores, out=folder, skip_doctor=True, most_failures=None, batch_size=8)
    return folder


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_a_file_by_shards_holds_what_one_of_the_table_holds(run: Path, tmp_path: Path, form: str, whole: bool) -> None:
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
    """The ends of intervals that are exact elsewhere."""
    x = torch.cat([torch.full((256, 2), 0.5), torch.rand(64, 2, generator=torch.Generator().manual_seed(0))])
    network = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 2))
    scores = [InputMargin(effort="fast"), LogitMargin()]
    brittle.score(network, (x, None), scores, out=tmp_path / "run", skip_doctor=True)
    table = read_table(tmp_path / "run")
    found = pd.read_parquet(export_run(tmp_path / "run", tmp_path / "x.parquet"))
    pd.testing.assert_frame_equal(found, table.to_arrow().to_pandas())
    assert {"input_margin.low", "logit_margin.low"} & {*found} == {"input_margin.low"}


def test_a_sample_is_even_over_rows_and_classes(run: Path) -> None:
    most = 600
    table, whole = read_table(run, most), read_table(run)
    rows, labels = table.points["row"].to_numpy(), table.points["label"].to_numpy()
    assert len(rows) == pytest.approx(most / 2, abs=3)
    assert np.histogram(rows, 10, (0, COUNT))[0] == pytest.approx(np.full(10, most / 20), abs=3)
    assert np.bincount(labels) == pytest.approx(np.full(4, most / 8), abs=3)
    assert (table.record.data.chosen_from, len(table.scores)) == (COUNT, 2 * len(rows))
    own, of_all = (one.frame(whole=True).set_index("point") for one in (table, whole))
    pd.testing.assert_frame_equal(own, of_all.loc[own.index], check_dtype=False)
    assert read_table(run, 2 * COUNT).points.equals(whole.points), "which is read as a whole"


def test_a_smaller_sample_lies_in_a_larger_one(run: Path) -> None:
    """So that two runs of which the scores differ have points in common."""
    few, many = ({*read_table(run, most).points["point"].to_pylist()} for most in (200, 1000))
    assert few < many


def test_screen_and_page_say_that_they_speak_of_a_sample(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("brittle.cli.runs.MOST_SHOWN", 600)
    assert common.MOST_SHOWN > 600
    assert main(["show", str(run)]) == 0
    assert "drawn at random out of 1,000" in capsys.readouterr().out
    assert main(["report", str(run), "--out", str(tmp_path / "page.html")]) == 0
    assert "drawn at random out of 1,000" in (tmp_path / "page.html").read_text()
    assert main(["show", str(run), "--top", "1000", "--json"]) == 0
    assert capsys.readouterr().out.count('"point"') == COUNT, "a list is of all"
