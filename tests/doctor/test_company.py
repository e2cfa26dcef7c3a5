"""Rows that depend on each other are refused by name, before a run or during it; rounding is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from helpers.examined import COUNT, Recurrent, codes, subject_of
from helpers.problems import Wrapped, inputs, small_network
from torch import Tensor, nn

import brittle
from brittle.data import array_points
from brittle.doctor.passes import regroup_inputs
from brittle.errors import ModelError
from brittle.scores import MonteCarlo, Score, Softmax, Taylor


def first_rows(count: int) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda x, z: torch.where(torch.arange(len(z))[:, None] < count, z, 0 * z)


def reverse_if(condition: Callable[[Tensor], bool]) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a change that reverses the logits of batches with this property."""
    return lambda x, z: z.flip(1) if condition(x) else z


LEANING: dict[str, Callable[[], nn.Module]] = {  # `helpers/odd_company.py` has more
    "an LSTM over the batch": lambda: Recurrent(nn.LSTM),
    "logits relative to the last row": lambda: Wrapped(lambda x, z: z - 0.1 * z[-1:]),
    "logits relative to the mean": lambda: Wrapped(lambda x, z: z - 0.01 * z.mean(0)),
    "a branch where the mean is high": lambda: Wrapped(reverse_if(lambda x: bool(x.mean() > 0.6))),
    "a branch where the mean is low": lambda: Wrapped(reverse_if(lambda x: bool(x.mean() < 0.36))),
    "right for the first 40 rows": lambda: Wrapped(first_rows(40)),
    "another function of one row": lambda: Wrapped(reverse_if(lambda x: len(x) == 1)),
}


@pytest.mark.parametrize("name", list(LEANING))
def test_rows_that_depend_on_each_other_are_refused(name: str) -> None:
    assert codes(subject_of(LEANING[name]()))["rows apart"] == "batch_dependent"


@pytest.mark.parametrize(
    ("rows", "change"),
    [(512, first_rows(500)), (65, reverse_if(lambda x: len(x) > 64))],
    ids=["the first 500 rows", "more than 64 rows"],
)
def test_batches_of_the_size_of_the_run_are_checked(rows: int, change: Callable[[Tensor, Tensor], Tensor]) -> None:
    subject = subject_of(Wrapped(change), rows)
    subject.points = None  # as in a long run
    assert codes(subject)["rows apart"] == "batch_dependent"
    assert codes(subject_of(Wrapped(change), COUNT)) == {}


@pytest.mark.parametrize(("points", "repeated"), [(None, COUNT), (inputs(COUNT), 16)], ids=["alone", "a short run"])
def test_every_row_and_every_noisy_copy_is_compared(points: Tensor | None, repeated: int) -> None:
    """Each row alone is the slow, obvious computation; the check compares the batch of all rows, each in its place."""
    subject = subject_of(small_network())
    subject.points = None if points is None else array_points(points, None)
    with torch.no_grad(), subject.classifier.evaluating():
        companies = list(regroup_inputs(subject))
        alone = [torch.cat([subject.classifier(row[None]) for row in company[1]]) for company in companies]
    assert {how.startswith("with noise") for how, *_ in companies} == {True, False}
    for (_, rows, first_logits, logits), alone_logits in zip(companies, alone, strict=True):
        assert rows.shape == (repeated, 1, 6, 6)
        assert torch.allclose(first_logits, alone_logits, rtol=0, atol=1e-5)
        assert torch.allclose(logits, alone_logits, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("rows", "count"), [(1, 3), (7, 64), (64, 1)])
def test_no_batch_is_larger_than_the_run_allows(rows: int, count: int) -> None:
    batch_sizes: list[int] = []

    def count_rows(x: Tensor) -> Tensor:
        batch_sizes.append(len(x))
        return network(x)

    network = small_network()
    subject = subject_of(count_rows, rows, count)
    subject.points = None  # as in a long run
    assert codes(subject) == {}
    assert max(batch_sizes) == rows


def test_a_recurrent_network_over_time_is_no_defect() -> None:
    assert codes(subject_of(Recurrent(nn.LSTM, batch_first=True))) == {}


@pytest.mark.parametrize(
    ("change", "score", "code"),
    [
        (lambda z: z - z.mean(0), Softmax(), "batch_dependent"),
        (lambda z: 0.1 * z + 0.9 * z.detach(), Taylor(0.1), "masked_gradient"),
    ],
)
def test_short_runs_check_points_after_the_first(change: Any, score: Score, code: str) -> None:
    """In sorted data, a defect of all points but the first sixteen shows before the run."""
    x = inputs(60)
    x[:, 0, 0, 0] = (torch.arange(60) >= 16).float()
    late = Wrapped(lambda x, z: torch.where(x[:, 0, 0, :1] > 0.5, change(z), z))
    with pytest.raises(ModelError) as caught:
        brittle.score(brittle.Classifier(late), x, [score])
    assert caught.value.code == code


def dark_rows_mix(x: Tensor, logits: Tensor) -> Tensor:
    """Mix the rows of dark batches; the first of the data are bright."""
    return logits if float(x.mean()) > 0.2 else logits - logits.mean(0)


def test_defects_of_later_rows_stop_the_run() -> None:
    x = inputs(600)
    x[300:] *= 0.2
    with pytest.raises(ModelError, match=r"row [345]\d\d of shard \d ") as caught:
        brittle.score(brittle.Classifier(Wrapped(dark_rows_mix)), x, [Softmax()])
    assert caught.value.code == "batch_dependent"


def test_noisy_passes_are_checked_too() -> None:
    """The network mixes rows where noise moves a value far out of the bounds, in the second shard alone."""
    change = reverse_if(lambda x: len(x) > 1 and bool((x[:, 0, 0, 0] > 1.6).any()))
    x = inputs(260)
    x[:256, 0, 0, 0], x[256:, 0, 0, 0] = 0.0, 1.0
    scores: list[Score] = [MonteCarlo(0.3, draws=60, limit=None)]
    with pytest.raises(ModelError, match=r"a copy of one of the rows \d+ to \d+ of shard \d ") as caught:
        brittle.score(brittle.Classifier(Wrapped(change)), x, scores)
    assert caught.value.code == "batch_dependent"


def test_a_pass_has_copies_of_all_points() -> None:
    """The few rows of the later checks represent every point, even if only few points mix rows under noise."""
    change = reverse_if(lambda x: len(x) > 1 and bool((x[:, 0, 0, 0] > 1.6).any()))
    x = inputs(1500)
    x[:, 0, 0, 0] = 0.0
    x[700:760, 0, 0, 0] = 1.0
    with pytest.raises(ModelError) as caught:
        brittle.score(brittle.Classifier(Wrapped(change)), x, [MonteCarlo(0.3, draws=200, limit=None)])
    assert caught.value.code == "batch_dependent"


def test_the_passes_of_the_checks_are_counted_apart() -> None:
    """Every shard adds 8 reference rows, and one row of each batch."""
    classifier = brittle.Classifier(small_network())
    record = brittle.score(classifier, inputs(256), [Softmax()], batch_size=64).record
    assert record.account.passes == 256
    assert record.account.check_passes == 8 * (256 // record.shard_points) + 256 // 32
