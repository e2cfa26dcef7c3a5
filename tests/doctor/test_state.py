"""Networks with a memory are detected before a run, at the end of its shards, and in its workers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.examined import codes, subject_of
from helpers.problems import inputs, small_network
from torch import Tensor, nn

import brittle
from brittle import doctor
from brittle.doctor.rounding import check_alike
from brittle.doctor.subject import KEPT
from brittle.errors import ModelError
from brittle.run import make_job
from brittle.scores import MonteCarlo, Score, Softmax, Taylor

SCORES: list[Score] = [Softmax(), MonteCarlo(0.2, draws=40, limit=None)]


class Remembers(nn.Module):
    """The small network with a memory that is neither parameter nor buffer."""

    def __init__(self, change: Callable[[Any, Tensor], Tensor]) -> None:
        super().__init__()
        self.network, self.change, self.memory = small_network(), change, {}
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        return self.change(self, x)


def remember_by_shape(self: Any, x: Tensor) -> Tensor:
    if x.shape not in self.memory:
        self.memory[x.shape] = self.network(x).detach()
    return self.memory[x.shape]


def change_after(calls: int) -> Callable[[Any, Tensor], Tensor]:
    """Return a change that becomes another function after some calls."""

    def change(self: Any, x: Tensor) -> Tensor:
        self.memory["calls"] = self.memory.get("calls", 0) + 1
        logits = self.network(x)
        return logits if self.memory["calls"] < calls else logits.flip(1)

    return change


def first_batch(self: Any, x: Tensor) -> Tensor:
    """Normalise inputs by the first batch."""
    mean, std = self.memory.setdefault("statistics", (x.mean(), x.std()))
    return self.network((x - mean) / std)


def centre_by_moving_average(self: Any, x: Tensor) -> Tensor:
    """Centre inputs by a slow moving average that begins with the first batch."""
    before = self.memory.get("mean", x.mean().detach())
    self.memory["mean"] = 0.9995 * before + 0.0005 * x.mean().detach()
    return self.network(x - self.memory["mean"])


def closure(change: Callable[[Any, Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return the same network as a function, whose memory is invisible."""
    inside = Remembers(change)
    return lambda x: inside(x)


REFUSED = {
    "a memo by shape": ("batch_dependent", remember_by_shape, True),
    "another function after 15 calls": ("model_changed", change_after(15), True),
    "a slow moving average": ("nondeterministic_model", centre_by_moving_average, True),
    "statistics of the first batch": ("model_changed", first_batch, False),
}
"""Code, change, and whether the checks see it in a function too, which cannot be copied."""


@pytest.mark.parametrize("name", list(REFUSED))
def test_memory_is_noticed_before_the_run(name: str) -> None:
    code, change, in_functions = REFUSED[name]
    assert code in codes(subject_of(Remembers(change))).values()
    if in_functions:
        assert code in codes(subject_of(closure(change))).values()


@pytest.mark.parametrize(("calls", "wrap"), [(130, Remembers), (110, closure)], ids=["a module", "a function"])
def test_a_network_that_changes_in_mid_run_stops_it(calls: int, wrap: Callable[..., Any], tmp_path: Path) -> None:
    """The run leaves no table and no finished record, but exactly the shards before the change."""
    classifier = brittle.Classifier(wrap(change_after(calls)))
    with pytest.raises(ModelError, match=r"row \d gets other logits at the end of shard \d+ than") as caught:
        brittle.score(classifier, inputs(600), SCORES, out=tmp_path / "run", batch_size=64)
    assert caught.value.code == "model_changed"
    shard = int(str(caught.value).partition("of shard ")[2].split()[0])
    assert len(list((tmp_path / "run").glob("scores-*.parquet"))) == shard
    records = list((tmp_path / "run").glob("run.json"))
    assert [json.loads(record.read_text())["finished"] for record in records] == [None] * min(1, shard)


# Between processes.


def report(change: Callable[[Any, Tensor], Tensor], *, driver: bool) -> dict[str, Any]:
    """Return the report of a process on the first points: of the driver after its checks, or of a worker at its start.

    There are no more points than these, so the first batch of both would be the same.
    """
    job = make_job(brittle.Classifier(closure(change)), inputs(KEPT), SCORES, 0, None, 0.99)
    if not driver:
        return json.loads(json.dumps(job.begin().content(job.classifier)))
    with job.classifier.evaluating():
        head = next(iter(job.points.batches(64)))
        subject = doctor.Subject(job.classifier, head, None, SCORES, 0, job.rows, job.points)
        doctor.examine(subject)
        return subject.reference().checked(job.classifier, "now").content(job.classifier)


def test_statistics_of_the_first_batch_differ_between_processes() -> None:
    """The driver cannot see the memory of a closure; it can see that a worker gets other logits."""
    plain = lambda self, x: self.network(x)  # noqa: E731
    check_alike(report(plain, driver=True), report(plain, driver=False), "in a worker of this machine")
    with pytest.raises(ModelError, match=r"row \d gets other logits in a worker of this machine than in") as caught:
        check_alike(report(first_batch, driver=True), report(first_batch, driver=False), "in a worker of this machine")
    assert caught.value.code == "model_changed"


def test_a_worker_with_other_rows_is_refused() -> None:
    facts = report(lambda self, x: self.network(x), driver=False)
    with pytest.raises(ModelError, match=r"rows \[5\]") as caught:
        check_alike(facts, {"rows": [5], "logits": [[0.0]], "explained": [[1.0]]}, "in a worker")
    assert caught.value.code == "worker_differs"


def test_models_that_cannot_be_copied_are_reported() -> None:
    """A lock cannot be copied; the other checks still run."""
    model = small_network()
    model.lock = threading.Lock()  # type: ignore[assignment]
    subject = subject_of(model)
    sentences = {outcome.name: outcome.sentence for outcome in doctor.run_all(subject)}
    assert sentences["history"].startswith("the model cannot be copied: TypeError: cannot pickle '_thread.lock'")
    assert codes(subject_of(model)) == {}


@pytest.mark.parametrize("rows", [1, 64])
def test_a_forward_pass_that_depends_on_grad_mode_is_refused(rows: int) -> None:
    """Clean passes, which record gradients, and noisy ones would come from two networks."""
    model = Remembers(lambda m, x: m.network(x) + torch.eye(4)[0] * (5.0 if x.requires_grad else 0.0))
    scores = [Taylor(0.2), MonteCarlo(0.2, draws=4, limit=None)]
    with pytest.raises(ModelError, match="where gradients are recorded"):
        brittle.score(brittle.Classifier(model), inputs(5), scores, batch_size=rows)
