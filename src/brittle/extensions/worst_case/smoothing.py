"""The smoothed classifier: what the counts of a run certify of the majority vote of its noisy copies."""

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
    r"""How far each point may move, in L2, before the majority vote of its noisy copies can change.

    $$r = \sigma \Phi^{-1}(\underline{p}), \qquad \underline{p} = \text{the counted lower end of } p_{robust}$$

    The smoothed classifier gives the class that most copies `x + e`, `e ~ N(0, sigma^2 I)`, get. Where more than half
    of them keep the prediction it is this class, and it stays the class at every `x'` nearer than `r`. Nearby the share
    that keeps it is known, too: `Phi(Phi^-1(p) - |x' - x| / sigma)` at least. No further pass is made.

    Validity: for every network, with probability `1 - (1 - confidence) / 2` or more at each point. It certifies the
    vote, not the prediction of the network itself, which may change at any distance. It holds for isotropic normal
    noise that is not clipped; where some coordinates have no noise, for changes of the others.

    References:
        Certified adversarial robustness via randomized smoothing, Jeremy Cohen, Elan Rosenfeld and J. Zico Kolter,
        2019, theorem 1, https://arxiv.org/abs/1902.02918

    Args:
        table: a run of classes.
        column: a flip probability by noisy copies; by default the one that speaks for the run.

    Returns:
        the radius of each point in pixel units, 0 where at most half of the copies surely keep the prediction; NaN
        without a number.

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
    column = column if column is not None else judge_of(table)
    if column is None or not column.judges:
        raise DataError("no_such_score", "no column counts noisy copies; score by monte_carlo or shrinkage")
    if not certifies(table, column):
        decided = table.record.model.decision or "class"
        clipped = ", clipped" if column.parameters.get("clip") else ""
        raise DataError(
            "no_such_score",
            f"a radius needs the predicted class under isotropic normal noise that is not clipped; the run has the "
            f"decision {decided} under {column.setting}{clipped}",
        )
    sigma = column.setting.sigma
    kept = 1.0 - column.rows["counted_high"].astype(float)
    return (sigma * pd.Series(special.ndtri(kept.clip(0.0, 1.0)), kept.index)).clip(lower=0.0).rename("smoothed_radius")


def judge_of(table: Table) -> Column | None:
    """The column by noisy copies that speaks for a run."""
    return typical([one for one in table.columns if one.judges])


def certifies(table: Table, column: Column) -> bool:
    """Whether the votes of a column are of classes, under isotropic normal noise that is not clipped."""
    sigma, noise = column.setting
    plain = noise == GAUSSIAN and sigma is not None and not column.parameters.get("clip")
    return table.record.model.decision is None and column.judges and plain
