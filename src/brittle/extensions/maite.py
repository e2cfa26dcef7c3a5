"""A metric of MAITE: the share of predictions that hold, over the inputs that an evaluation sends to the model."""

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
    """A metric of MAITE for image classification that wraps the model, as a metric does not see the inputs.

    It calls `model` and stores the inputs, after any augmentation, in memory; `compute` scores them:
    `maite.tasks.evaluate(model=metric, metric=metric, dataset=dataset)`. `table` is then the table of `brittle.score`.

    Args:
        model: an image classifier of MAITE.
        classifier: the model to score in its place, such as a `brittle.Classifier` of the network inside, with bounds.
        limit: a prediction holds if it is kept with this probability or more.
        options: options of `brittle.score`, such as `scores`, `noise`, `sigma`, `seed` and `out`.

    Raises:
        ParameterError: the number of predictions is not that of the images before them.
        DataError: the metric has no images.
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
        """Return the model's predictions and store the images."""
        self._sent = [deepcopy(image) for image in images]  # the model may change them, or the caller overwrite them
        return self._model(images)

    def update(self, predictions: Sequence[Any], targets: Sequence[Any], metadata: Sequence[Any], /) -> None:
        """Add the images of the last call, with their targets."""
        if len(self._sent) != len(predictions):
            raise ParameterError(
                f"{len(predictions)} predictions came after {len(self._sent)} images; give evaluate model=metric, too"
            )
        self._items += zip(self._sent, targets, metadata, strict=True)
        self._sent = ()

    def compute(self) -> dict[str, float]:
        """Return the mean of `p_robust` and the share of predictions that hold, with the ends of their intervals."""
        self.table = score(self._scored, dataset_points(self._items), **self._options)
        p_robust = 1.0 - column_for(self.table, self._limit).value.clip(0.0, 1.0)
        mean = mean_interval(p_robust, self.table.record.confidence)
        (holds,) = check(self.table, holds=0.0, limit=self._limit).verdicts
        values = {"p_robust": mean.mean, "p_robust_low": mean.low, "p_robust_high": mean.high}
        return values | {"holds": holds.value, "holds_low": holds.low, "holds_high": holds.high}
