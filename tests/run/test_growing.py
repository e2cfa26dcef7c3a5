"""A finished run that grows is the run that it would have been from the first; what it held is not computed again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from checks.faults import contents
from helpers.killed import some_kills
from helpers.problems import Wrapped, inputs, small_network
from helpers.resumed import SHARD
from torch import Tensor

import brittle
from brittle.errors import ModelError, StorageError
from brittle.run.growing import grow
from brittle.scores import LogitMargin, Moments, MonteCarlo, Score
from brittle.store.folder import RunFolder
from brittle.store.reading import verify

COUNT, SIGMA = 20, 0.5
SCORES = [Moments(SIGMA, draws=4), LogitMargin()]


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brittle.run.job.SHARD", SHARD)


def odd(x: Tensor, logits: Tensor) -> Tensor:
    """Ties where the first coordinate is large, NaN where the last is very large: in some noisy copies alone."""
    tied = torch.where((x[:, 0, 0, 0] > 1.4)[:, None], 0.0, logits)
    return torch.where((x[:, 0, 5, 5] > 2.2)[:, None], torch.nan, tied)


def data() -> tuple[Tensor, Tensor]:
    """Points, one of which holds NaN and one a label that is no class."""
    x, y = inputs(COUNT), torch.arange(COUNT) % 4
    x[3, 0, 2, 2], y[12] = torch.nan, 7
    return x, y


def run(
    out: Path, scores: list[Score] = SCORES, model: brittle.Classifier | None = None, **options: Any
) -> brittle.Table:
    model = model or brittle.Classifier(Wrapped(odd))
    chosen: dict[str, Any] = {"skip_doctor": True} | options
    return brittle.score(model, data(), scores, out=out, resume=True, **chosen)


def check_same(found: brittle.Table, expected: brittle.Table) -> None:
    assert found.scores.equals(expected.scores)
    assert found.points.equals(expected.points)
    assert found.record.scores == expected.record.scores
    one, other = (table.record.account for table in (found, expected))
    assert (one.passes, one.failed, one.correct, one.points) == (other.passes, other.failed, other.correct, COUNT)


@pytest.mark.parametrize(
    ("first", "rule"),
    [(32, {"until": "decided", "limit": 0.9}), (50, {"until": "decided", "limit": 0.9})],
    ids=["from a look", "from between two"],
)
def test_more_draws_give_the_table_of_a_run_with_as_many_from_the_first(
    first: int, rule: dict[str, Any], tmp_path: Path
) -> None:
    expected = run(tmp_path / "fresh", most_draws=200, **rule)
    few = run(tmp_path / "run", most_draws=first, **rule)
    found = run(tmp_path / "run", most_draws=200, **rule)
    check_same(found, expected)
    label = found.record.scores[-1].label
    assert {"noisy_ties", "nonfinite_logits", "ok"} <= {*found[label].status}
    assert verify(tmp_path / "run") == []
    assert len(few.scores) == len(found.scores)


def test_only_open_points_are_drawn_and_only_from_where_they_stopped(tmp_path: Path) -> None:
    """Beyond the new draws there are the examination, the checks, and the clean passes of the batches once more."""
    rule = {"until": "decided", "limit": 0.9}
    plain = [brittle.Classifier(small_network()) for _ in range(3)]
    few = run(tmp_path / "run", model=plain[0], most_draws=200, **rule).record
    examination = plain[0].passes - few.account.passes - few.account.check_passes
    again = run(tmp_path / "run", model=plain[1], most_draws=500, **rule).record
    drawn, checks = (getattr(again.account, name) - getattr(few.account, name) for name in ("passes", "check_passes"))
    assert plain[1].passes == examination + drawn + checks
    assert drawn > 4 * (checks - COUNT)
    assert checks <= 2 * few.account.check_passes + COUNT
    assert run(tmp_path / "run", model=plain[2], most_draws=500, **rule).record == again
    assert plain[2].passes == 0


def test_another_question_is_another_column_and_nothing_else_is_computed(tmp_path: Path) -> None:
    stopped = [MonteCarlo(SIGMA, draws=100, limit=limit) for limit in (0.9, 0.8)]
    expected = run(tmp_path / "fresh", [*SCORES, *stopped])
    run(tmp_path / "run")
    for limit in (0.9, 0.8):
        found = run(tmp_path / "run", until="decided", limit=limit, most_draws=100)
    check_same(found, expected)
    names = {path.name: path for path in (tmp_path / "run").glob("*.parquet")}
    assert all(
        names[f"{stem}-2.parquet"].read_bytes() == (tmp_path / "fresh" / f"{stem}.parquet").read_bytes()
        for stem in ("scores-00000", "points-00002")
    )


def test_a_run_that_grows_is_what_it_was_until_it_has_grown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = {"until": "decided", "limit": 0.9}
    expected = run(tmp_path / "fresh", most_draws=200, **rule)
    before = run(tmp_path / "run", most_draws=40, **rule)
    grown: list[int] = []

    def stops(*arguments: Any) -> Any:
        if len(grown) == 2:
            raise KeyboardInterrupt
        grown.append(arguments[2])
        return grow(*arguments)

    monkeypatch.setattr("brittle.run.scoring.grow", stops)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", most_draws=200, **rule)
    between = brittle.read_table(tmp_path / "run")
    assert between.record == before.record
    assert between.scores.equals(before.scores)
    assert all(fault.stray for fault in verify(tmp_path / "run"))
    grown.clear()
    check_same(run(tmp_path / "run", most_draws=200, **rule), expected)
    assert grown == [2]


def test_kills_lose_nothing() -> None:
    """Some of the kills that `make test-faults` makes all of: between the files of a shard, and at the end."""
    whole, (seen,) = some_kills("grow", 2, 0, 9, 13, -5)
    assert whole > 40
    assert seen["kills"] == 3
    assert {name for name, count in seen.items() if count} == {"kills"}, seen


def test_another_model_of_the_same_description_is_noticed(tmp_path: Path) -> None:
    """A function has no digest; its predictions are compared."""
    models = [small_network(seed) for seed in (0, 1)]
    functions = [brittle.Classifier(lambda x, model=model: model(x)) for model in models]
    run(tmp_path / "run", model=functions[0], until="decided", limit=0.9, most_draws=30)
    kept = contents(tmp_path / "run")
    with pytest.raises(ModelError, match="was predicted as class"):
        run(tmp_path / "run", model=functions[1], until="decided", limit=0.9, most_draws=300)
    assert contents(tmp_path / "run") == kept


def test_a_shard_without_its_rows_is_named(tmp_path: Path) -> None:
    run(tmp_path / "run", [LogitMargin(), Moments(SIGMA, draws=4)])
    with RunFolder.open(tmp_path / "run") as folder:
        tables = folder.tables(1)
        folder.replace(1, tables["points"], tables["scores"].slice(1), folder.shards[1].account)
    with pytest.raises(StorageError, match="shard 1 lacks rows"):
        run(tmp_path / "run", [LogitMargin(), Moments(SIGMA, draws=4)], precision=0.2, most_draws=20)
