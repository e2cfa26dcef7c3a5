"""The smoothed classifier: certified radii of the majority vote of noisy copies, from the counts of a run."""

from __future__ import annotations

import pandas as pd
from scipy import special

from brittle.analysis.columns import check_column
from brittle.errors import DataError
from brittle.store.columns import Column
from brittle.store.representative import typical
from brittle.store.settings import GAUSSIAN
from brittle.store.table import Table


def smoothed_radius(table: Table, column: Column | None = None) -> pd.Series:
    r"""Certify the L2 distance that each point may move before the majority vote of its noisy copies can change.

    $$r = \sigma \Phi^{-1}(\underline{p}), \qquad \underline{p} = \text{the counted lower end of } p_{robust}$$

    The smoothed classifier returns the class of most copies `x + e`, `e ~ N(0, sigma^2 I)`. If more than half of the
    copies keep the prediction, it returns this class, also at every `x'` nearer than `r`. At `x'` at least the share
    `Phi(Phi^-1(p) - |x' - x| / sigma)` of the copies keeps it. The radius takes no further pass.

    Validity: for every network, with probability `1 - (1 - confidence) / 2` or more at each point. It certifies the
    vote, not the prediction of the network itself, which may change at any distance. It holds for isotropic normal
    noise that is not clipped; if some coordinates have no noise, for changes of the others.

    References:
        Certified adversarial robustness via randomized smoothing, Jeremy Cohen, Elan Rosenfeld and J. Zico Kolter,
        2019, theorem 1, https://arxiv.org/abs/1902.02918

    Args:
        table: a run of classes.
        column: a flip probability by noisy copies; by default the representative of the run.

    Returns:
        the radius of each point in pixel units, 0 where the interval allows that half of the copies or fewer keep the
        prediction; NaN without a number.

    Raises:
        DataError: the decision is not the predicted class, or the column counts no copies, or its noise is clipped or
            other than isotropic and normal.
        ParameterError: `column` is no column.

    Example:
        >>> import brittle, torch
        >>> classifier = brittle.Classifier(lambda x: torch.cat([x, -x], 1), bounds=(-1, 1))
        >>> table = brittle.score(classifier, torch.tensor([[0.5], [0.01]]), "monte_carlo", sigma=0.25, limit=None)
        >>> [round(radius, 2) for radius in smoothed_radius(table)]
        [0.41, 0.0]
    """
    check_column("column", column)
    column = column if column is not None else representative_count(table)
    if column is None or not column.is_decisive:
        raise DataError("no_such_score", "no column counts noisy copies; score by monte_carlo or shrinkage")
    if not can_certify(table, column):
        decision = table.record.model.decision or "class"
        clipped = ", clipped" if column.parameters.get("clip") else ""
        raise DataError(
            "no_such_score",
            f"a radius needs the predicted class under isotropic normal noise that is not clipped; the run has the "
            f"decision {decision} under {column.setting}{clipped}",
        )
    sigma = column.setting.sigma
    low = 1.0 - column.rows["counted_high"].astype(float)
    return (sigma * pd.Series(special.ndtri(low.clip(0.0, 1.0)), low.index)).clip(lower=0.0).rename("smoothed_radius")


def representative_count(table: Table) -> Column | None:
    """Return the representative column of a run among those that count noisy copies."""
    return typical([column for column in table.columns if column.is_decisive])


def can_certify(table: Table, column: Column) -> bool:
    """Return whether a column counts votes for classes, under isotropic normal noise that is not clipped."""
    sigma, noise = column.setting
    plain = noise == GAUSSIAN and sigma is not None and not column.parameters.get("clip")
    return table.record.model.decision is None and column.is_decisive and plain
