"""Networks in 8 bits and in bfloat16: counting copies works; gradients work or are refused by name."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

import brittle
from brittle.errors import ModelError
from brittle.scores import Moments, MonteCarlo, Taylor

SIGMA = 0.3


@pytest.mark.filterwarnings("ignore:.*autograd kernel was not registered")
def test_networks_of_eight_bits_are_counted_row_by_row() -> None:
    """The scale of a dynamic activation is that of its batch, so other rows change the logits of a row.

    Counts of 400 copies each, of brittle and of a plain loop: 6 differences of which each lies beyond 5 of its
    deviations with probability 6e-7.
    """
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        torch.manual_seed(0)
        warnings.simplefilter("ignore")  # that eager quantization moves to torchao
        plain = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 3)).eval()
        network = torch.ao.quantization.quantize_dynamic(plain, {nn.Linear}, dtype=torch.qint8)
        x, copies = torch.rand(6, 16), torch.randn(6, 400, 16)
    with pytest.raises(ModelError) as caught:
        brittle.score(network, x, [MonteCarlo(SIGMA, limit=None)])
    assert caught.value.code == "batch_dependent"
    frame = brittle.score(network, x, [MonteCarlo(SIGMA, draws=400, limit=None)], batch_size=1).frame()
    for row, point in enumerate(x):
        predicted = int(network(point[None]).argmax())
        agreements = sum(int(network((point + SIGMA * noise)[None]).argmax()) == predicted for noise in copies[row])
        assert frame["predicted"][row] == predicted
        assert abs(frame["p_robust"][row] - agreements / 400) <= 5 * (3 * 0.25 / 400) ** 0.5
    with pytest.raises(ModelError) as caught:
        brittle.score(network, x, [Taylor(SIGMA)], batch_size=1)
    assert caught.value.code == "masked_gradient"


@pytest.mark.filterwarnings("ignore:low_precision", "ignore:nondeterministic")
def test_bfloat16_of_gpt2_is_near_single_precision() -> None:
    """Counts and gradients of a tiny GPT-2: rounding to 8 bits moves no mean by more than 0.05."""
    transformers = pytest.importorskip("transformers")
    words = {"vocab_size": 60, "n_positions": 16, "n_embd": 16, "n_layer": 2, "n_head": 2}
    config = transformers.GPT2Config(**words, num_labels=3, pad_token_id=0, bos_token_id=1, eos_token_id=1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = transformers.GPT2ForSequenceClassification(config).eval()
        nn.init.normal_(network.score.weight, std=2.0)
        x = torch.randn(20, 6, 16)
    scores = [MonteCarlo(SIGMA, draws=200, limit=None), Moments(SIGMA, draws=200), Taylor(SIGMA)]
    means = []
    for kind in (torch.float32, torch.bfloat16):
        classifier = brittle.Classifier(network.to(kind), bounds="none", perturb="inputs_embeds")
        table = brittle.score(classifier, x, scores)
        means.append(torch.tensor([column.value.mean() for column in table.columns]))
        assert table.record.model.dtype == str(kind).removeprefix("torch.")
    assert float(means[0].min()) > 0.02  # some copies flip
    assert float((means[0] - means[1]).abs().max()) <= 0.05
