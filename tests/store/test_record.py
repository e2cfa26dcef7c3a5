"""The record of a run comes back as it was written, nothing else is one, and the accounts of shards add up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.tables import make_table

import brittle
from brittle.errors import StorageError
from brittle.store.folder import RunFolder
from brittle.store.record import FAILURES_KEPT, Account, RunRecord, read_object


@pytest.fixture
def run(tmp_path: Path) -> Path:
    make_table(points=3).save(tmp_path / "run")
    return tmp_path / "run"


def test_a_record_comes_back_as_it_was_written(run: Path) -> None:
    assert read_object(run / "run.json", RunRecord) == make_table(points=3).record


@pytest.mark.parametrize("name", ["run.json", "manifest.json"])
def test_a_run_of_another_format_is_refused_by_name(name: str, run: Path) -> None:
    content = json.loads((run / name).read_text())
    (run / name).write_text(json.dumps(content | {"format": 2}))
    for read in (brittle.read_table, lambda folder: RunFolder(folder).open().__enter__()):
        with pytest.raises(StorageError, match=rf"{name} .*2.*format") as caught:
            read(run)
        assert caught.value.code == "run_damaged"


def test_no_field_may_be_missing(run: Path) -> None:
    content = json.loads((run / "run.json").read_text())
    for key in content:
        (run / "run.json").write_text(json.dumps({name: value for name, value in content.items() if name != key}))
        with pytest.raises(StorageError, match=key) as caught:
            brittle.read_table(run)
        assert caught.value.code == "run_damaged"


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"notes": []}, "notes"),
        ({"seed": 0.5}, "seed"),
        ({"seed": -1}, "seed"),
        ({"confidence": 1.0}, "confidence"),
        ({"part": [0, 3]}, "part"),
        ({"machine": {}}, "device"),
        ({"model": None}, "model"),
        ({"account": {"points": 1}}, "account lacks"),
        ({"scores": [{"score": "moments"}]}, "scores"),
        ({"warnings": [{"code": 1}]}, "warnings"),
        ({"model": {"bounds": [1.0, 0.0]}}, "model"),
        ({"scores": {"safer": "upwards"}}, "safer"),
    ],
    ids=str,
)
def test_an_invalid_record_is_refused_with_its_place(changes: dict[str, Any], place: str, run: Path) -> None:
    content = json.loads((run / "run.json").read_text())
    for key, value in changes.items():
        if key == "scores" and isinstance(value, dict):
            value = [content[key][0] | value]
        content[key] = content[key] | value if key == "model" and value else value
    (run / "run.json").write_text(json.dumps(content))
    with pytest.raises(StorageError, match=rf"run\.json.*{place}") as caught:
        brittle.read_table(run)
    assert caught.value.code == "run_damaged"


@pytest.mark.parametrize(("before", "after"), [("[", "]"), ('{"a":', "}")])
@pytest.mark.parametrize("levels", [200, 500, 700, 900, 990, 5000])
def test_a_record_may_be_nested_however_deep(before: str, after: str, levels: int, run: Path) -> None:
    """Nest a field of free content: neither reading nor comparing it overflows the stack."""
    content = json.loads((run / "run.json").read_text())
    content["data"]["reading"] = {"layout": "NESTED"}
    nested = f"{before * levels}1{after * levels}"
    (run / "run.json").write_text(json.dumps(content).replace('"NESTED"', nested))
    for read in (brittle.read_table, lambda folder: RunFolder(folder).open().__enter__()):
        with pytest.raises(StorageError) as caught:
            read(run)
        assert caught.value.code == "run_damaged"


def test_accounts_add_up_in_any_grouping() -> None:
    a, b, c, d = (
        Account(points=3, failed=1, failed_early=1, labelled=3, correct=2, passes=30, failures=("a",)),
        Account(points=5, check_passes=7),
        Account(points=2, failed=2, passes=4, failures=("b", "c")),
        Account(points=1, failed=1, failures=("d",)),
    )
    total = ((a + b) + c) + d
    assert total == a + (b + (c + d)) == total + Account()
    assert (total.points, total.failed, total.failures) == (11, 4, ("a", "b", "c"))
    assert len(total.failures) == FAILURES_KEPT


def test_every_point_of_a_table_is_counted_once() -> None:
    table = make_table(points=30, scores=("moments", "logit_margin"))
    account = Account.of(table.points, table.scores, 77, check_passes=5)
    missing = {row["point"] for row in table.scores.to_pylist() if row["value"] is None}
    assert (account.points, account.failed, account.failed_early) == (30, len(missing), len(missing))
    assert (account.passes, account.check_passes) == (77, 5)
