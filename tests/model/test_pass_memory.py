"""What went through a network before is not sent again; what differs in one bit, or in what is beside it, is."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from brittle.model.inputs import ExtraInputs
from brittle.model.passes import PassMemory


class Network:
    def __init__(self) -> None:
        self.seen: list[Tensor] = []

    def __call__(self, inputs: Tensor, extra_inputs: ExtraInputs | None) -> Tensor:
        self.seen.append(inputs)
        shift = 0 if extra_inputs is None else extra_inputs.tensors["shift"][:, None]
        return inputs.double().flatten(1)[:, :2] * 3 + shift


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_only_new_rows_are_sent(dtype: torch.dtype) -> None:
    memory, network = PassMemory(), Network()
    inputs = (torch.arange(24).reshape(6, 4) % 7).to(dtype)
    inputs[5] = inputs[0]
    first = memory.outputs(network, inputs[:3], None, recall=True)
    again = memory.outputs(network, inputs, None, recall=True)
    assert torch.equal(first, inputs[:3].double()[:, :2] * 3)
    assert torch.equal(again, inputs.double()[:, :2] * 3)
    assert [len(rows) for rows in network.seen] == [3, 2]
    memory.outputs(network, inputs, None, recall=False)
    assert len(network.seen[-1]) == 6


def test_every_bit_counts() -> None:
    """A sign, the last bit of a number, two numbers that change places, and powers of two, whose bits end in zeros."""
    row = torch.tensor([0.0, 1.0, 2.0, 0.5])
    near = row.clone()
    near[1] = torch.nextafter(near[1], torch.tensor(9.0))
    others = [row * torch.tensor([-1, 1, 1, 1]), near, row.flip(0), row * 2, row / 2]
    memory, network = PassMemory(), Network()
    memory.outputs(network, row[None], None, recall=True)
    for _ in range(2):
        memory.outputs(network, torch.stack([row, *others]), None, recall=True)
    assert [len(rows) for rows in network.seen] == [1, len(others)]


def test_what_is_beside_an_input_counts() -> None:
    memory, network = PassMemory(), Network()
    inputs = torch.ones(3, 2)
    several = [ExtraInputs(tensors={"shift": torch.tensor(shift)}) for shift in ([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])]
    for extra_inputs in several:
        found = memory.outputs(network, inputs, extra_inputs, recall=True)
        assert found[:, 0].tolist() == (3 + extra_inputs.tensors["shift"]).tolist()
    assert [len(rows) for rows in network.seen] == [3, 1]


def test_where_gradients_are_recorded_all_rows_are_sent() -> None:
    memory, network = PassMemory(), Network()
    inputs = torch.rand(2, 2, requires_grad=True)
    for _ in range(2):
        assert memory.outputs(network, inputs, None, recall=True).requires_grad
    with torch.no_grad():
        memory.outputs(network, inputs, None, recall=True)
    assert len(network.seen) == 2
