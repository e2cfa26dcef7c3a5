"""What makes it the same run: every field is compared, and a difference is named."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from checks.faults import contents
from helpers.problems import inputs, small_network
from helpers.resumed import classifier, run

import brittle
from brittle.data import open_points
from brittle.errors import ResumeError
from brittle.model.loading.load import load_model
from brittle.run import execute, identity, make_job
from brittle.run.record import describe
from brittle.scores import LogitMargin, Moments, Softmax
from brittle.store.account import Account


def other_weights() -> brittle.Classifier:
    return brittle.Classifier(small_network(seed=1), bounds=(0, 1))


CHANGES: dict[str, Callable[[], dict[str, Any]]] = {
    "seed": lambda: {"seed": 1},
    "confidence": lambda: {"confidence": 0.9},
    "batch_size": lambda: {"batch_size": 7},
    "scores": lambda: {"scores": [Moments(0.2, draws=4)]},
    "model.state_sha256": lambda: {"model": other_weights()},
    "model.bounds": lambda: {"model": classifier(bounds=(-1, 1))},
    "model.mean": lambda: {"model": classifier(mean=0.5)},
    "model.std": lambda: {"model": classifier(std=0.5)},
    "model.head": lambda: {"model": classifier(head="5")},
    "model.dtype": lambda: {"model": brittle.Classifier(small_network().double())},
    "data.points": lambda: {"count": 21},
    "data.sha256": lambda: {"first": 1},
}


@pytest.mark.parametrize("name", CHANGES)
def test_another_experiment_is_refused_by_name(name: str, tmp_path: Path) -> None:
    run(tmp_path / "run")
    before = contents(tmp_path / "run")
    with pytest.raises(ResumeError) as caught:
        run(tmp_path / "run", **CHANGES[name]())
    assert caught.value.exit_code == 5
    assert f"{name} " in str(caught.value)
    assert contents(tmp_path / "run") == before


@pytest.mark.parametrize("name", sorted(identity.IDENTITY))
def test_every_field_of_the_identity_is_compared(name: str) -> None:
    """Each field changed alone is refused, and named with both values."""
    room, _, key = name.partition(".")
    record = {room: {key: "old", "other": 1} if key else "old"}
    changed = {room: {key: "new", "other": 1} if key else "new"}
    with pytest.raises(ResumeError, match=rf"{name} old there, new now"):
        identity.check_same(record, changed, "run")
    identity.check_same(record, dict(record), "run")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ([0.5, 0.4, 0.5], [0.5, 0.5, 0.5], "[0.5, 0.4, 0.5] there, [0.5, 0.5, 0.5] now"),
        ([{"label": "a"}, {"label": "b"}], [{"label": "b"}, {"label": "c"}], "a only there, c only now"),
        ([{"label": str(draws)} for draws in range(5)], [], "4, 3, 2 and 2 more only there, nothing only now"),
        ([{"label": "a", "k": 1}], [{"label": "a", "k": 2}], "[{'label': 'a', 'k': 1}] there"),
        ("0" * 100 + "1", "0" * 100 + "2", f"…{'0' * 20}1 there, …{'0' * 20}2 now"),
        ("1" + "0" * 100, "2" + "0" * 100, f"1{'0' * 59}… there, 2{'0' * 59}… now"),
    ],
)
def test_how_a_difference_is_told(old: Any, new: Any, said: str) -> None:
    with pytest.raises(ResumeError, match=re.escape(f": scores {said}")):
        identity.check_same({"scores": old}, {"scores": new}, "run")


@pytest.mark.parametrize("name", sorted(identity.RUN_TIME))
def test_no_field_of_the_run_time_is(name: str) -> None:
    room, _, key = name.partition(".")
    identity.check_same({room: {key: 1} if key else 1}, {room: {key: 2} if key else 2}, "run")


def test_nothing_else_is_left_out_of_the_identity() -> None:
    """A field that is not compared lets rows of another experiment into a run, so whoever adds one says it twice."""
    expected = {
        *("command", "doctor", "created", "finished", "seconds", "passes", "failed_points", "warnings"),
        *(f"account.{field.name}" for field in dataclasses.fields(Account)),
        *("model.file", "model.runs_code", "model.written_by_torch", "model.classes", "model.taken", "model.weights"),
        *("data.path", "data.files", "data.other_files", "data.input_shape"),
        *("versions.python", "machine.threads", "machine.platform"),
    }
    assert expected == identity.RUN_TIME


def test_every_field_of_a_record_is_classed(tmp_path: Path) -> None:
    """A new field of a run's record, of a data format's or of a model's must be put on one of the two lists."""
    from helpers.data_files import LABELS, LEVELS, READERS

    (tmp_path / "net.py").write_text("import torch\n\n\ndef make():\n    return torch.nn.Flatten()\n")
    models = [brittle.Classifier(torch.nn.Flatten(), source=load_model(f"{tmp_path / 'net.py'}:make").provenance)]
    program = torch.export.export(
        small_network(), (inputs(2),), dynamic_shapes=({0: torch.export.Dim("batch")},), strict=False
    )
    torch.export.save(program, tmp_path / "net.pt2")
    loaded = load_model(tmp_path / "net.pt2")
    models += [brittle.Classifier(loaded.module, source=loaded.provenance), classifier()]
    seen = set()
    for place, reader in enumerate(READERS):
        folder = tmp_path / str(place)
        folder.mkdir()
        for model in models:
            job = make_job(model, reader(folder, LEVELS, LABELS), [Softmax()], 0, 2, 0.9)
            seen |= {name for name, _ in identity.fields(describe(job, None))}
    seen |= {name for name, _ in identity.fields(run(tmp_path / "run").provenance)}
    assert seen <= identity.IDENTITY | identity.RUN_TIME, seen - identity.IDENTITY - identity.RUN_TIME
    assert not identity.IDENTITY & identity.RUN_TIME
    assert seen >= identity.IDENTITY, identity.IDENTITY - seen


def test_a_run_of_a_moved_data_set_is_the_same_run(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        np.savez(tmp_path / name / "data.npz", x=inputs(20).numpy())
    for name in ("one", "two"):
        job = make_job(classifier(), open_points(tmp_path / name / "data.npz"), [LogitMargin()], 0, None, 0.99)
        execute(job, tmp_path / "run")
    assert len(brittle.read_table(tmp_path / "run").points) == 20
