"""Noisy copies dealt to groups: leaving one out is the mean without its draws."""

from __future__ import annotations

import torch
from helpers.inputs import SIGMA
from helpers.measured import pairs_of, slow_jacobian
from helpers.problems import inputs, small_network

import brittle
from brittle.noise import Gaussian


def test_leaving_out_a_group_is_the_mean_without_its_draws() -> None:
    network = small_network(dtype=torch.float64)
    x = inputs(1, dtype=torch.float64)
    linear = brittle.linearize(brittle.Classifier(network), x, noise=Gaussian(SIGMA), draws=6)
    assert linear.without_group is not None
    logits, gram = linear.without_group
    copies = pairs_of(x, "linearize", 6)[0]
    rest = copies[2:]  # without the first pair, which is the first of three groups
    jacobian = torch.stack([slow_jacobian(network, copy) for copy in rest]).mean(0)
    assert logits.shape[1] == 3
    assert torch.allclose(logits[0, 0], network(rest).mean(0), atol=1e-12)
    assert torch.allclose(gram[0, 0], jacobian @ jacobian.T, rtol=1e-10, atol=1e-12)
