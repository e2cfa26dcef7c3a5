"""From examples to the weights of a regressor, the same ones every time."""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor, nn

from brittle.detector.pseudo_margin.examples import Examples
from brittle.detector.pseudo_margin.recipe import Recipe
from brittle.detector.pseudo_margin.regressor import Regressor, blank
from brittle.errors import DataError, ParameterError
from brittle.model.evaluation_mode import standard_modes
from brittle.model.head import Head
from brittle.norms import DUAL_ORDER

HELD_OUT = 0.2
"""Share of the points that decides when to stop."""

PATIENCE = 20
"""Passes without improvement before it stops."""

_one_training = threading.Lock()


def train(recipe: Recipe, head: Head | None, examples: Examples) -> tuple[Recipe, Regressor]:
    """The regressor with the smallest held-out error, in evaluation mode, and its recipe.

    The number of threads makes no difference: one is used.

    Args:
        recipe: the settings; `best_epoch` and `validation_loss` are filled in.
        head: the last linear layer of the network, where its margins are read too.
        examples: what is learned.

    Raises:
        DataError: the error is never finite.
        ParameterError: the head does not take the features.
    """
    with standard_modes(torch.device("cpu")), _one_thread():
        return _train(recipe, head, examples)


def _train(recipe: Recipe, head: Head | None, examples: Examples) -> tuple[Recipe, Regressor]:
    generator = torch.Generator().manual_seed(recipe.seed)
    regressor = blank(recipe)
    _attach(regressor, head, recipe.norm)
    x, y = regressor.read(torch.from_numpy(examples.features)), torch.from_numpy(examples.shares).float()
    order = torch.randperm(len(x), generator=generator)
    held_out, training = order.tensor_split([max(1, round(HELD_OUT * len(x)))])
    _initialise(regressor, x[training], recipe.scale, generator)
    optimiser = torch.optim.Adam(regressor.parameters(), lr=recipe.rate)
    best, best_loss, kept = 0, math.inf, copy.deepcopy(regressor.state_dict())
    for epoch in range(1, recipe.epochs + 1):
        for rows in training[torch.randperm(len(training), generator=generator)].split(recipe.batch):
            optimiser.zero_grad()
            (regressor.share(x[rows]) - y[rows]).square().mean().backward()
            optimiser.step()
        with torch.no_grad():
            loss = float((regressor.share(x[held_out]) - y[held_out]).double().square().mean())
        if loss < best_loss:
            best, best_loss, kept = epoch, loss, copy.deepcopy(regressor.state_dict())
        if epoch - best >= PATIENCE:
            break
    if not math.isfinite(best_loss):
        raise DataError("too_few_points", f"the error is not finite after {recipe.epochs} passes; use a smaller rate")
    regressor.load_state_dict(kept)
    done = replace(recipe, best_epoch=best, validation_loss=best_loss)
    return done, regressor.requires_grad_(False).eval()


def _attach(regressor: Regressor, head: Head | None, norm: str | None) -> None:
    """Write the head and the distances between its rows into `regressor`."""
    if head is None:
        return
    weight = head.weight.detach().cpu().double()
    if weight.shape != regressor.head_weight.shape:
        found = f"{list(weight.shape)}, features of size {regressor.head_weight.shape[1]}"
        raise ParameterError(f"the head must take the features; found weights of shape {found}")
    order = float(DUAL_ORDER[norm or "l2"])
    regressor.head_weight.copy_(weight)
    regressor.head_bias.copy_(torch.zeros(len(weight)) if head.bias is None else head.bias.detach().cpu())
    regressor.lengths.copy_(torch.cdist(weight, weight, p=order, compute_mode="donot_use_mm_for_euclid_dist"))


def _initialise(regressor: Regressor, features: Tensor, scale: float, generator: torch.Generator) -> None:
    """He's uniform weights (He et al. 2015), no biases, the scale, and the standardisation of `features`."""
    with torch.no_grad():
        for layer in regressor.body:
            if isinstance(layer, nn.Linear):
                bound = math.sqrt(6.0 / layer.in_features)
                layer.weight.uniform_(-bound, bound, generator=generator)
                layer.bias.zero_()
        # The last layer starts near 0, so that the sigmoid starts in the middle and not where its slope vanishes.
        regressor.body[-1].weight.mul_(0.1)  # type: ignore[operator]
        regressor.scale.fill_(scale)
        std = features.std(dim=0, correction=0)
        regressor.mean.copy_(features.mean(dim=0))
        regressor.std.copy_(torch.where(std > 0, std, 1.0))


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread inside the block, because sums over several depend on how many there are."""
    with _one_training:  # the number is the process's: two at once would each put back what the other had set
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)
