"""What a caller has switched on for its thread or its process changes no number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from pathlib import Path

import pytest
import torch
from helpers.inputs import EXAMPLES
from helpers.laws import estimate
from helpers.problems import inputs, small_network
from torch import nn

import brittle
from brittle.detector.pseudo_margin import PseudoMargin
from brittle.errors import ModelError, ResumeError
from brittle.measure.forward import look
from brittle.scores import MMSE, FirstOrderChange, InputMargin, Laplacian, MonteCarlo, Taylor


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


MODES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "float64": lambda: default_dtype(torch.float64),
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
}

each = pytest.mark.parametrize("mode", MODES.values(), ids=list(MODES))


@cache
def network() -> nn.Module:
    return small_network()


def table() -> list[dict]:
    """Every score of the catalogue, at points that are made where this is called."""
    data = (inputs(3, dtype=torch.float32), None)
    return brittle.score(brittle.Classifier(network()), data, EXAMPLES).scores.to_pylist()


@cache
def outside() -> list[dict]:
    return table()


@each
def test_every_score_has_the_same_bytes(mode: Callable[[], AbstractContextManager[object]]) -> None:
    expected = outside()
    with mode():
        assert table() == expected


@each
def test_a_measurement_alone(mode: Callable[[], AbstractContextManager[object]]) -> None:
    x, classifier = inputs(3), brittle.Classifier(network())
    linear, laplacian = brittle.linearize(classifier, x), brittle.laplacian(classifier, x)
    with mode():
        assert torch.equal(brittle.linearize(classifier, x.clone()).gram, linear.gram)
        assert torch.equal(brittle.laplacian(classifier, x.clone()).value, laplacian.value)


def test_inputs_that_were_made_in_inference_mode() -> None:
    with torch.inference_mode():
        x = inputs(2)
    classifier, certified = brittle.Classifier(network()), InputMargin("linf", effort="fast", certify=True)
    assert torch.equal(look(classifier, x, "ab", 0, differentiate=True).logits, classifier(x))
    for score in (FirstOrderChange(0.2), MMSE(0.2, draws=4), Laplacian(), certified):
        found, expected = (estimate(classifier, one, score) for one in (x, inputs(2)))
        assert torch.equal(found.value, expected.value)


@each
def test_a_pseudo_margin_is_learned(mode: Callable[[], AbstractContextManager[object]]) -> None:
    features = inputs(40, (5,), dtype=torch.float32).numpy()
    margins = features.sum(axis=1)

    def learned() -> str:
        return PseudoMargin.fit(features, margins, seed=0, layers=1, width=4, epochs=3).digest

    expected = learned()
    with mode():
        assert learned() == expected


def test_a_default_dtype_that_a_forward_may_see_makes_another_run(tmp_path: Path) -> None:
    run = partial(brittle.score, brittle.Classifier(network()), (inputs(2), None), [MonteCarlo(0.2, draws=8)])
    run(out=tmp_path / "run")
    with (
        default_dtype(torch.float64),
        pytest.raises(ResumeError, match=r"machine\.default_dtype nothing there, float64"),
    ):
        run(out=tmp_path / "run", resume=True)


def test_the_callers_modes_are_put_back() -> None:
    classifier = brittle.Classifier(network())
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        with classifier.evaluating():
            assert torch.is_grad_enabled()
            assert not torch.is_inference_mode_enabled()
            assert not torch.is_autocast_enabled("cpu")
        assert torch.is_inference_mode_enabled()
        assert torch.is_autocast_enabled("cpu")


def test_weights_that_were_made_in_inference_mode() -> None:
    """They take no part in a derivative; without one they are scored, and a copy made outside is."""
    with torch.inference_mode():
        made = small_network()
    votes = MonteCarlo(0.2, draws=8)
    found = estimate(brittle.Classifier(made), inputs(2), votes)
    assert torch.equal(found.value, estimate(brittle.Classifier(network()), inputs(2), votes).value)
    with pytest.raises(ModelError, match=r"were created under torch.inference_mode\(\)") as caught:
        brittle.score(brittle.Classifier(made), (inputs(2), None), [Taylor(0.2)])
    assert caught.value.code == "parameter"


def test_lazy_layers_that_have_seen_no_input() -> None:
    lazy = nn.Sequential(nn.Flatten(), nn.LazyLinear(4), nn.LazyBatchNorm1d())
    with pytest.raises(ModelError, match=r"1.weight, 1.bias, .* call the model once on a batch of inputs") as caught:
        brittle.Classifier(lazy)
    assert caught.value.code == "weights"
    lazy(inputs(2))
    assert brittle.Classifier(lazy.eval())(inputs(2)).shape == (2, 4)
