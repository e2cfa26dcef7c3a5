"""Noise of tables: scales are learned from the data, and swapped values come from its rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from helpers.laws import MANY_ROWS, estimate

import brittle
from brittle.data.arrays import array_points
from brittle.errors import ParameterError
from brittle.noise import PerFeature, Stream, Swap
from brittle.scores import MMSE, Moments, MonteCarlo, Shrinkage, Taylor

DRAWS = 2000
NAMES = ["age", "income", "kind", "yes", "flat"]


def table(rows: int = 300) -> torch.Tensor:
    draw = np.random.default_rng(4)
    columns = (
        draw.normal(0.0, 2.0, rows), draw.normal(5.0, 0.01, rows), draw.integers(0, 6, rows), draw.integers(0, 2, rows),
        np.full(rows, 0.25),
    )  # fmt: skip
    return torch.from_numpy(np.stack(columns, axis=1))


def data(rows: int = 300):
    return array_points(table(rows), bounds=(-100, 100), feature_names=NAMES)


def network() -> torch.nn.Linear:
    linear = torch.nn.Linear(5, 2, dtype=torch.float64)
    with torch.no_grad():
        linear.weight.copy_(torch.tensor([[0.5, 30.0, 0.3, 0.1, 1.0], [0.0, 0.0, 0.0, 0.0, 0.0]]))
        linear.bias.copy_(torch.tensor([-150.5, 0.0]))
    return linear


def test_scales_are_those_of_the_columns_and_0_of_categories() -> None:
    noise = PerFeature.of(data(3000), 0.1)
    deviations = table(3000).numpy().std(axis=0)
    assert np.allclose(noise.scale.numpy()[:2], deviations[:2], rtol=1e-12)
    assert noise.scale[2:].tolist() == [0.0, 0.0, 0.0]
    assert noise.still == "kind, yes, flat"
    assert "kind, yes, flat unchanged" in noise.explanation


def truth(x: torch.Tensor) -> torch.Tensor:
    """Return `Phi(-|m| / s)`, `s^2 = sum_i (0.3 d_i w_i)^2` over the features that move, from the table itself."""
    weights, deviations = [0.5, 30.0], table().numpy().std(axis=0)
    spread = 0.3 * math.sqrt(sum((w * float(d)) ** 2 for w, d in zip(weights, deviations, strict=False)))
    margins = (x @ network().weight[0].detach() - 150.5).abs().tolist()
    return torch.tensor([0.5 * math.erfc(margin / spread / math.sqrt(2)) for margin in margins], dtype=torch.float64)


def test_linear_models_are_exact() -> None:
    """Intervals of sampled scores cover it at confidence 0.99; the seed is fixed."""
    x, noise = table()[:6], PerFeature.of(data(), 0.3)
    classifier = brittle.Classifier(network(), bounds=(-100, 100))
    expected = truth(x)
    assert torch.allclose(estimate(classifier, x, Taylor(noise=noise)).value, expected, rtol=1e-12, atol=1e-300)
    assert torch.allclose(estimate(classifier, x, MMSE(noise=noise, draws=10)).value, expected, rtol=1e-5)
    for kind in (MonteCarlo, Shrinkage, Moments):
        sampled = estimate(classifier, x, kind(noise=noise), rows=MANY_ROWS)
        assert ((sampled.low <= expected) & (expected <= sampled.high)).all()


def test_swapped_values_have_the_shares_of_the_rows() -> None:
    """A share of 2,000 copies is off by more than 6 standard errors once in 1e7 runs."""
    rows = torch.tensor([[1.0, 10.0], [1.0, 20.0], [3.0, 30.0], [4.0, 40.0]])
    copies = Stream(Swap(0.4, rows), torch.tensor([[0.0, 0.0]]), ["a"], 0, "test").copies(DRAWS)[0, :, 0]
    for column, shares in (
        (0, {0.0: 0.6, 1.0: 0.2, 3.0: 0.1, 4.0: 0.1}),
        (1, dict.fromkeys((10.0, 20.0, 30.0, 40.0), 0.1)),
    ):
        for value, share in shares.items():
            error = 6 * math.sqrt(share * (1 - share) / DRAWS)
            assert float((copies[:, column] == value).double().mean()) == pytest.approx(share, abs=error)
    joint = float(((copies[:, 0] > 0) & (copies[:, 1] > 0)).double().mean())
    assert joint == pytest.approx(0.16, abs=6 * math.sqrt(0.16 * 0.84 / DRAWS))


def test_only_the_chosen_columns_are_swapped() -> None:
    noise = Swap.of(data(), 1.0, ["kind"])
    copies = Stream(noise, table(1), ["a"], 0, "test").copies(50)[0, :, 0]
    assert torch.equal(copies[:, [0, 1, 3, 4]], table(1)[:, [0, 1, 3, 4]].expand(50, -1))
    assert set(copies[:, 2].tolist()) == {0.0, 1.0, 2.0, 3.0, 4.0, 5.0}
    assert noise != Swap.of(data(), 1.0)
    assert noise.parameters["rows"] != Swap.of(data(200), 1.0, ["kind"]).parameters["rows"]


@pytest.mark.parametrize("share", [0.0, 1.5, math.nan, True])
def test_a_share_is_a_probability(share: float) -> None:
    with pytest.raises(ParameterError, match="above 0 and at most 1"):
        Swap(share, torch.ones(2, 2))
