"""A metric of MAITE: how many predictions hold, of the inputs that an evaluation sends through the model."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from brittle.analysis.decisions import column_for
from brittle.analysis.mean_interval import mean_interval
from brittle.analysis.rules import check
from brittle.data.datasets import dataset_points
from brittle.errors import ParameterError
from brittle.estimate import LIMIT
from brittle.run.scoring import score
from brittle.store.table import Table


class RobustnessMetric:
    """A metric of MAITE for image classification that is its own model, as a metric is not shown the inputs.

    It calls `model`, remembers what it was given, and scores these inputs, augmented where they are, when the metric is
    computed: `maite.tasks.evaluate(model=metric, metric=metric, dataset=dataset)`. They are held in memory until then,
    and `table` is what `brittle.score` gives of them.

    Args:
        model: an image classifier of MAITE.
        classifier: what is scored in its place, such as a `brittle.Classifier` of the network inside, with bounds.
        limit: a prediction holds where it is kept with this probability or more.
        options: of `brittle.score`, such as `scores`, `noise`, `sigma`, `seed` and `out`.

    Raises:
        ParameterError: predictions are not of as many images as were sent before them.
        DataError: no batch was taken.
    """

    def __init__(self, model: Any, classifier: Any = None, limit: float = LIMIT, **options: Any) -> None:
        self.metadata = {"id": "brittle"}
        self.table: Table | None = None
        self._model, self._scored = model, model if classifier is None else classifier
        self._limit, self._options = limit, options
        self.reset()

    def reset(self) -> None:
        """Forget all inputs."""
        self._sent: Sequence[Any] = ()
        self._items: list[tuple[Any, Any, Any]] = []

    def __call__(self, images: Sequence[Any], /) -> Sequence[Any]:
        """What the model says of some images."""
        self._sent = [deepcopy(one) for one in images]  # the model may change them, or their room be used again
        return self._model(images)

    def update(self, predictions: Sequence[Any], targets: Sequence[Any], metadata: Sequence[Any], /) -> None:
        """Take the images that were last sent, with their targets."""
        if len(self._sent) != len(predictions):
            raise ParameterError(
                f"{len(predictions)} predictions came after {len(self._sent)} images; give evaluate model=metric, too"
            )
        self._items += zip(self._sent, targets, metadata, strict=True)
        self._sent = ()

    def compute(self) -> dict[str, float]:
        """Mean of `p_robust`, and share of predictions that hold, for all such points, with the ends of intervals."""
        self.table = score(self._scored, dataset_points(self._items), **self._options)
        kept = 1.0 - column_for(self.table, self._limit).value.clip(0.0, 1.0)
        mean = mean_interval(kept, self.table.record.confidence)
        (holds,) = check(self.table, holds=0.0, limit=self._limit).verdicts
        found = {"p_robust": mean.mean, "p_robust_low": mean.low, "p_robust_high": mean.high}
        return found | {"holds": holds.value, "holds_low": holds.low, "holds_high": holds.high}
