"""What a pseudo-margin is learned from: features and margins of the same points, given or those of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from brittle.data import Points
from brittle.detector.pseudo_margin.recipe import FEWEST
from brittle.errors import DataError, ParameterError
from brittle.estimate import INPUT_MARGIN, Status, parameters_json
from brittle.model.classifier import Classifier
from brittle.store.table import Table

SCALE_QUANTILE = 0.99
"""The margin scale is this quantile of the finite margins, so that one far point does not flatten the others."""


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
        """The usable ones among points with `features` `[N, d]` and `margins` `[N]`.

        Raises:
            DataError: fewer than `FEWEST` points can be used, or no margin is finite and positive.
        """
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
    """Features `[n, d]` and margins `[n]`, float64.

    Raises:
        ParameterError: they do not fit each other, or `points`.
    """
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
    """Margin of each point of a run that has one, by id, the masked ones left out.

    Raises:
        DataError: the run does not hold the margins in `norm` once.
    """
    fitting = [
        entry for entry in table.record.scores if entry.score == INPUT_MARGIN and entry.parameters.get("norm") == norm
    ]
    if len(fitting) != 1:
        labels = ", ".join(entry.label for entry in fitting) or "none"
        raise DataError("no_such_score", f"the run must hold one {INPUT_MARGIN} in {norm}; found {labels}")
    frame = table.long()
    parameters = parameters_json(fitting[0].parameters)
    wanted = (frame["score"] == INPUT_MARGIN) & (frame["parameters"] == parameters)
    rows = frame[wanted & frame["value"].notna() & (frame["status"] != Status.MASKED.slug)]
    return dict(zip(rows["point"], rows["value"], strict=True))


def observe(
    classifier: Classifier, points: Points, known: Mapping[str, float], rows: int = 64
) -> tuple[list[str], Tensor]:
    """Ids and features `[n, d]` of those points that `known` names.

    Raises:
        DataError: there are none.
    """
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
