"""The attack by which the accuracy of a trained network is told."""

from __future__ import annotations

import torch

from studies.train.measured import attacked_accuracy


def test_an_attack_finds_all_flips_of_a_linear_network() -> None:
    """Two classes and pixels in the middle: right under attack where the margin is above `epsilon ||w||_1`."""
    weight = torch.tensor([[1.0, -2.0, 0.5, 0.0]])
    last = torch.nn.Linear(4, 2, bias=False)
    network = torch.nn.Sequential(torch.nn.Flatten(), last)
    with torch.no_grad():
        last.weight.copy_(torch.cat([weight, torch.zeros(1, 4)]))
    x = 0.3 + 0.4 * torch.rand(1200, 1, 2, 2, generator=torch.Generator().manual_seed(0))
    margin = x.flatten(1) @ weight[0]
    y = (margin < 0).long()
    y[::10] = 1 - y[::10]
    correct = network(x).argmax(dim=1) == y
    accuracy = attacked_accuracy(network, x, y, 0.05)
    assert accuracy == float((correct & (margin.abs() > 0.05 * 3.5)).double().mean())
