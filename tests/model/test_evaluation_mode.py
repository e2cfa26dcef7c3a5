"""Conditions of a measurement: its mode, one thread, no mode of the caller, nothing compiled or printed."""

from __future__ import annotations

import importlib
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.inputs import EXAMPLES
from helpers.laws import estimate
from helpers.problems import inputs, small_network
from helpers.threads import LIMIT, SOON, Worker, with_dropout
from torch import nn

import brittle
from brittle.errors import ModelError, ResumeError
from brittle.extensions.detector.surrogate import Surrogate
from brittle.measure.forward import look
from brittle.model.evaluation_mode import quiet
from brittle.scores import MMSE, FirstOrderChange, InputMargin, Laplacian, Moments, MonteCarlo, Taylor

pytestmark = pytest.mark.usefixtures("short_search")

VOTES = MonteCarlo(0.2, draws=20, limit=None)


def modes(network: nn.Module) -> list[bool]:
    return [module.training for module in network.modules()] + [weight.requires_grad for weight in network.parameters()]


def test_nested_blocks_hold_and_restore_the_mode() -> None:
    network = with_dropout()
    before = modes(network)
    wrapper = brittle.Classifier(nn.Sequential(network, nn.Softmax(1)))
    classifier = brittle.Classifier(network)
    with wrapper.evaluating():
        for _ in range(2):
            with classifier.evaluating(), brittle.Classifier(network[0]).evaluating():
                assert not any(modes(network))
            assert not any(modes(network))
    assert modes(network) == before


def test_another_thread_waits_and_passes_are_counted_apart(workers: list[Worker]) -> None:
    network, x = with_dropout(), inputs(4)
    classifier = brittle.Classifier(network)
    done = threading.Event()

    def count_passes() -> int:
        table = brittle.score(brittle.Classifier(network), (x, None), [Laplacian("probes", probes=8), VOTES])
        done.set()
        return table.record.account.passes

    expected = count_passes()
    done.clear()
    with classifier.evaluating():
        futures = [worker.submit(count_passes) for worker in workers[:2]]
        assert not done.wait(SOON)
        classifier(x)
        assert classifier.passes == len(x)
    assert [future.result(LIMIT) for future in futures] == [expected] * 2
    assert network.training


def test_training_during_a_measurement_stops_it() -> None:
    """The model trains itself within a pass, or other code trains it."""

    class Trains(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.train()
            return x.flatten(1)

    classifier = brittle.Classifier(Trains())
    with pytest.raises(ModelError) as caught:
        estimate(classifier, inputs(2), VOTES)
    assert caught.value.code == "model_changed"
    network = with_dropout()
    with pytest.raises(ModelError) as caught, brittle.Classifier(network).evaluating():
        network.train()
    assert caught.value.code == "model_changed"
    assert network.training


def test_a_switched_mode_stops_the_pass() -> None:
    network = with_dropout()
    classifier = brittle.Classifier(network)
    with classifier.evaluating():
        network.train()
        with pytest.raises(ModelError, match="model_changed"):
            classifier(inputs(2))
        network.eval()


def test_modules_beside_an_exported_part_are_switched() -> None:
    program = torch.export.export(small_network(), (inputs(2),)).module()
    network = nn.Sequential(program, nn.Dropout(0.5))
    with brittle.Classifier(network).evaluating():
        assert not network[1].training
    assert network[1].training


def test_networks_without_mode_or_with_opaque_weights_are_scored(tmp_path: Path) -> None:
    """Frozen TorchScript has neither mode nor weights; MKLDNN weights have no bytes."""
    x, digests = inputs(3, dtype=torch.float32), set()
    for seed in (0, 1):
        torch.manual_seed(seed)
        plain = nn.Sequential(nn.Flatten(), nn.Linear(x[0].numel(), 4), nn.ReLU(), nn.Linear(4, 3)).eval()
        with warnings.catch_warnings(action="ignore"):  # TorchScript is deprecated
            frozen = torch.jit.freeze(torch.jit.script(plain))
            opaque = importlib.import_module("torch.utils.mkldnn").to_mkldnn(plain)
        expected = estimate(brittle.Classifier(plain), x, VOTES).value
        for model in (frozen, opaque):
            table = brittle.score(brittle.Classifier(model), (x, None), [VOTES])
            assert torch.equal(torch.tensor(table[VOTES].value.to_numpy()), expected)
            digests.add(table.record.model.state_sha256)
    assert len(digests) == 4


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def several_modes() -> Iterator[None]:
    with torch.inference_mode(), default_dtype(torch.float64), torch.autocast("cpu", torch.bfloat16):
        yield


@cache
def network() -> nn.Module:
    return small_network()


def fit_digest() -> str:
    features = inputs(40, (5,), dtype=torch.float32).numpy()
    return Surrogate.fit(features, features.sum(axis=1), seed=0, width=4, epochs=3).digest


@cache
def scores_and_digest() -> tuple[list[dict], str]:
    """Return every score of the catalogue, at points made within the call, and the digest of a pseudo-margin."""
    data = (inputs(3, dtype=torch.float32), None)
    return brittle.score(brittle.Classifier(network()), data, EXAMPLES).scores.to_pylist(), fit_digest()


@pytest.mark.parametrize("mode", [torch.no_grad, several_modes])
def test_no_mode_of_the_caller_changes_a_number(mode: Callable[[], AbstractContextManager[object]]) -> None:
    expected = scores_and_digest()
    x, classifier = inputs(3), brittle.Classifier(network())
    linear = brittle.linearize(classifier, x)
    with mode():
        assert scores_and_digest.__wrapped__() == expected
        assert torch.equal(brittle.linearize(classifier, x.clone()).gram, linear.gram)


def test_inputs_of_inference_mode_are_scored() -> None:
    with torch.inference_mode():
        x = inputs(2)
    classifier, margin = (
        brittle.Classifier(network()),
        InputMargin("linf", effort="fast", certify=True, proof="fast"),
    )
    assert torch.equal(look(classifier, x, "ab", 0, differentiate=True).logits, classifier(x))
    for score in (FirstOrderChange(0.2), MMSE(0.2, draws=4), Laplacian(), margin):
        actual, expected = (estimate(classifier, points, score) for points in (x, inputs(2)))
        assert torch.equal(actual.value, expected.value)


def test_weights_of_inference_mode_are_scored_without_gradients() -> None:
    """Such weights have no derivative; scores without one are computed, and the weights are restored."""
    with torch.inference_mode():
        model = small_network()
    votes = estimate(brittle.Classifier(model), inputs(2), VOTES)
    assert torch.equal(votes.value, estimate(brittle.Classifier(network()), inputs(2), VOTES).value)
    assert all(parameter.requires_grad for parameter in model.parameters())
    with pytest.raises(ModelError, match=r"torch.inference_mode\(\)") as caught:
        estimate(brittle.Classifier(model), inputs(2), Taylor(0.2))
    assert caught.value.code == "model_failed"


def test_another_default_dtype_makes_another_run(tmp_path: Path) -> None:
    run = partial(brittle.score, brittle.Classifier(network()), (inputs(2), None), [VOTES])
    run(out=tmp_path / "run")
    with default_dtype(torch.float64), pytest.raises(ResumeError, match=r"machine\.default_dtype"):
        run(out=tmp_path / "run", resume=True)


def test_lazy_layers_without_an_input_are_refused() -> None:
    lazy = nn.Sequential(nn.Flatten(), nn.LazyLinear(4), nn.LazyBatchNorm1d())
    with pytest.raises(ModelError, match=r"1.weight, 1.bias") as caught:
        brittle.Classifier(lazy)
    assert caught.value.code == "weights"
    lazy(inputs(2))
    assert brittle.Classifier(lazy.eval())(inputs(2)).shape == (2, 4)


class Backend:
    """A compiler that changes nothing and counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, graph: Any, example: Any) -> Callable[..., Any]:
        self.calls += 1
        return graph.forward


@pytest.mark.parametrize("compile_all", [True, False])
def test_compiled_networks_are_measured_uncompiled(compile_all: bool) -> None:
    backend, x, model = Backend(), inputs(3), small_network()
    if compile_all:
        model = torch.compile(model, backend=backend)
    else:
        model[0] = torch.compile(model[0], backend=backend)  # type: ignore[index]
    for score in (Moments(sigma=0.1), InputMargin("l2", effort="fast", certify=True, proof="fast")):
        compiled, plain = (estimate(brittle.Classifier(module), x, score) for module in (model, small_network()))
        assert torch.equal(compiled.value, plain.value)
        assert torch.allclose(compiled.low, plain.low, rtol=1e-6)
        assert compiled.status.tolist() == plain.status.tolist()
    assert backend.calls == 0
    model(x)
    assert backend.calls > 0


@quiet()
def fail() -> None:
    print("the graph", file=sys.stderr)
    raise ValueError("torn")


def test_quiet_drops_only_the_output_of_failing_code(capsys: pytest.CaptureFixture[str]) -> None:
    with quiet():
        print("sound", file=sys.stderr)
        with pytest.raises(ValueError, match="torn"):
            fail()
    assert capsys.readouterr().err == "sound\n"
