"""Whether every byte of a record is claimed by a tensor."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from helpers.artefacts import refused
from torch import nn

from brittle.model.loading.load import load_model


class Views(nn.Module):
    """Tied weights, strided and empty tensors, half precision, weights that nothing reads: all of their own."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.weight = nn.Parameter(torch.randn(3, 4).half())
        self.transposed = nn.Parameter(torch.randn(4, 3).T)
        self.tied, self.unread = self.weight, nn.Parameter(torch.randn(5))
        halves = torch.randn(6)
        self.first, self.second = nn.Parameter(halves[:3]), nn.Parameter(halves[3:])
        self.register_buffer("empty", torch.zeros(0))
        self.register_buffer("spread", torch.randn(3).expand(2, 3))
        self.register_buffer("passing", torch.zeros(3), persistent=False)
        self.scalar = torch.tensor(2.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self.weight.float() + self.tied.float() + self.transposed
        bias = self.first + self.second + self.spread[0] + self.passing + self.empty.sum()  # pyright: ignore[reportCallIssue, reportIndexIssue, reportOperatorIssue] a layer of a known kind
        return x.flatten(1) @ weight.T * self.scalar + bias


def test_tensors_of_their_own_are_no_surplus(tmp_path: Path) -> None:
    """However they lie; the inputs for the export may be part of something larger."""
    sample = torch.rand(50, 1, 2, 2)[:3]
    program = torch.export.export(Views().eval(), (sample,))
    with pytest.warns(UserWarning, match="No complete tensor"):  # the two halves are complete together
        torch.export.save(program, tmp_path / "net.pt2")
    loaded = load_model(tmp_path / "net.pt2")
    assert torch.equal(loaded.module(sample), Views().eval()(sample))


def test_a_part_of_a_larger_tensor_is_named(tmp_path: Path) -> None:
    """PyTorch would export all of it."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
    network[1].weight = nn.Parameter(torch.randn(10, 4)[:3])
    program = torch.export.export(network.eval(), (torch.rand(3, 1, 2, 2),))
    with pytest.warns(UserWarning, match="No complete tensor"):
        torch.export.save(program, tmp_path / "net.pt2")
    refused("archive_surplus", r"112 bytes beside '1.weight', .*\(tensor\.clone\(\)", load_model, tmp_path / "net.pt2")
