"""Moments of the margins are those of the formula."""

from __future__ import annotations

import torch
from helpers.inputs import SIGMA
from helpers.measured import clean_of, pairs_of
from helpers.problems import inputs, small_network

import brittle
from brittle.measure import Sample
from brittle.noise import Gaussian


def test_moments_are_those_of_the_formula() -> None:
    network = small_network(dtype=torch.float64)
    x = inputs(2, dtype=torch.float64)
    classifier = brittle.Classifier(network)
    sampled = Sample(Gaussian(SIGMA), 20)(classifier, clean_of(classifier, x))
    copies = pairs_of(x, "sample", 20)
    for number in range(2):
        top = int(network(x[number : number + 1]).argmax())
        logits = network(copies[number])
        margins = logits[:, top : top + 1] - torch.cat((logits[:, :top], logits[:, top + 1 :]), dim=1)
        even, odd = (margins[::2] + margins[1::2]) / 2, (margins[::2] - margins[1::2]) / 2
        covariance = odd.T @ odd / 10 + (even - even.mean(0)).T @ (even - even.mean(0)) / 9
        assert torch.allclose(sampled.margins.spread.mean[number], even.mean(0), atol=1e-12)
        assert torch.allclose(sampled.margins.covariance[number], covariance, atol=1e-12)
        flipped = (margins <= 0).any(dim=1).view(10, 2).sum(1)
        assert sampled.votes.flips[number].tolist() == torch.bincount(flipped, minlength=3).tolist()
