"""A network with its detector built in is the rule, and fails closed."""

from __future__ import annotations

import copy
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.calibrated import FORWARD, SIMPLE, below_all, classifier, exported, lenient, points, with_margins
from helpers.problems import inputs, linear_network, small_network
from torch import Tensor, nn

import brittle
from brittle.errors import ModelError, ParameterError
from brittle.extensions.detector.detector import Detector
from brittle.extensions.detector.network import READINGS, orient
from brittle.model.head import find_head
from brittle.model.loading.load import load_model
from brittle.scores import FeatureMargin, LogitMargin, MonteCarlo
from brittle.store.table import Table


@pytest.mark.parametrize("score", SIMPLE)
def test_wrapped_network_is_the_rule(table: Table, score: str) -> None:
    """It gives the numbers of the run up to rounding, and the flags of the rule; exported it agrees on 1,000 points."""
    rule = Detector.fit(table, epsilon=0.15, tpr=0.9, score=score)
    subject = classifier()
    wrapped = rule.wrap(subject)
    logits, values, flags = wrapped(points(400))
    frame = table.long()
    run = orient(READINGS[score], np.asarray(frame[frame["score"] == score]["value"]))
    assert values.detach().numpy() == pytest.approx(run, rel=1e-5, abs=1e-6)
    assert values.dtype == torch.float64
    with torch.no_grad():
        assert torch.equal(logits, subject(points(400)))
    fresh = points(1000, seed=3)
    program = exported(wrapped, points(4))
    for network in (wrapped, program):
        values, flags = network(fresh)[1:]
        assert np.array_equal(flags.numpy(), rule.flag(values))
    assert torch.equal(program(fresh)[1], wrapped(fresh)[1])
    assert 0 < int(flags.sum()) < 1000


@pytest.mark.parametrize("score", ["logit_margin", "feature_margin"])
def test_exported_programs_can_be_wrapped(tmp_path: Path, table: Table, score: str) -> None:
    rule = Detector.fit(table, epsilon=0.15, tpr=0.9, score=score)
    program = torch.export.export(
        linear_network(3, 6, 0, torch.float32).eval(), (points(4),), dynamic_shapes=({0: torch.export.Dim("batch")},)
    )
    torch.export.save(program, tmp_path / "model.pt2")
    loaded = load_model(tmp_path / "model.pt2").module
    wrapped = rule.wrap(loaded)
    fresh = points(1000, seed=3)
    expected = rule.wrap(classifier())(fresh)
    assert all(map(torch.equal, wrapped(fresh), expected))
    again = torch.export.export(
        wrapped.eval(), (points(4),), dynamic_shapes={"inputs": {0: torch.export.Dim("batch")}}, strict=False
    )
    torch.export.save(again, tmp_path / "wrapped.pt2")
    exported = torch.export.load(tmp_path / "wrapped.pt2").module()
    assert all(map(torch.equal, exported(fresh), expected))


@pytest.mark.filterwarnings("ignore")  # the exporter of TorchScript warns, and needs no further package
@pytest.mark.parametrize("score", SIMPLE)
def test_exported_to_onnx_or_saved_it_flags_the_same_points(tmp_path: Path, table: Table, score: str) -> None:
    """Among them every row with NaN, infinity or a value outside the bounds, at any place."""
    onnxruntime = pytest.importorskip("onnxruntime")
    wrapped = Detector.fit(table, epsilon=0.15, tpr=0.9, score=score).wrap(classifier())
    wrapped(points(4))
    names: dict[str, Any] = {"input_names": ["inputs"], "output_names": ["logits", "score", "brittle"]}
    names["dynamic_axes"] = {"inputs": {0: "batch"}}
    torch.onnx.export(wrapped, (points(4),), tmp_path / "flagging.onnx", dynamo=False, **names)
    session = onnxruntime.InferenceSession(tmp_path / "flagging.onnx", providers=["CPUExecutionProvider"])
    shapes = {"inputs": {0: torch.export.Dim("batch")}}
    torch.export.save(
        torch.export.export(wrapped, (points(4),), dynamic_shapes=shapes, strict=False), tmp_path / "flagging.pt2"
    )
    saved = torch.export.load(tmp_path / "flagging.pt2").module()
    fresh = points(1000, seed=3)
    for row, value in enumerate((math.nan, math.inf, -math.inf, 1.5, -0.5)):
        fresh[6 * row : 6 * row + 6][torch.eye(6, dtype=torch.bool)] = value
    expected = wrapped(fresh)[2].numpy()
    assert expected[:30].all()
    assert 0 < (~expected).sum() < 970
    assert (session.run(["brittle"], {"inputs": fresh.numpy()})[0] == expected).all()
    assert (saved(fresh)[2].numpy() == expected).all()


class Deaf(nn.Module):
    """Network that ignores NaN in its inputs, as some operators of other libraries do."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        return self.network(torch.where(x == x, x, 0.5))


@pytest.mark.filterwarnings("ignore")
def test_nan_in_an_input_is_brittle_if_the_network_ignores_it(tmp_path: Path, detector: Detector) -> None:
    """Also in onnxruntime, whose minimum and maximum ignore NaN."""
    onnxruntime = pytest.importorskip("onnxruntime")
    network = Deaf(linear_network(3, 6, 0, torch.float32))
    wrapped = lenient(detector, "logit_margin", network).wrap(network)
    x = points(12)
    x[:6][torch.eye(6, dtype=torch.bool)] = math.nan
    torch.onnx.export(wrapped, (x,), tmp_path / "deaf.onnx", dynamo=False, input_names=["x"])
    session = onnxruntime.InferenceSession(tmp_path / "deaf.onnx", providers=["CPUExecutionProvider"])
    for flags in (wrapped(x)[2].tolist(), session.run(None, {"x": x.numpy()})[2].tolist()):
        assert flags == [True] * 6 + [False] * 6


class Meeting(nn.Module):
    """Network that makes two threads meet between its layers."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head, self.barrier = nn.Linear(6, 5), nn.Linear(5, 3), threading.Barrier(2)

    def forward(self, x: Tensor) -> Tensor:
        features = self.body(x).relu()
        self.barrier.wait(10)
        logits = self.head(features)
        self.barrier.wait(10)
        return logits


def test_every_thread_sees_the_features_of_its_own_pass() -> None:
    network, batches = Meeting(), [points(4, seed) for seed in (0, 1)]
    with ThreadPoolExecutor(2) as threads:
        features_by_thread = list(threads.map(lambda x: find_head(network).observe(x)[1], batches))
    for x, features in zip(batches, features_by_thread, strict=True):
        assert torch.equal(features, network.body(x).relu())


class TwoHeads(nn.Module):
    """Network whose last linear layer does not give the logits."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.body, self.head, self.projector = nn.Linear(6, 5), nn.Linear(5, 3), nn.Linear(5, 3)
            self.head.weight.data.mul_(8)

    def forward(self, x: Tensor) -> Tensor:
        features = self.body(x).relu()
        self.projector(features)
        return self.head(features)


def test_features_are_those_of_the_layer_of_the_fit() -> None:
    """Even if that layer is parametrised."""
    network = TwoHeads()
    nn.utils.parametrizations.weight_norm(network.head)
    subject = brittle.Classifier(network, head="head")
    run = brittle.score(subject, points(400), [FeatureMargin("linf")])
    values = run.scores["value"].to_numpy()
    run = with_margins(run, values.tolist())
    rule = Detector.fit(run, float(np.median(values)), score="feature_margin")
    assert rule.head == "head"
    for network in (subject, subject.model, brittle.Classifier(subject.model)):
        wrapped = rule.wrap(network)  # pyright: ignore[reportArgumentType] a layer of a known kind
        assert wrapped(points(400))[1].detach().numpy() == pytest.approx(values, rel=1e-5, abs=1e-6)
        if isinstance(network, brittle.Classifier):
            assert rule.apply(network, points(400))["score"].tolist() == pytest.approx(values, rel=1e-5, abs=1e-6)
    with pytest.raises(ModelError, match=r"'head'.*names 'projector'"):
        rule.wrap(brittle.Classifier(subject.model, head="projector"))


def test_a_layer_that_does_not_give_the_logits_is_refused(table: Table) -> None:
    network = TwoHeads()
    rule = Detector.fit(table, epsilon=0.15, tpr=0.9, score="feature_margin")
    wrapped = lenient(rule, "feature_margin", network).wrap(network)
    with pytest.raises(ModelError, match="'projector' gives"):
        wrapped(points(4))
    sound = rule.wrap(classifier())
    with pytest.raises(ModelError, match="run the network once"):
        exported(sound, points(4))
    sound(points(4))
    exported(sound, points(4))


@pytest.mark.parametrize("score", SIMPLE)
def test_a_network_of_one_logit_is_wrapped(score: str) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 1))
    subject = brittle.Classifier(network, outputs="binary-logit")
    run = brittle.score(subject, points(400), FORWARD)
    rows = run.long()
    values = orient(READINGS[score], np.asarray(rows[rows["score"] == score]["value"]))
    table = with_margins(run, (values + 2.0).tolist(), parameters={"norm": "linf", "bounded": False})
    rule = Detector.fit(table, float(np.median(values)) + 2.0, score=score)
    logits, found_values, _ = rule.wrap(network)(points(400))
    assert found_values.detach().numpy() == pytest.approx(values, rel=1e-5, abs=1e-6)
    assert torch.equal(logits[:, 1], network(points(400))[:, 0])


def test_wrapped_convolutional_network_stays_in_evaluation_mode(detector: Detector) -> None:
    network = nn.Sequential(nn.Dropout(), small_network()).train()
    wrapped = lenient(detector, "logit_margin", network).wrap(network)
    assert not network.training
    assert torch.equal(wrapped(inputs(3))[0], wrapped(inputs(3))[0])
    with pytest.raises(ModelError, match="evaluation mode"):
        wrapped.train()
    for part in (network, network[0]):
        part.train()
        with pytest.raises(ModelError) as caught:
            wrapped(inputs(3))
        assert caught.value.code == "train_mode"
        network.eval()
    assert torch.equal(wrapped(inputs(3))[0], copy.deepcopy(wrapped)(inputs(3))[0])


def test_inputs_outside_the_bounds_are_brittle(detector: Detector) -> None:
    """The detector was not calibrated on such inputs (0..255 for 0..1, say); so also in the export."""
    network = linear_network(3, 6, 0, torch.float32)
    wrapped = below_all(detector).wrap(network)
    x = points(8)
    program = exported(wrapped, x)
    assert not wrapped(x)[2].any()
    edges = x.clone()
    edges[0, 3], edges[1, 0], edges[2, 5] = 1.001, -0.001, math.nan
    edges[3, 0], edges[4, 0], edges[5, 1], edges[6, 1] = 0.0, 1.0, 1.0 + 5e-7, -5e-7
    for flag in (wrapped, program):
        assert flag(edges)[2].tolist() == [True] * 3 + [False] * 5
        assert flag(x * 255)[2].all()


def test_inputs_that_a_wrapped_network_cannot_take_are_named(detector: Detector) -> None:
    wrapped = detector.wrap(classifier())
    for wrong in (points(4).numpy(), points(4).tolist(), None):
        with pytest.raises(ParameterError, match=rf"\[B, \*shape\] is needed; found {type(wrong).__name__}"):
            wrapped(wrong)
    with pytest.raises(ParameterError, match=r"found shape \[6\]; give one input alone as inputs\[None\]"):
        wrapped(points(4)[0])
    merged = nn.Sequential(nn.Flatten(0), nn.Unflatten(0, (1, -1)), nn.Linear(24, 3))
    with pytest.raises(ModelError, match=r"4 inputs gave a result of shape \[1, 3\]"):
        lenient(detector, "logit_margin", merged).wrap(merged)(points(4))


def test_numbers_whose_sum_overflows_are_as_good_as_others() -> None:
    """A thousand features near 1e36 fit single precision, their sum does not."""
    torch.manual_seed(0)
    layer = nn.Linear(1000, 3)
    network = nn.Sequential(Scaled(), layer).eval()
    classifier = brittle.Classifier(network, bounds=None)
    x = torch.rand(400, 1000, generator=torch.Generator().manual_seed(0)) * 2e36
    scores = [MonteCarlo(0.5e36, draws=100, limit=None), LogitMargin()]
    detector = Detector.fit(brittle.score(classifier, x, scores, skip_doctor=True), limit=0.7, tpr=0.8)
    with torch.no_grad():
        largest, second_largest = network(x).double().topk(2).values.T
        flags = detector.wrap(network)(x)[2]
    assert torch.equal(flags, largest - second_largest < detector.threshold)
    assert 0 < int(flags.sum()) < 400


class Scaled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x / 1e36 - 1
