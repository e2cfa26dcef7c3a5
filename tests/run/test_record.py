"""The record of a run is complete."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from helpers.inputs import SIGMA
from helpers.problems import Wrapped, inputs, small_classifier, small_network
from helpers.small_runs import COUNT, labels, run

import brittle
from brittle.model.digest import state_digest
from brittle.noise import Uniform
from brittle.run.record import draws_of
from brittle.scores import MMSE, Moments, MonteCarlo, Softmax, Taylor


def test_the_record_holds_model_data_command_and_account() -> None:
    classifier = small_classifier()
    calls = []
    table = run(inputs(COUNT), labels(), classifier, progress=lambda *counts: calls.append(counts), command=["a", "b"])
    record = table.record
    assert record.model.classes == 4
    assert record.model.state_sha256 == state_digest(small_network())
    assert record.data.points == COUNT
    assert record.data.input_shape == (1, 6, 6)
    assert record.command == ("a", "b")
    assert record.account.passes == sum(table.points.column("passes").to_pylist())
    assert calls[-1] == (COUNT, COUNT, record.account.passes)
    assert record.finished is not None
    assert record.versions["torch"] == version("torch")


@pytest.mark.every_other
@pytest.mark.parametrize("skip_doctor", [False, True])
@pytest.mark.parametrize(
    ("change", "accessor"),
    [(lambda x, z: {"logits": z}, 'output["logits"]'), (lambda x, z: SimpleNamespace(logits=z), "output.logits")],
    ids=["mapping", "object"],
)
def test_the_record_names_the_logits_within_the_output(
    change: Callable, accessor: str | None, skip_doctor: bool, tmp_path: Path
) -> None:
    """It takes no extra pass, and a resumed run agrees."""
    plain, classifier = brittle.Classifier(Wrapped(lambda x, z: z)), brittle.Classifier(Wrapped(change))
    expected = run(inputs(COUNT), labels(), plain, skip_doctor=skip_doctor)
    options = {"out": tmp_path / "run", "resume": True, "skip_doctor": skip_doctor}
    table = run(inputs(COUNT), labels(), classifier, **options)
    assert table.record.model.taken == accessor
    assert table.scores.equals(expected.scores)
    assert classifier.passes == plain.passes
    (tmp_path / "run" / "points-00000.parquet").unlink()
    assert run(inputs(COUNT), labels(), classifier, **options).record.model == table.record.model


def test_the_draws_depend_on_the_noise_not_on_clip_or_count() -> None:
    draws = draws_of(MonteCarlo(SIGMA, draws=40, limit=None))
    assert list(draws.values()) == [40]
    assert draws_of(Moments(SIGMA, draws=8, clip=True)).keys() == draws.keys()
    assert not draws_of(MonteCarlo(2 * SIGMA, limit=None)).keys() & draws.keys()
    assert not draws_of(MonteCarlo(noise=Uniform(SIGMA), limit=None)).keys() & draws.keys()
    assert not draws_of(MMSE(SIGMA)).keys() & draws.keys()
    assert draws_of(Taylor(SIGMA)) == draws_of(Softmax()) == {}


def compute_logits(x: torch.Tensor) -> torch.Tensor:
    return torch.stack((x.flatten(1).sum(dim=1), -x.flatten(1).amax(dim=1)), dim=1)


@pytest.mark.parametrize("arrays", ["torch", "numpy"])
def test_a_function_as_a_model_is_identified_by_its_file(arrays: str) -> None:
    """It has no weights, and a run must not resume with another function."""

    def of_arrays(x: np.ndarray) -> np.ndarray:
        return compute_logits(torch.from_numpy(x)).numpy()

    function = compute_logits if arrays == "torch" else of_arrays
    record = run(inputs(COUNT), None, brittle.Classifier(function, arrays=arrays), scores=[Softmax()]).record
    assert record.model.state_sha256 is None
    assert record.model.sha256 == sha256(Path(__file__).read_bytes()).hexdigest()
