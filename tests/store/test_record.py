"""The record of a run comes back as it was written, and nothing else is one."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from helpers.tables import make_table

import brittle
from brittle.errors import StorageError
from brittle.store import record
from brittle.store.folder import RunFolder
from brittle.store.record import FORMAT, read_record
from brittle.store.schemas import COUNTEREXAMPLES, POINTS, SCORES


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    make_table(points=3).save(tmp_path / "run")
    return tmp_path / "run"


def changed(folder: Path, name: str, **changes: Any) -> None:
    content = json.loads((folder / name).read_text())
    (folder / name).write_text(json.dumps(content | changes))


def test_a_record_comes_back_as_it_was_written(saved: Path) -> None:
    assert read_record(saved / "run.json") == make_table(points=3).record


LAYOUTS = {1: "36944022cbc1e571"}
"""A digest of all that a run folder of a format holds."""


def test_another_layout_has_another_number() -> None:
    """A field more or less: raise `FORMAT` and put the new digest here, so that older folders are refused by name."""
    kinds = [kind for kind in vars(record).values() if isinstance(kind, type) and is_dataclass(kind)]
    names = sorted(f"{kind.__name__}.{one.name}: {one.type}" for kind in kinds for one in fields(kind))
    columns = [f"{one.name}: {one.type} {one.nullable}" for each in (POINTS, SCORES, COUNTEREXAMPLES) for one in each]
    assert LAYOUTS.get(FORMAT) == hashlib.sha256("\n".join(names + columns).encode()).hexdigest()[:16]


@pytest.mark.parametrize("found", [FORMAT - 1, FORMAT + 1, "5", None])
@pytest.mark.parametrize("name", ["run.json", "manifest.json"])
def test_a_run_of_another_format_is_refused_by_name(name: str, found: Any, saved: Path) -> None:
    changed(saved, name, format=found)
    for read in (brittle.read_table, lambda folder: RunFolder.open(folder).__enter__()):
        with pytest.raises(StorageError, match=rf"format {found!r}.* {FORMAT}") as caught:
            read(saved)
        assert caught.value.code == "run_damaged"


def test_no_field_may_be_missing(saved: Path) -> None:
    content = json.loads((saved / "run.json").read_text())
    for key in content:
        (saved / "run.json").write_text(json.dumps({name: value for name, value in content.items() if name != key}))
        with pytest.raises(StorageError, match=key) as caught:
            brittle.read_table(saved)
        assert caught.value.code == "run_damaged"


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"notes": []}, "notes"),
        ({"seed": 0.5}, "seed"),
        ({"seed": -1}, "seed"),
        ({"confidence": None}, "confidence"),
        ({"confidence": 1.0}, "confidence"),
        ({"part": [0, 3]}, "part"),
        ({"machine": {}}, "device"),
        ({"account": {"points": 1}}, "account lacks"),
        ({"scores": [{"label": "a"}]}, "scores"),
    ],
    ids=str,
)
def test_what_is_no_record_is_refused_with_its_place(changes: dict[str, Any], place: str, saved: Path) -> None:
    changed(saved, "run.json", **changes)
    with pytest.raises(StorageError, match=rf"run\.json.*{place}") as caught:
        brittle.read_table(saved)
    assert caught.value.code == "run_damaged"


def test_bounds_must_increase_and_a_direction_is_one_of_two(saved: Path) -> None:
    content = json.loads((saved / "run.json").read_text())
    for part, key, value in ((content["model"], "bounds", [1.0, 0.0]), (content["scores"][0], "safer", "upwards")):
        kept, part[key] = part[key], value
        (saved / "run.json").write_text(json.dumps(content))
        with pytest.raises(StorageError, match=r"model|safer"):
            brittle.read_table(saved)
        part[key] = kept
