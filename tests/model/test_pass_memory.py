"""What went through a network before is not sent again; what differs in one bit, or in what is beside it, is."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from brittle.model.aside import Aside
from brittle.model.pass_memory import PassMemory


class Network:
    def __init__(self) -> None:
        self.seen: list[Tensor] = []

    def __call__(self, inputs: Tensor, aside: Aside | None) -> Tensor:
        self.seen.append(inputs)
        shift = 0 if aside is None else aside.tensors["shift"][:, None]
        return inputs.double().flatten(1)[:, :2] * 3 + shift


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.float32, torch.float64])
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_bit_counts(dtype: torch.dtype) -> None:
    """A sign, the last bit of a number, two numbers that change places, and powers of two, whose bits end in zeros."""
    row = torch.tensor([0.0, 1.0, 2.0, 0.5], dtype=dtype)
    near = row.clone()
    near[1] = torch.nextafter(near[1], torch.tensor(9.0, dtype=dtype))
    others = [row * torch.tensor([-1, 1, 1, 1]), near, row.flip(0), row * 2, row / 2]
    memory, network = PassMemory(), Network()
    inputs = torch.stack([row, *others])
    memory.outputs(network, inputs[:1], None, recall=True)
    memory.outputs(network, inputs, None, recall=True)
    assert len(network.seen[1]) == len(others)
    memory.outputs(network, inputs, None, recall=True)
    assert len(network.seen) == 2


def test_what_is_beside_an_input_counts() -> None:
    memory, network = PassMemory(), Network()
    inputs = torch.ones(3, 2)
    asides = [Aside(tensors={"shift": torch.tensor(shift)}) for shift in ([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])]
    for aside in asides:
        found = memory.outputs(network, inputs, aside, recall=True)
        assert found[:, 0].tolist() == (3 + aside.tensors["shift"]).tolist()
    assert [len(rows) for rows in network.seen] == [3, 1]


def test_where_gradients_are_recorded_all_rows_are_sent() -> None:
    memory, network = PassMemory(), Network()
    inputs = torch.rand(2, 2, requires_grad=True)
    for _ in range(2):
        assert memory.outputs(network, inputs, None, recall=True).requires_grad
    with torch.no_grad():
        memory.outputs(network, inputs, None, recall=True)
    assert len(network.seen) == 2
