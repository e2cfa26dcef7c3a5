"""Identity of a run: every field is compared but those on a list, and differences are named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from checks.faults import contents
from helpers.problems import inputs, small_network
from helpers.resumed import classifier, run
from helpers.tables import make_table, score_record

import brittle
from brittle.data import open_points
from brittle.errors import ParameterError, ResumeError
from brittle.model.loading.load import load_model
from brittle.run import execute, make_job
from brittle.run.record import describe
from brittle.scores import LogitMargin, Moments, Softmax
from brittle.store.folder import RunFolder
from brittle.store.record import UNDECISIVE, differences
from brittle.store.strict_json import plain

CHANGES: dict[str, Callable[[], dict[str, Any]]] = {
    "seed": lambda: {"seed": 1},
    "scores": lambda: {"scores": [Moments(0.2, draws=4)]},
    "model.state_sha256": lambda: {"model": brittle.Classifier(small_network(seed=1), bounds=(0, 1))},
    "model.std": lambda: {"model": classifier(std=0.5)},
    "data.sha256": lambda: {"data_seed": 1},
    "part": lambda: {"part": (1, 2)},
}


@pytest.mark.parametrize("name", CHANGES)
def test_another_experiment_is_refused_by_name(name: str, tmp_path: Path) -> None:
    run(tmp_path / "run")
    before = contents(tmp_path / "run")
    with pytest.raises(ResumeError, match=rf"{name}\b") as caught:
        run(tmp_path / "run", **CHANGES[name]())
    assert (caught.value.code, caught.value.exit_code) == ("other_run", 5)
    assert contents(tmp_path / "run") == before


RECORD = make_table(points=2).record
SIDES = ("there", "now")


def places(record: Any, prefix: str = "") -> Iterator[str]:
    """Yield the dotted names of the fields of a record; the account is one field."""
    for field in fields(record):
        value = getattr(record, field.name)
        if is_dataclass(value) and field.name != "account":
            yield from places(value, f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}"


def replace_field(record: Any, place: str, value: Any) -> Any:
    """`record` with the field of a dotted name set to `value`."""
    name, _, subfields = place.partition(".")
    return replace(record, **{name: replace_field(getattr(record, name), subfields, value) if subfields else value})


PLACES = tuple(places(RECORD))


def test_every_field_is_compared_but_those_on_the_list() -> None:
    """Change each field alone: a field that is not compared would let rows of another experiment into a run."""
    for name in {*PLACES} - {"scores", "account", "warnings"}:
        texts = [("0", "9"), ("1", "8")] if name == "model.bounds" else ["old", "new"]
        old, new = (replace_field(RECORD, name, text) for text in texts)
        assert differences(old, replace_field(RECORD, name, texts[0]), SIDES) == []
        changes = differences(old, new, SIDES)
        assert [change.split()[0] for change in changes] == ([] if name in UNDECISIVE else [name])


def test_the_list_names_existing_fields() -> None:
    of_scores = {f"scores.{field.name}" for field in fields(RECORD.scores[0])}
    of_reading = {f"data.reading.{name}" for name in ("tokenizer", "cut_texts", "index")}
    assert {*PLACES, "versions.python"} | of_reading | of_scores >= UNDECISIVE


@pytest.mark.parametrize(
    ("old", "new", "message"), [("ab", "bc", "c only now"), ("", "c", "c only now"), ("ab", "ba", "b, a now")]
)
def test_other_scores_are_named(old: str, new: str, message: str) -> None:
    before, after = (replace(RECORD, scores=tuple(score_record(name, {}) for name in names)) for names in (old, new))
    assert message in "; ".join(differences(before, after, SIDES))


@pytest.mark.parametrize("name", sorted(field.name for field in fields(RECORD.scores[0])))
def test_scores_are_compared_by_their_computation_only(name: str) -> None:
    before, after = (
        replace(RECORD, scores=(replace(score_record("a", {}), **{name: text}),))  # type: ignore[arg-type]
        for text in ("x", "y")
    )
    assert bool(differences(before, after, SIDES)) == (f"scores.{name}" not in UNDECISIVE)


def test_changed_code_outside_the_file_is_named() -> None:
    codes = {"mine.py": "a1", "same.py": "c3"}, {"mine.py": "b2", "same.py": "c3"}
    before, after = (
        replace(RECORD, scores=tuple(score_record(name, {}, code=code) for name in "pq")) for code in codes
    )
    assert differences(before, after, SIDES) == ["scores.code.mine.py a1 there, b2 now"]


def test_the_facts_of_every_reader_and_loader_are_recorded(tmp_path: Path) -> None:
    """Any new fact of a data format or of a model must be a field of its record, or no run of it can begin."""
    from helpers.data_files import LABELS, LEVELS, READERS

    (tmp_path / "net.py").write_text("import torch\n\n\ndef make():\n    return torch.nn.Flatten()\n")
    models = [brittle.Classifier(torch.nn.Flatten(), source=load_model(f"{tmp_path / 'net.py'}:make").provenance)]
    program = torch.export.export(
        small_network(), (inputs(2),), dynamic_shapes=({0: torch.export.Dim("batch")},), strict=False
    )
    torch.export.save(program, tmp_path / "net.pt2")
    loaded = load_model(tmp_path / "net.pt2")
    models += [brittle.Classifier(loaded.module, source=loaded.provenance), classifier()]
    for place, reader in enumerate(READERS):
        folder = tmp_path / str(place)
        folder.mkdir()
        for model in models:
            job = make_job(model, reader(folder, LEVELS, LABELS), [Softmax()], 0, 2, 0.9)
            record, provenance = describe(job), job.points.provenance
            data = plain(record.data)
            assert {name: (data | data["reading"])[name] for name in provenance} == provenance
            assert {name: plain(record.model)[name] for name in model.source} == model.source


def test_a_fact_without_a_field_is_refused() -> None:
    model = brittle.Classifier(small_network(), source={"colour": "red"})
    with pytest.raises(ParameterError, match="colour"):
        brittle.score(model, inputs(3), [LogitMargin()])


def test_a_run_of_a_moved_data_set_is_the_same_run(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        np.savez(tmp_path / name / "data.npz", x=inputs(20).numpy())
        job = make_job(classifier(), open_points(tmp_path / name / "data.npz"), [LogitMargin()], 0, None, 0.99)
        execute(job, RunFolder(tmp_path / "run"))
    assert len(brittle.read_table(tmp_path / "run").points) == 20
