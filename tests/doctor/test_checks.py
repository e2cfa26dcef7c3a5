"""What is wrong with a model, data or settings is said before anything is scored: one row per defect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from helpers.problems import Wrapped, inputs, linear_network, small_network
from torch import nn

import brittle
from brittle.errors import BrittleError
from brittle.scores import Moments, MonteCarlo, Softmax

COUNT = 40
SCORES = [Softmax(), Moments(0.1, draws=4)]


def labels(count: int = COUNT) -> torch.Tensor:
    return torch.arange(count) % 4


class CrossBatch(nn.Module):
    """Mixes the rows of a batch, as batch norm without running statistics does."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.BatchNorm2d(1, track_running_stats=False), small_network())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.network(x)


class AlwaysDropout(nn.Module):
    """Dropout that ignores evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        self.network = small_network()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.network(nn.functional.dropout(x, 0.5, training=True))


def broken_weights() -> nn.Module:
    network = small_network()
    with torch.no_grad():
        network[0].weight[0, 0, 0, 0] = torch.nan  # pyright: ignore[reportIndexIssue] a layer of a known kind
    return network


@dataclass(frozen=True)
class Defect:
    """One defective input, and what must be said of it."""

    code: str
    sentence: str
    model: Callable[[], Any] = small_network
    x: torch.Tensor = field(default_factory=lambda: inputs(COUNT))
    y: torch.Tensor | None = field(default_factory=labels)
    options: dict[str, Any] = field(default_factory=dict)
    declared: dict[str, Any] = field(default_factory=dict)


def changed(change: Callable[[torch.Tensor], Any]) -> Callable[[], nn.Module]:
    return lambda: Wrapped(lambda x, logits: change(logits))


REFUSED = [
    Defect("value_range", r"to 254\.\d*, outside \[0, 1\] in 40 of 40 rows.*--bounds 0 255", x=inputs(COUNT) * 254.99),
    Defect("value_range", "the data look normalised", x=inputs(COUNT) * 4.7 - 2.1),
    Defect("value_range", "declare the range with --bounds", x=inputs(COUNT) * 3),
    Defect(
        "value_range",
        r"that holds all features of all rows with .*; noise is of one size in all features",
        lambda: linear_network(4, 8, dtype=torch.float32),
        inputs(COUNT, (8,)) * 4.2 - 2.1,
    ),
    Defect("dtype", "uint8", x=(inputs(COUNT) * 255).to(torch.uint8)),
    Defect("layout", "channels-last", x=inputs(COUNT, (16, 16, 3))),
    Defect("empty_dataset", "no points", x=inputs(0), y=None),
    Defect("labels", r"labels 1\.\.4, the model has 0\.\.3; subtract 1", y=labels() + 1),
    Defect("labels", r"20 of 40 labels lie outside .* such as \[-2, -1\]", y=labels() - 2 * (labels() == 1).long() - 1),
    Defect("nonfinite_logits", "NaN logits in all of the 40 rows", changed(lambda z: z * torch.nan)),
    Defect("nonfinite_logits", "infinite logits in all of the 40 rows", changed(lambda z: z.abs() / 0.0)),
    Defect("constant_output", "the same logits", changed(lambda z: torch.ones_like(z))),
    Defect("constant_output", "the same logits", changed(lambda z: torch.ones_like(z)), inputs(1), labels(1)),
    Defect("probabilities", "--outputs probs", changed(lambda z: z.softmax(1))),
    Defect("probabilities", "sums to 1", changed(lambda z: z.softmax(1).half())),
    Defect("probabilities", "sums to 1", lambda: Wrapped(lambda x, z: z.softmax(1)).bfloat16()),
    Defect("outputs", "sigmoids of a multi-label model", changed(lambda z: z.sigmoid())),
    Defect("weights", "0.weight of the model holds 1 NaN", lambda: broken_weights()),
    Defect("outputs", "rows sum to", changed(lambda z: z.sigmoid()), declared={"outputs": "probs"}),
    Defect("outputs", "values from -", declared={"outputs": "probs"}),
    Defect("batch_dependent", "row 0 beside bright inputs", CrossBatch, inputs(1), labels(1)),
    Defect("output_shape", "--outputs binary-logit", changed(lambda z: z[:, :1])),
    Defect("output_shape", "a tuple", changed(lambda z: (z, z))),
    Defect("output_shape", r"\[40, 4, 1, 1\]", changed(lambda z: z[:, :, None, None])),
    Defect("output_shape", "batch size one", changed(lambda z: z.squeeze())),
    Defect("nondeterministic_model", "5 passes of the same 40 rows differ by up to", AlwaysDropout),
    Defect("batch_dependent", "mixes the rows of a batch", CrossBatch),
    Defect("sigma_too_small", "changes nothing in", options={"scores": [MonteCarlo(1e-9, draws=4)]}),
    Defect(
        "accuracy_guard", r"accuracy 0\.\d+ on 40 labelled rows .*expected 0.99", options={"expected_accuracy": 0.99}
    ),
    Defect("expected_accuracy", "no labels", y=None, options={"expected_accuracy": 0.5}),
    Defect("scores", "asked for twice", options={"scores": [Softmax(), Softmax()]}),
    Defect("scores", "name at least one", options={"scores": []}),
    Defect("scores", "expected a list of scores", options={"scores": Softmax()}),
    Defect("scores", "expected a list of scores", options={"scores": ["softmax"]}),
    Defect("seed", "from 0 to .*; found -1", options={"seed": -1}),
    Defect("seed", "whole number .*; found 1.5", options={"seed": 1.5}),
    Defect("batch_size", "at least 1; found 0", options={"batch_size": 0}),
    Defect("confidence", "between 0 and 1; found 1.0", options={"confidence": 1.0}),
    Defect("confidence", "between 0 and 1; found 0", options={"confidence": 0}),
]


def run(defect: Defect) -> brittle.Table:
    classifier = brittle.Classifier(defect.model(), **defect.declared)
    options: dict[str, Any] = {"scores": SCORES} | defect.options
    return brittle.score(classifier, (defect.x, defect.y), **options)


@pytest.mark.parametrize("defect", REFUSED, ids=lambda defect: f"{defect.code}:{defect.sentence[:20]}")
def test_refused(defect: Defect) -> None:
    with pytest.raises(BrittleError, match=defect.sentence) as caught:
        run(defect)
    assert caught.value.code == defect.code
    assert caught.value.exit_code == 3


def nearly_uniform(logits: torch.Tensor) -> torch.Tensor:
    return torch.cat((logits[:, :3], logits[:, :1]), dim=1)


NOTED = [
    Defect("train_mode", "evaluation mode and put back", lambda: small_network().train()),
    Defect("narrow_range", "the declared range is [0, 255]", declared={"bounds": (0, 255)}),
    Defect("softmax_twice", "log-probabilities", changed(lambda z: z.log_softmax(1))),
    Defect("duplicate_classes", "classes 0, 3 have identical logits", changed(nearly_uniform)),
    Defect("sigma", "sigma 50 is 50 times the value range 1", options={"scores": [Moments(50.0, draws=4)]}),
    Defect(
        "accuracy_suspicious",
        "little better than chance",
        x=inputs(1200),
        y=torch.full((1200,), 1),
        model=changed(lambda z: z + torch.tensor([100.0, 0.0, 0.0, 0.0])),
        options={"scores": [Softmax()]},
    ),
]


@pytest.mark.parametrize("defect", NOTED, ids=lambda defect: defect.code)
def test_noted(defect: Defect) -> None:
    table = run(defect)
    found = {entry.code: entry.sentence for entry in table.record.warnings}
    assert defect.code in found
    assert defect.sentence in found[defect.code]
    assert table.scores.column("value").null_count == 0


FINE = [
    Defect("rounding", "", x=inputs(COUNT) - 2.98e-08),
    Defect("no labels", "", y=None),
    Defect("one row", "", x=inputs(1), y=labels(1)),
    Defect("int32 labels", "", y=labels().int()),
    Defect("labels of shape (N, 1)", "", y=labels()[:, None]),
    Defect("probabilities declared", "", changed(lambda z: z.softmax(1)), declared={"outputs": "probs"}),
    Defect("output object", "", changed(lambda z: {"logits": z})),
    Defect(
        "two classes at 70%",
        "",
        lambda: small_network(classes=2),
        x=inputs(1200),
        y=(small_network(classes=2)(inputs(1200)).argmax(1) + (torch.arange(1200) % 10 < 3)) % 2,
        options={"scores": [Softmax()]},
    ),
    Defect("enough accuracy", "", y=small_network()(inputs(COUNT)).argmax(1), options={"expected_accuracy": 0.8}),
]


@pytest.mark.parametrize("defect", FINE, ids=lambda defect: defect.code)
def test_no_false_alarm(defect: Defect) -> None:
    table = run(defect)
    assert table.scores.column("value").null_count == 0
    assert table.record.warnings == ()
