"""A network that remembers is told from one that does not: before a run, at the end of its shards, in its workers."""

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


def by_shape(self: Any, x: Tensor) -> Tensor:
    if x.shape not in self.memory:
        self.memory[x.shape] = self.network(x).detach()
    return self.memory[x.shape]


def after(calls: int) -> Callable[[Any, Tensor], Tensor]:
    """Another function after so many calls."""

    def change(self: Any, x: Tensor) -> Tensor:
        self.memory["calls"] = self.memory.get("calls", 0) + 1
        logits = self.network(x)
        return logits if self.memory["calls"] < calls else logits.flip(1)

    return change


def first_batch(self: Any, x: Tensor) -> Tensor:
    """Normalised by the first batch."""
    mean, std = self.memory.setdefault("statistics", (x.mean(), x.std()))
    return self.network((x - mean) / std)


def moving(self: Any, x: Tensor) -> Tensor:
    """Centred by a slow moving average that begins with the first batch."""
    before = self.memory.get("mean", x.mean().detach())
    self.memory["mean"] = 0.9995 * before + 0.0005 * x.mean().detach()
    return self.network(x - self.memory["mean"])


def closure(change: Callable[[Any, Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The same as a function, whose memory nobody sees."""
    inside = Remembers(change)
    return lambda x: inside(x)


REFUSED = {
    "a memo by shape": ("batch_dependent", by_shape, True),
    "another function after 15 calls": ("model_changed", after(15), True),
    "a slow moving average": ("nondeterministic_model", moving, True),
    "statistics of the first batch": ("model_changed", first_batch, False),
}
"""Code, what is done, and whether it is seen in a function too, of which there is no copy."""


@pytest.mark.parametrize("name", list(REFUSED))
def test_memory_is_seen_before_the_run(name: str) -> None:
    code, change, in_functions = REFUSED[name]
    assert code in codes(subject_of(Remembers(change))).values()
    if in_functions:
        assert code in codes(subject_of(closure(change))).values()


@pytest.mark.parametrize(("calls", "wrapped"), [(130, Remembers), (110, closure)], ids=["a module", "a function"])
def test_a_network_that_changes_in_mid_run_ends_it(calls: int, wrapped: Callable[..., Any], tmp_path: Path) -> None:
    """No table, no finished record; the shards before the change are there, and no other."""
    classifier = brittle.Classifier(wrapped(after(calls)))
    with pytest.raises(ModelError, match=r"row \d gets other logits at the end of shard \d+ than") as caught:
        brittle.score(classifier, inputs(600), SCORES, out=tmp_path / "run", batch_size=64)
    assert caught.value.code == "model_changed"
    shard = int(str(caught.value).partition("of shard ")[2].split()[0])
    assert len(list((tmp_path / "run").glob("scores-*.parquet"))) == shard
    records = list((tmp_path / "run").glob("run.json"))
    assert [json.loads(record.read_text())["finished"] for record in records] == [None] * min(1, shard)


# Between processes.


def told(change: Callable[[Any, Tensor], Tensor], *, driver: bool) -> dict[str, Any]:
    """What a process says of the first points: the one that holds the run after its checks, a worker at its start.

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
    """The process that holds the run cannot see what a closure keeps; that a worker gets other logits can be seen."""
    plain = lambda self, x: self.network(x)  # noqa: E731
    check_alike(told(plain, driver=True), told(plain, driver=False), "in a worker of this machine")
    with pytest.raises(ModelError, match=r"row \d gets other logits in a worker of this machine than in") as caught:
        check_alike(told(first_batch, driver=True), told(first_batch, driver=False), "in a worker of this machine")
    assert caught.value.code == "model_changed"


def test_a_worker_that_has_other_rows_is_refused() -> None:
    own = told(lambda self, x: self.network(x), driver=False)
    with pytest.raises(ModelError, match=r"rows \[5\]") as caught:
        check_alike(own, {"rows": [5], "logits": [[0.0]], "explained": [[1.0]]}, "in a worker")
    assert caught.value.code == "worker_differs"


def test_what_cannot_be_copied_is_said() -> None:
    """A lock has no copy; the other checks are made."""
    model = small_network()
    model.lock = threading.Lock()  # type: ignore[assignment]
    subject = subject_of(model)
    said = {each.name: each.sentence for each in doctor.run_all(subject)}
    assert said["history"].startswith("the model cannot be copied: TypeError: cannot pickle '_thread.lock'")
    assert codes(subject_of(model)) == {}


@pytest.mark.parametrize("rows", [1, 64])
def test_a_forward_pass_that_depends_on_grad_mode_is_refused(rows: int) -> None:
    """Its clean passes, which gradients are taken from, and its noisy ones would be those of two networks."""
    model = Remembers(lambda m, x: m.network(x) + torch.eye(4)[0] * (5.0 if x.requires_grad else 0.0))
    scores = [Taylor(0.2), MonteCarlo(0.2, draws=4, limit=None)]
    with pytest.raises(ModelError, match="where gradients are recorded"):
        brittle.score(brittle.Classifier(model), inputs(5), scores, batch_size=rows)
