"""What a pseudo-margin is learned from, and the way from there to the same weights every time."""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from brittle.data import Points
from brittle.detector.known_points import margin_entry, rows_by_point
from brittle.detector.pseudo_margin.learned import FEWEST, Recipe, Regressor, blank
from brittle.errors import DataError, ParameterError
from brittle.estimate import Status
from brittle.model.classifier import Classifier
from brittle.model.evaluation_mode import standard_modes
from brittle.model.head import Head
from brittle.norms import DUAL_ORDER
from brittle.store.table import Table

SCALE_QUANTILE = 0.99
"""The margin scale is this quantile of the finite margins, so that one far point does not flatten the others."""

HELD_OUT = 0.2
"""Share of the points that decides when to stop."""

PATIENCE = 20
"""Passes without improvement before it stops."""

_one_training = threading.Lock()


class Examples(NamedTuple):
    """Points that can be learned from.

    Attributes:
        features: `[n, d]`, finite.
        shares: their margins as shares of the scale, `[n]`, from 0 to 1.
        scale: margin at which the output saturates.
        used: which of the points that were given these are, `[N]`.
        clipped: how many of them have a larger margin.
    """

    features: NDArray[np.float64]
    shares: NDArray[np.float64]
    scale: float
    used: NDArray[np.bool_]
    clipped: int

    @classmethod
    def of(cls, features: NDArray[np.float64], margins: NDArray[np.float64]) -> Examples:
        """The usable ones among points with `features` `[N, d]` and `margins` `[N]`."""
        used = np.isfinite(features).all(axis=1) & ~np.isnan(margins)
        finite = margins[used & np.isfinite(margins)]
        if used.sum() < FEWEST:
            raise DataError("too_few_points", f"a pseudo-margin needs {FEWEST} points; found {used.sum()}")
        scale = float(np.quantile(finite, SCALE_QUANTILE)) if finite.size else 0.0
        if scale <= 0.0:
            raise DataError(
                "no_such_score", f"none of {finite.size} finite margins is positive; nothing can be learned"
            )
        shares = np.clip(margins[used] / scale, 0.0, 1.0)
        return cls(features[used], shares, scale, used, int((margins[used] > scale).sum()))


def as_arrays(
    features: Tensor | ArrayLike, margins: Tensor | ArrayLike, points: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Features `[n, d]` and margins `[n]`, float64."""
    rows, distances = (
        np.asarray(part.detach().cpu().double() if isinstance(part, Tensor) else part, dtype=np.float64)
        for part in (features, margins)
    )
    if rows.ndim != 2 or distances.shape != rows.shape[:1] or len(points) not in (0, len(rows)):
        raise ParameterError(
            f"expected features [n, d], margins [n] and n points; found {list(rows.shape)}, "
            f"{list(distances.shape)} and {len(points)} points",
        )
    return rows, distances


def known_margins(table: Table, norm: str) -> dict[str, float]:
    """Margin of each point of a run that has one, by id, the masked ones left out."""
    rows = rows_by_point(table, margin_entry(table, norm, None))
    known = rows.loc[rows["value"].notna() & (rows["status"] != Status.MASKED.slug), "value"]
    return {str(point): float(margin) for point, margin in known.items()}


def observe(
    classifier: Classifier, points: Points, known: Mapping[str, float], rows: int = 64
) -> tuple[list[str], Tensor]:
    """Ids and features `[n, d]` of those points that `known` names."""
    ids, features = [], []
    with classifier.evaluating(), torch.no_grad():
        for batch in points.batches(rows):
            wanted = [position for position, point in enumerate(batch.ids) if point in known]
            if wanted:
                ids += [batch.ids[position] for position in wanted]
                features.append(classifier.observe(batch.inputs[wanted])[1].double().cpu())
    if not ids:
        raise DataError("runs_differ", "none of the points has a margin in the run; give the data of the run")
    return ids, torch.cat(features)


def train(recipe: Recipe, head: Head | None, examples: Examples) -> tuple[Recipe, Regressor]:
    """The regressor with the smallest held-out error, in evaluation mode, and its recipe.

    The number of threads makes no difference: one is used.

    Args:
        recipe: the settings; `best_epoch` and `validation_loss` are filled in.
        head: the last linear layer of the network, where its margins are read too.
        examples: what is learned.
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
