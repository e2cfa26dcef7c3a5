"""Parts of a run, joined, are the run; later runs add to a first one."""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from checks.faults import contents
from helpers.damaged import parquet_bytes, signed
from helpers.problems import inputs, small_classifier
from helpers.processes import some_kills
from helpers.resumed import SHARD, run

import brittle
from brittle.cli.commands import main
from brittle.data import array_points, choose_points
from brittle.errors import BrittleError
from brittle.extensions.workers.join import join
from brittle.scores import LogitMargin, MaxProbability, Moments, MonteCarlo, Score, Shrinkage
from brittle.store.reading import verify

COUNT = 60
"""Points: eight shards of the size below, the last not full."""


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brittle.run.job.SHARD", SHARD)


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("whole") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("brittle.run.job.SHARD", SHARD)
        run(place, count=COUNT)
    return place


@cache
def scored_parts(count: int) -> list[dict[str, bytes]]:
    """Return the files of each part of a run."""
    parts = []
    for number in range(1, count + 1):
        with TemporaryDirectory() as place:
            run(Path(place), count=COUNT, part=(number, count))
            parts.append({path.name: path.read_bytes() for path in Path(place).iterdir()})
    return parts


def parts_of(folder: Path, count: int) -> list[Path]:
    """Write the parts of a run, which are scored once."""
    places = [folder / f"part-{number}" for number in range(1, count + 1)]
    for place, files in zip(places, scored_parts(count), strict=True):
        place.mkdir()
        for name, content in files.items():
            (place / name).write_bytes(content)
    return places


@pytest.mark.parametrize("count", [1, 3, 9])
def test_parts_joined_are_the_run(count: int, whole_run: Path, tmp_path: Path) -> None:
    """Parts join in any order; the last of nine has no shard. The warnings of the record are those of all points."""
    places = parts_of(tmp_path, count)
    random.Random(0).shuffle(places)
    record = join(tmp_path / "run", places)
    assert contents(tmp_path / "run") == contents(whole_run)
    stored, expected = (brittle.read_table(place).record for place in (tmp_path / "run", whole_run))
    assert record == stored
    assert (stored.account, stored.warnings, stored.part) == (expected.account, expected.warnings, None)
    assert verify(tmp_path / "run") == []
    model = small_classifier()
    run(tmp_path / "run", count=COUNT, model=model)
    assert model.passes == 0


def test_parts_that_were_killed_and_begun_again_are_the_run() -> None:
    """Three parts, two of them killed at random; `make test-faults` does it with eight parts, too."""
    _, (counts,) = some_kills("parts", 6, 3)
    assert counts["kills"] == 2
    assert {name for name, count in counts.items() if count} == {"kills"}, counts


def test_a_join_that_died_leaves_no_run_and_is_begun_again(
    whole_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = parts_of(tmp_path, 2)
    real, remaining_syncs = os.fsync, [9]

    def fsync(file: int) -> None:
        remaining_syncs[0] -= 1
        if remaining_syncs[0] < 0:
            raise KeyboardInterrupt
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(KeyboardInterrupt):
        join(tmp_path / "run", places)
    monkeypatch.setattr(os, "fsync", real)
    assert not (tmp_path / "run" / "run.json").exists()
    join(tmp_path / "run", places)
    assert contents(tmp_path / "run") == contents(whole_run)
    with pytest.raises(BrittleError) as caught:
        join(tmp_path / "run", places)
    assert caught.value.code == "exists"


CHOICES: dict[str, tuple[Callable[[list[Path]], list[Path]], str, str]] = {
    "missing": (lambda parts: parts[:2], "usage", "3/3"),
    "twice": (lambda parts: [*parts, parts[0]], "usage", "1/3"),
    "none": (lambda parts: [], "usage", "two folders"),
    "no run": (lambda parts: [*parts, parts[0].parent], "no_run", "run.json"),
}


def test_parts_that_are_not_all_there_once_are_named(tmp_path: Path) -> None:
    parts = parts_of(tmp_path, 3)
    for choose, code, message in CHOICES.values():
        with pytest.raises(BrittleError, match=message) as caught:
            join(tmp_path / "run", choose(parts))
        assert caught.value.code == code
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("file", "changes", "code"),
    [
        ("run.json", {"finished": None}, "run_damaged"),
        ("manifest.json", {"shards": []}, "run_damaged"),
        ("scores-00001.parquet", None, "shard_damaged"),
    ],
)
def test_a_part_that_is_not_whole_is_named(
    file: str, changes: dict[str, Any] | None, code: str, tmp_path: Path
) -> None:
    """The part has not finished, lacks shards, or is damaged."""
    places = parts_of(tmp_path, 2)
    path = places[1] / file
    path.write_text("half" if changes is None else json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(BrittleError, match="part-2") as caught:
        join(tmp_path / "run", places)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ({"seed": 1}, "other_run", "seed 0 .* 1 "),
        ({"scores": [Moments(0.2, draws=4)]}, "other_run", "sigma=0.2"),
        ({"part": (2, 4)}, "usage", "2/4"),
        ({"part": None}, "usage", "whole"),
    ],
)
def test_parts_of_different_runs_are_refused_by_the_field(
    options: dict[str, Any], code: str, message: str, tmp_path: Path
) -> None:
    first_part = parts_of(tmp_path, 2)[0]
    run(tmp_path / "other", **{"count": COUNT, "part": (2, 2), **options})
    with pytest.raises(BrittleError, match=message) as caught:
        join(tmp_path / "run", [first_part, tmp_path / "other"])
    assert caught.value.code == code


def scored(place: Path, scores: list[Score], ids: list[str] | None = None, seed: int = 0, **options: Any) -> Any:
    points = array_points(inputs(COUNT), [number % 4 for number in range(COUNT)])
    points = points if ids is None else choose_points(points, ids)
    return brittle.score(small_classifier(), points, scores, out=place, seed=seed, **{"skip_doctor": True, **options})


ROUNDED = ["value", "low", "high"]
"""Cells that read margins, which another batch rounds otherwise."""


@pytest.mark.every_other
@pytest.mark.parametrize(("draws", "more"), [(60, 100), (72, 600)])
@pytest.mark.parametrize("kind", [MonteCarlo, Shrinkage], ids=lambda kind: kind.name)
def test_a_run_grows_by_a_later_one_over_its_open_points(
    kind: type[MonteCarlo | Shrinkage], draws: int, more: int, tmp_path: Path
) -> None:
    """The grown run equals a run with as many draws from the start, though mirror images may have cost more passes.

    The first run ends at a look that the longer one takes, too.
    """
    first_table = scored(tmp_path / "first", [kind(0.3, draws=draws), LogitMargin()])
    (stopped,) = (column for column in first_table.columns if column.limit is not None)
    ids = [str(point) for point, state in stopped.states(0.9).items() if state == "undecided"]
    assert 0 < len(ids) < COUNT
    later = scored(tmp_path / "later", [kind(0.3, draws=more)], ids)
    join(tmp_path / "grown", [tmp_path / "first", tmp_path / "later"])
    grown = brittle.read_table(tmp_path / "grown")
    assert verify(tmp_path / "grown") == []
    (column,) = (column for column in grown.columns if column.limit is not None)
    assert column.most_draws == more
    at_once = scored(tmp_path / "at once", [kind(0.3, draws=more), LogitMargin()])
    assert grown.scores.drop_columns(ROUNDED).equals(at_once.scores.drop_columns(ROUNDED))
    for name in ROUNDED[kind is MonteCarlo :]:  # a count's bias bound depends on all that its stopping rule could see
        assert grown.scores[name].to_pylist() == pytest.approx(at_once.scores[name].to_pylist(), abs=1e-6)
    assert grown.record.account.passes == first_table.record.account.passes + later.record.account.passes
    assert grown["logit_margin"].value.tolist() == first_table["logit_margin"].value.tolist()
    with pytest.raises(BrittleError) as caught:
        join(tmp_path / "other", [tmp_path / "later", tmp_path / "first"])
    assert caught.value.code == "usage"


def test_a_shorter_count_takes_no_longer_ones_place(tmp_path: Path) -> None:
    runs = {"first": (None, 200), "shorter": (["3", "4", "5"], 80), "longer": (["4", "5"], 400)}
    for name, (ids, draws) in runs.items():
        scored(tmp_path / name, [Shrinkage(0.3, draws=draws)], ids)
    orders = (["first", "longer"], ["first", "shorter", "longer"], ["first", "longer", "shorter"])
    for number, order in enumerate(orders):
        join(tmp_path / str(number), [tmp_path / name for name in order])
    expected, *shuffled = (brittle.read_table(tmp_path / str(number)).scores for number in range(len(orders)))
    for scores in shuffled:
        assert scores.drop_columns(ROUNDED).equals(expected.drop_columns(ROUNDED))
        for name in ROUNDED:
            assert scores[name].to_pylist() == pytest.approx(expected[name].to_pylist(), abs=1e-6)


def test_a_later_run_over_all_points_adds_scores(tmp_path: Path) -> None:
    at_once = scored(tmp_path / "both", [LogitMargin(), Moments(0.1, draws=4)])
    scored(tmp_path / "first", [LogitMargin()])
    scored(tmp_path / "later", [Moments(0.1, draws=4)])
    join(tmp_path / "grown", [tmp_path / "first", tmp_path / "later"])
    assert brittle.read_table(tmp_path / "grown").scores.equals(at_once.scores)
    scored(tmp_path / "some", [Moments(0.2, draws=4)], ["3", "4"])
    with pytest.raises(BrittleError, match=r"sigma=0\.2.* of point 0") as caught:
        join(tmp_path / "run", [tmp_path / "first", tmp_path / "some"])
    assert caught.value.code == "usage"
    scored(tmp_path / "seed", [LogitMargin()], ["3", "4"], seed=1)
    with pytest.raises(BrittleError, match="seed 0") as caught:
        join(tmp_path / "run", [tmp_path / "first", tmp_path / "seed"])
    assert caught.value.code == "other_run"


def test_later_runs_of_other_shards_add_scores(tmp_path: Path) -> None:
    """A shard of a sample holds points of several shards of the first run."""
    at_once = scored(tmp_path / "both", [LogitMargin(), MaxProbability()])
    scored(tmp_path / "first", [LogitMargin(), MaxProbability()], skip_doctor=False)
    even_ids = [str(number) for number in range(0, COUNT, 2)]
    for name, ids in (("even", even_ids), ("all", None)):
        scored(tmp_path / name, [LogitMargin()], ids, skip_doctor=False)
    counts = [len(list((tmp_path / name).glob("points-*"))) for name in ("first", "even")]
    assert counts[0] > counts[1] >= 1
    runs = [tmp_path / name for name in ("first", "even", "all")]
    grown = join(tmp_path / "grown", runs)
    table, accounts = brittle.read_table(tmp_path / "grown"), [brittle.read_table(run).record.account for run in runs]
    assert table.scores.equals(at_once.scores)
    assert grown.account.check_passes == sum(account.check_passes for account in accounts)
    passes = sum(account.passes for account in accounts)
    assert grown.account.passes == passes == sum(table.points["passes"].to_pylist())
    assert verify(tmp_path / "grown") == []
    with pytest.raises(BrittleError) as caught:
        join(tmp_path / "other", [tmp_path / "even", tmp_path / "first"])
    assert caught.value.code == "usage"


def test_failures_of_all_parts_together_stop_a_join(tmp_path: Path) -> None:
    """Fifteen of sixty points fail, at most ten in each part."""
    x = inputs(COUNT)
    x[::4, 0, 0, 0] = float("nan")
    places = [tmp_path / "part-1", tmp_path / "part-2"]
    for number, place in enumerate(places, 1):
        brittle.score(small_classifier(), x, [LogitMargin()], out=place, part=(number, 2))
    with pytest.raises(BrittleError) as caught:
        join(tmp_path / "run", places)
    assert caught.value.code == "too_many_failures"
    assert not (tmp_path / "run" / "run.json").exists()
    assert join(tmp_path / "other", places, most_failures=None).account.failed == 15


def test_parts_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(
        "import torch\n\n\ndef make():\n    torch.manual_seed(0)\n"
        "    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 4)).eval()\n"
    )
    np.savez("data.npz", x=inputs(COUNT).numpy(), y=np.arange(COUNT) % 4)
    line = ["score", "./net.py:make", "data.npz", "--scores", "logit_margin", "--quiet"]
    for number in (1, 2):
        words = [*line, "--out", f"part-{number}", "--part", f"{number}/2"]
        monkeypatch.setattr(sys, "argv", ["brittle", *words])
        assert main(words) == 0
    assert main(["show", "part-1"]) == 0
    assert capsys.readouterr().out.startswith("Part 1 of 2 of a run; ")
    assert main(["join", "run", "part-2", "part-1"]) == 0
    assert brittle.read_table("run").record.command == ("brittle", *line, "--out", "run")
    assert main([*line, "--out", "run", "--resume"]) == 0
    assert len(brittle.read_table("run").points) == COUNT
    assert main(["join", "other", "part-1"]) == 2
    assert main([*line, "--out", "empty", "--part", "9/9"]) == 0
    assert "part 9/9 has nothing to do" in capsys.readouterr().err
    assert main([*line, "--out", "none", "--part", "4/3"]) == 2
    assert main([*line, "--out", "none", "--part", "1/" + "9" * 5000]) == 2


def test_a_row_of_a_score_that_no_record_names_is_damage(tmp_path: Path) -> None:
    """The shard is signed anew, so that its digest is right."""
    scored(tmp_path / "first", [LogitMargin()])
    scored(tmp_path / "later", [Moments(0.1, draws=4)])
    table = brittle.read_table(tmp_path / "later").scores.slice(0, 32)
    names = pa.array(["foreign", *table["score"].to_pylist()[1:]], pa.string())
    name = min(path.name for path in (tmp_path / "later").glob("scores-*.parquet"))
    signed(tmp_path / "later", name, parquet_bytes(table.set_column(1, table.schema.field("score"), names)))
    with pytest.raises(BrittleError, match="foreign") as caught:
        join(tmp_path / "all", [tmp_path / "first", tmp_path / "later"])
    assert caught.value.code == "run_damaged"
