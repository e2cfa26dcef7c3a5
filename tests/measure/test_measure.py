"""Measurements together: what they share, and what is refused."""

from __future__ import annotations

import pytest
import torch
from helpers.inputs import SIGMA
from helpers.measured import COUNT, IDS
from helpers.problems import inputs, small_classifier
from scipy import stats

import brittle
from brittle.measure import take
from brittle.measure.forward import look
from brittle.run import plan
from brittle.scores import MMSE, FirstOrderMargin, MonteCarlo, Taylor, TaylorMVS


def test_a_sweep_over_sigma_costs_one_jacobian() -> None:
    scores = [kind(sigma) for kind in (Taylor, TaylorMVS) for sigma in torch.linspace(0.01, 1.0, 20).tolist()]
    needs = plan([*scores, FirstOrderMargin()])
    assert len(needs) == 1
    classifier = small_classifier()
    clean = look(classifier, inputs(COUNT), IDS, 0, differentiate=True)
    take(needs, classifier, clean)
    assert classifier.passes == COUNT * (1 + 4)


def test_rows_in_a_pass_do_not_matter() -> None:
    classifier = small_classifier()
    x = inputs(COUNT)
    scores = [MonteCarlo(SIGMA, draws=40), MMSE(SIGMA, draws=6)]
    values = []
    for rows in (1, 7, 500):
        measured = take(plan(scores), classifier, look(classifier, x, IDS, 0, rows=rows))
        values.append(torch.cat([score.estimate(measured, 0.99).value for score in scores]))
    assert all(torch.allclose(value, values[0], atol=1e-5) for value in values)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_copies_are_as_fine_as_the_model(dtype: torch.dtype) -> None:
    """A model of double precision, at a point where single precision has steps of 128: the flip is a normal tail.

    The interval at confidence 0.9999 of 1,000 copies, so a false alarm in 10,000 for each; the seed is fixed.
    """
    network = torch.nn.Linear(1, 2).double()
    base, gap, sigma = 1.7e9, 30.0, 40.0
    network.weight.data = torch.tensor([[1.0], [0.0]], dtype=torch.float64)
    network.bias.data = torch.tensor([-base - gap, 0.0], dtype=torch.float64)
    x = torch.tensor([[base]], dtype=dtype)
    assert float(x) == base
    score = MonteCarlo(sigma=sigma, draws=1000)
    found = score(brittle.Classifier(network, bounds=None), x, confidence=0.9999)
    assert float(found.low) < stats.norm.sf(gap / sigma) < float(found.high)
