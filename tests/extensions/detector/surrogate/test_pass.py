"""The pass of a wrapped surrogate: the definition, computed anew from the file, and what fails closed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch
from helpers.calibrated import counted, exported
from numpy.typing import NDArray
from scipy.stats import norm
from torch import nn

import brittle
from brittle.analysis.correlation import kendall_tau
from brittle.data import array_points
from brittle.extensions.detector.surrogate import Surrogate
from brittle.scores import LogitMargin, MonteCarlo

CLASSES, ALPHA = 4, 0.2


class Small(nn.Module):
    """Network with a hidden layer; with `blocked`, the logit of the last class is minus infinity where `x_0 > 0.9`."""

    def __init__(self, blocked: bool = False) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(3)
        self.hidden, self.head = nn.Linear(5, 6), nn.Linear(6, CLASSES)
        self.blocked = blocked
        with torch.no_grad():
            for tensor in self.parameters():
                tensor.copy_(torch.randn(tensor.shape, generator=generator))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits = self.head(self.hidden(x).relu())
        if not self.blocked:
            return logits
        last = torch.where(x[:, :1] > 0.9, -math.inf, 0.0)
        return logits + torch.cat((torch.zeros_like(logits[:, 1:]), last), dim=1)


def inputs(count: int, seed: int) -> torch.Tensor:
    return torch.rand(count, 5, generator=torch.Generator().manual_seed(seed))


def fitted(form: Any, sigmas: tuple[float, ...], network: nn.Module) -> Surrogate:
    x, subject = inputs(400, 0), brittle.Classifier(network, bounds=(0, 1))
    run = brittle.score(subject, x, [MonteCarlo(s, draws=40, limit=None) for s in sigmas], skip_doctor=True)
    return Surrogate.fit_run(run, subject, array_points(x, None, bounds=(0, 1)), alpha=ALPHA, form=form, epochs=20)


def definition(path: Path, x: torch.Tensor, form: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return probabilities and bounds of `Small` in double precision, by the formulas of the reference alone."""
    file = {name: tensor.astype(np.float64) for name, tensor in safetensors.numpy.load_file(path).items()}
    state = {name: tensor.double().numpy() for name, tensor in Small().state_dict().items()}
    h = np.maximum(x.double().numpy() @ state["hidden.weight"].T + state["hidden.bias"], 0.0)
    z = h @ state["head.weight"].T + state["head.bias"]
    rows = np.arange(len(z))
    t = z.argmax(axis=1)
    margins = (z[rows, t][:, None] - z) * file["reciprocals"][t]
    u = np.concatenate([*([h] if form == "head" else []), margins, np.log1p(np.sort(margins, axis=1)[:, :4])], axis=1)
    hidden = np.maximum(u @ file["hidden_weight"] + file["hidden_bias"][t], 0.0)
    o = hidden @ file["output_weight"] + file["output_bias"]
    falls = np.cumsum(np.logaddexp(0.0, o[:, 2:]), axis=1)
    p = 1.0 / (1.0 + np.exp(-np.concatenate((o[:, :1], o[:, :1] - falls), axis=1)))
    predictions, low = file["calibration.predictions"], file["calibration.low"]
    scores = np.sort((1.02 - low) / (1.02 - predictions), axis=0)
    rank = math.ceil(round((1.0 - ALPHA * (1.0 - 0.3)) * (len(low) + 1), 9))
    q = np.maximum(np.maximum.accumulate(scores[rank - 1]), 1.0)
    return p, np.maximum(1.02 - q * (1.02 - p), 0.0)


@pytest.mark.parametrize("form", ["margins", "head"])
@pytest.mark.parametrize("sigmas", [(0.3,), (0.1, 0.3, 1.0)])
def test_the_pass_is_the_definition(tmp_path: Path, form: str, sigmas: tuple[float, ...]) -> None:
    learned = fitted(form, sigmas, Small())
    fresh = inputs(500, 1)
    expected = definition(learned.save(tmp_path / "s.safetensors"), fresh, form)
    with torch.no_grad():
        outputs = learned.wrap(Small())(fresh)[1:]
    for values, truth in zip(outputs, expected, strict=True):
        assert values.numpy() == pytest.approx(truth, abs=1e-4)
        assert values.shape == (500, len(sigmas))
    assert (np.diff(outputs[1].numpy(), axis=1) <= 1e-12).all()


@pytest.mark.filterwarnings("ignore")  # the exporter of TorchScript warns, and needs no further package
@pytest.mark.parametrize("form", ["margins", "head"])
def test_logits_that_are_not_finite_have_no_bound(tmp_path: Path, form: str) -> None:
    """Nor inputs outside the bounds, ties and NaN, in the program and the ONNX file that were exported, too."""
    learned = fitted(form, (0.3,), Small())
    fresh = inputs(60, 2) * 0.5 + 0.2
    fresh[:4] = torch.tensor([math.nan, math.inf, -0.5, 0.95])[:, None]
    wrapped = learned.wrap(Small(blocked=form == "margins"))  # the same weights
    with torch.no_grad():
        wrapped(fresh[4:])
        outputs = [[part.numpy() for part in wrapped(fresh)]]
        outputs.append([part.numpy() for part in exported(wrapped, fresh[:5])(fresh)])
    onnxruntime = pytest.importorskip("onnxruntime")
    names: dict[str, Any] = {"input_names": ["inputs"], "output_names": ["logits", "p_robust", "bound"]}
    axes = {"inputs": {0: "batch"}}
    path = tmp_path / "bounded.onnx"
    torch.onnx.export(wrapped, (fresh[4:8],), path, dynamo=False, dynamic_axes=axes, **names)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    outputs.append(session.run(None, {"inputs": fresh.numpy()}))
    for _, p_robust, lower in outputs:
        infinite = form == "margins"
        assert (lower[: 4 if infinite else 3] == 0.0).all()
        assert np.isnan(p_robust[[0, 1, 3] if infinite else [0, 1]]).all()
        assert (lower[4:] > 0.0).any()
        assert lower[4:] == pytest.approx(outputs[0][2][4:], abs=1e-5)


@pytest.mark.parametrize("exponent", [-44, -40, -30, 30, 38])
def test_logits_of_any_size_teach(exponent: int) -> None:
    """From the smallest numbers of single precision to the largest."""
    network = Small()
    with torch.no_grad():
        network.head.bias.zero_()
        network.head.weight.mul_(10.0**exponent / 10.0)
        learned = fitted("margins", (0.1,), network)
        _, p_robust, lower = learned.wrap(network)(inputs(200, 5))
    assert learned.worth[0].tau > 0.3
    assert p_robust.isfinite().all()
    assert (lower > 0.0).any()


def test_a_tie_has_no_bound() -> None:
    network = nn.Linear(5, 5)
    with torch.no_grad():
        network.weight.copy_(torch.eye(5))
        network.bias.zero_()
        fresh = inputs(50, 4)
        fresh[:5] = 1.0 - torch.eye(5) * 0.9  # four are the largest
        _, p_robust, lower = fitted("margins", (0.1,), network).wrap(network)(fresh)
    assert p_robust.isfinite().all()
    assert (lower[:5] == 0.0).all()
    assert (lower[5:] > 0.0).any()


@pytest.mark.parametrize(("count", "draws"), [(100, 3), (400, 1)])
def test_the_order_of_the_logit_margin_is_kept_where_it_is_right(count: int, draws: int) -> None:
    """It is all that tells of noise: tau is near 1, from 50 points that teach, too."""
    taus = []
    for seed in range(draws):
        network = Small()
        subject, x = brittle.Classifier(network, bounds=(0, 1)), inputs(count, 10 + seed)
        run = brittle.score(subject, x, [LogitMargin()], skip_doctor=True)
        margin = run["logit_margin"].value.to_numpy()
        run = counted(run, norm.cdf(margin), 0.1, seed)
        learned = Surrogate.fit_run(run, subject, array_points(x, None, bounds=(0, 1)), alpha=0.3)
        fresh = inputs(1000, 90 + seed)
        with torch.no_grad():
            logits, p_robust, _ = learned.wrap(network)(fresh)
            largest, second = logits.topk(2, dim=1).values.unbind(1)
        truth = norm.cdf((largest - second).numpy())
        taus.append(kendall_tau(truth, p_robust[:, 0].numpy()))
    assert np.mean(taus) > 0.85
