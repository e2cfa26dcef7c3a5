"""What makes it the same run: every field is compared, and a difference is named."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, is_dataclass, replace
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
from brittle.run import execute, identity, make_job
from brittle.run.record import describe, describe_score
from brittle.scores import LogitMargin, Moments, MonteCarlo, Score, Softmax
from brittle.store.record import plain
from brittle.store.same_run import SAME, checked


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


RECORD = make_table(points=2).record
OTHER_FIELDS = {
    *("command", "doctor", "created", "finished", "seconds", "account", "warnings"),
    *("model.file", "model.runs_code", "model.written_by_torch", "model.classes", "model.taken", "model.weights"),
    *("data.path", "data.files", "data.other_files", "data.input_shape", "data.labels", "data.decided_names"),
    *("data.tokenizer", "data.cut_texts"),
    *("versions.python", "machine.threads", "machine.platform"),
}
"""Fields that make no run another one. One that is not compared lets rows of another experiment into a run, so whoever
adds one says it here, too."""


def places(record: Any, inside: str = "") -> Iterator[str]:
    """The dotted names of the fields of a record; the account is one."""
    for one in fields(record):
        value = getattr(record, one.name)
        if is_dataclass(value) and one.name != "account":
            yield from places(value, f"{inside}{one.name}.")
        else:
            yield f"{inside}{one.name}"


def changed(record: Any, place: str, value: Any) -> Any:
    """`record` with the field of a dotted name set to `value`."""
    name, _, rest = place.partition(".")
    return replace(record, **{name: changed(getattr(record, name), rest, value) if rest else value})


PLACES = tuple(places(RECORD))


@pytest.mark.parametrize("name", sorted({*PLACES} - OTHER_FIELDS - {"scores"}))
def test_every_field_of_the_identity_is_compared(name: str) -> None:
    """Each field changed alone is refused, and named with both values."""
    old, new = changed(RECORD, name, "old"), changed(RECORD, name, "new")
    with pytest.raises(ResumeError, match=rf"{name} old there, new now"):
        identity.check_same(old, new, "run")
    identity.check_same(old, changed(RECORD, name, "old"), "run")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ((0.5, 0.4, 0.5), (0.5, 0.5, 0.5), "[0.5, 0.4, 0.5] there, [0.5, 0.5, 0.5] now"),
        ("0" * 100 + "1", "0" * 100 + "2", f"…{'0' * 20}1 there, …{'0' * 20}2 now"),
        ("1" + "0" * 100, "2" + "0" * 100, f"1{'0' * 59}… there, 2{'0' * 59}… now"),
    ],
)
def test_how_a_difference_is_told(old: Any, new: Any, said: str) -> None:
    with pytest.raises(ResumeError, match=re.escape(f": model.mean {said}")):
        identity.check_same(changed(RECORD, "model.mean", old), changed(RECORD, "model.mean", new), "run")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("ab", "bc", "a only there, c only now"),
        ("01234", "", "4, 3, 2 and 2 more only there"),
        ("", "c", "c only now"),
    ],
)
def test_how_other_scores_are_told(old: str, new: str, said: str) -> None:
    one, other = (replace(RECORD, scores=tuple(score_record(name, {}) for name in names)) for names in (old, new))
    with pytest.raises(ResumeError, match=re.escape(f": scores {said}; repeat its command")):
        identity.check_same(one, other, "run")


A_FEW = [Moments(0.1, draws=6), Moments(0.1, draws=20)]
CLIPPED = [replace(score, clip=True) for score in A_FEW]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ([Moments(0.1)], [Moments(0.2)], "moments: sigma 0.1 there, 0.2 now"),
        (
            [Moments(0.1), Softmax()],
            [Moments(0.2, draws=6), Softmax()],
            "moments: sigma 0.1 there, 0.2 now; draws 100 ",
        ),
        (A_FEW, CLIPPED, "moments: clip nothing there, True now"),
        ([*A_FEW, MonteCarlo(0.1)], [*CLIPPED, MonteCarlo(0.1, clip=True)], "monte_carlo, moments: clip nothing there"),
        (
            [Moments(0.1, draws=6), Moments(0.2, draws=20)],
            [Moments(0.1, draws=20, clip=True), Moments(0.2, draws=6, clip=True)],
            "moments(draws=20, sigma=0.2), moments(draws=6, sigma=0.1) only there, moments(clip=True, draws=6, sigma",
        ),
        (A_FEW, [Moments(0.1, draws=8), Moments(0.1, draws=40)], "moments(draws=20, sigma=0.1), moments(draws=6, "),
        (A_FEW, [Moments(0.2, draws=6)], "moments(draws=20, sigma=0.1), moments(draws=6, sigma=0.1) only there, mom"),
        ([Moments(0.1), Softmax()], [Moments(0.2)], "moments: sigma 0.1 there, 0.2 now; scores softmax only there;"),
        (A_FEW, [*A_FEW, Moments(0.1, draws=8)], "moments(draws=8, sigma=0.1) only now;"),
    ],
    ids=str,
)
def test_where_scores_differ_by_parameters_these_are_told(old: list[Score], new: list[Score], said: str) -> None:
    one, other = (replace(RECORD, scores=tuple(map(describe_score, scores))) for scores in (old, new))
    with pytest.raises(ResumeError, match=re.escape(f": scores {said}")):
        identity.check_same(one, other, "run")


@pytest.mark.parametrize(("field", "same"), [("quantity", False), ("title", True), ("explanation", True)])
def test_of_a_score_only_what_it_computes_makes_the_run(field: str, same: bool) -> None:
    one, other = (replace(RECORD, scores=(score_record("a", {}, **{field: text}),)) for text in ("x", "y"))
    with nullcontext() if same else pytest.raises(ResumeError, match=r": scores\.quantity x there, y now"):
        identity.check_same(one, other, "run")


def test_of_code_from_outside_the_file_is_named() -> None:
    there, now = {"mine.py": "a1", "same.py": "c3"}, {"mine.py": "b2", "same.py": "c3"}
    one, other = (
        replace(
            RECORD,
            scores=tuple(score_record(name, {}, code=code) for name in "pq"),
            data=replace(RECORD.data, code=code),
        )
        for code in (there, now)
    )
    with pytest.raises(ResumeError) as caught:
        identity.check_same(one, other, "run")
    said = "data.code.mine.py a1 there, b2 now; scores.code.mine.py a1 there, b2 now; repeat"
    assert said in str(caught.value)


@pytest.mark.parametrize("name", sorted(OTHER_FIELDS))
def test_no_other_field_is_compared(name: str) -> None:
    assert name in PLACES
    identity.check_same(changed(RECORD, name, "old"), changed(RECORD, name, "new"), "run")


def test_a_field_that_is_of_no_kind_cannot_be_made() -> None:
    @dataclass(frozen=True)
    class Odd:
        known: int = field(metadata=SAME)
        unknown: int = 0

    with pytest.raises(TypeError, match="unknown"):
        checked(Odd)


def test_what_every_reader_and_loader_says_of_itself_is_recorded(tmp_path: Path) -> None:
    """A new fact of a data format or of a model must be a field of its record, or no run of it can begin."""
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
            record, found = describe(job), job.points.provenance
            assert {name: plain(record.data)[name] for name in found} == found
            assert {name: plain(record.model)[name] for name in model.source} == model.source


def test_a_fact_that_no_record_knows_is_refused() -> None:
    odd = brittle.Classifier(small_network(), source={"colour": "red"})
    with pytest.raises(ParameterError, match=r"source of the model .* unknown key 'colour'"):
        brittle.score(odd, inputs(3), [LogitMargin()])


def test_a_run_of_a_moved_data_set_is_the_same_run(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        np.savez(tmp_path / name / "data.npz", x=inputs(20).numpy())
    for name in ("one", "two"):
        job = make_job(classifier(), open_points(tmp_path / name / "data.npz"), [LogitMargin()], 0, None, 0.99)
        execute(job, tmp_path / "run")
    assert len(brittle.read_table(tmp_path / "run").points) == 20
