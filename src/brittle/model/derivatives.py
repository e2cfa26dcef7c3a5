"""Derivatives of what a model gives for each row, with respect to that row's input."""

from __future__ import annotations

import torch
from torch import Tensor

from brittle.errors import ModelError
from brittle.model.failures import NO_SECOND, WITHOUT_SECOND, differentiates_once, failures_in_one_sentence
from brittle.model.turns import PASSES


def gradient_of(
    values: Tensor, inputs: Tensor, device: torch.device, *, keep: bool, differentiable: bool
) -> Tensor | None:
    """Gradient of each row's value; None where it does not depend on the input. Arguments as `Classifier.gradient`.

    Raises:
        ModelError: the model fails, or its gradient cannot be differentiated though it shall be.
    """
    gradient = _derivative("differentiated at", values, inputs, device, keep or differentiable, differentiable)
    if gradient is not None and differentiable and differentiates_once(gradient):
        raise ModelError(
            "not_differentiable",
            f"{NO_SECOND} (it is marked as differentiable once); {WITHOUT_SECOND}",
        )
    return gradient


def hessian_product_of(gradient: Tensor, inputs: Tensor, along: Tensor, device: torch.device, *, keep: bool) -> Tensor:
    """Second derivatives of each row's value along a direction. Arguments as `Classifier.hessian_product`.

    Raises:
        ModelError: an operation of the model has no second derivative.
    """
    slope = (gradient * along).flatten(1).sum(dim=1)
    try:
        product = _derivative("differentiated twice at", slope, inputs, device, keep, False)
    except ModelError as error:
        if error.code != "model_failed":
            raise
        reason = str(error.__cause__).partition("\n")[0].rstrip(".")
        raise ModelError("not_differentiable", f"{NO_SECOND} ({reason}); {WITHOUT_SECOND}") from error
    return torch.zeros_like(inputs) if product is None else product


def _derivative(
    what: str, values: Tensor, inputs: Tensor, device: torch.device, keep: bool, differentiable: bool
) -> Tensor | None:
    """Derivative of each row's value; None where it does not depend on the input."""
    if not values.requires_grad:
        return None
    # Seeds that require gradients make operations that differentiate once show up in the graph of the gradient.
    seeds = torch.ones_like(values, requires_grad=differentiable)
    with PASSES.together(), failures_in_one_sentence(what, inputs, device):
        # Of one number: to hand over the seeds themselves would import SymPy, a third of a second in every process.
        total = torch.dot(values, seeds)
        return torch.autograd.grad(total, inputs, retain_graph=keep, create_graph=differentiable, allow_unused=True)[0]
