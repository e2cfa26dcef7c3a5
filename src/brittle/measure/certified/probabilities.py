"""Networks that end in class probabilities: what is bounded in their place, and how the classifier reads it."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from brittle.decisions import Decision, PredictedClass
from brittle.measure.certified.graph import Edge, Layer, UnsupportedLayer


def below_probabilities(
    layers: list[Layer], output: Edge, decision: Decision, dtype: torch.dtype
) -> tuple[Edge, Callable[[Tensor], Tensor]]:
    """What stands for class probabilities in margins, and the function from it to their logarithms.

    Classes are in the same order by their probabilities, by the logarithms of these, which the classifier compares, and
    by what a softmax at the end makes them of. Margins of the last are bounded where there is one, and otherwise those
    of the probabilities themselves. As these are at most 1, they are wrong by no more than their logarithms are.

    Args:
        layers: of the network.
        output: the edge of the probabilities.
        decision: what is decided from them.
        dtype: their precision, in which the smallest normal number stands for 0.

    Raises:
        UnsupportedLayer: another decision is taken from them than the largest. The others compare small probabilities,
            which underflow, or ones near 1, whose difference from it is rounded.
    """
    if not isinstance(decision, PredictedClass):
        raise UnsupportedLayer(
            f"probabilities from which {decision.label} is decided: let the model return the logits below them, "
            "without outputs=probs"
        )
    tiny = torch.finfo(dtype).tiny
    last = next((one for one in layers if Edge(one.name) == output), None)
    if last is not None and last.operator == "softmax" and last.args[1:] in ((1,), (-1,)):
        return last.args[0], lambda logits: logits.log_softmax(dim=1).clamp_min(math.log(tiny))
    return output, lambda probabilities: probabilities.clamp_min(tiny).log()
