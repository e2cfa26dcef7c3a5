"""Linear networks with known flip probabilities."""

from __future__ import annotations

import torch

SIGMA, SIZE = 0.3, 12


def margin_problem(network: torch.nn.Linear, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """`(g, dg)`: margins of one input and their gradients, without the predicted class."""
    with torch.no_grad():
        logits = network(x)
        top = int(logits.argmax())
        others = [number for number in range(len(logits)) if number != top]
        return logits[top] - logits[others], network.weight[top] - network.weight[others]
