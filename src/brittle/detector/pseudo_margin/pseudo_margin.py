"""The pseudo-margin: input margins learned from features, for networks whose logit margin does not follow them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike
from torch import Tensor

from brittle.data import Points, as_points
from brittle.detector.identity import Identity, Source
from brittle.detector.known_points import check_table, norm_of
from brittle.detector.pseudo_margin.file import read, write
from brittle.detector.pseudo_margin.learned import (
    BATCH,
    EPOCHS,
    LAYERS,
    RATE,
    WIDTH,
    LearnedMargin,
    PseudoMarginScore,
    Recipe,
)
from brittle.detector.pseudo_margin.training import Examples, as_arrays, known_margins, observe, train
from brittle.errors import DataError, ModelError, ParameterError
from brittle.model.classifier import Classifier
from brittle.model.head import Head
from brittle.store.table import Table


class PseudoMargin(LearnedMargin):
    r"""A small network from the features of a classifier to its input margins.

    $$\min_\theta \sum_i \bigl(\sigma(f_\theta((h_i - \mu) / s)) - \min(d_i / c, 1)\bigr)^2$$

    with features `h_i` (and the margins of the head to every class there, see `Regressor`), input margins `d_i`,
    `sigma` the sigmoid, `f` a perceptron with `LAYERS` hidden layers of `WIDTH` and ReLU, `c` the scale
    (`training.SCALE_QUANTILE` of the finite margins), `mu` and `s` mean and standard deviation of each feature over the
    training share. Adam; the weights of the pass with the smallest squared error on a held-out share of
    `training.HELD_OUT` are kept.

    Validity: for points like those it was trained on, of the network whose features they are. It ranks points; its
    value is no bound on their margin. It may only be calibrated on points that it was not trained on.

    References:
        Detecting brittle decisions for free: leveraging margin consistency in deep robust classifiers, Jonas Ngnawé et
        al., 2024, section 3.3 and appendix B.4, https://arxiv.org/abs/2406.18451
        Addressing failure prediction by learning model confidence, Charles Corbière et al., 2019,
        https://arxiv.org/abs/1910.04851

    Attributes: those of `brittle.detector.pseudo_margin.learned.LearnedMargin`.
    """

    @classmethod
    def fit(
        cls,
        features: Tensor | ArrayLike,
        margins: Tensor | ArrayLike,
        seed: int = 0,
        *,
        head: Head | None = None,
        points: Sequence[str] = (),
        layers: int = LAYERS,
        width: int = WIDTH,
        epochs: int = EPOCHS,
        batch: int = BATCH,
        rate: float = RATE,
        norm: str | None = None,
        model: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> PseudoMargin:
        """Learn `margins` from `features`; the same arguments give the same weights, for every number of threads.

        Args:
            features: `[n, d]`.
            margins: `[n]`, in pixel units; infinite ones count as the scale, a point with NaN or None is dropped.
            seed: of the split, the first weights and the order of the points.
            head: the last linear layer of the network: its margins to every class are read as well, in the dual of
                `norm` (L2 where that is not said).
            points: ids of the points, `[n]`, so that a detector is not calibrated on them; `data` must be given too.
            layers: hidden layers.
            width: of each.
            epochs: most passes over the points.
            batch: points in a step.
            rate: Adam's step size.
            norm: of the margins.
            model: sha256 of the classifier's weights, for the record.
            data: provenance of the data that the ids are of (`brittle.data.Points.provenance`).

        Raises:
            DataError: fewer than `learned.FEWEST` points can be used, or no margin is finite and positive.
            ParameterError: the arrays do not fit each other, or a parameter is outside its range.
        """
        rows, distances = as_arrays(features, margins, points)
        if len(points) and data is None:
            raise ParameterError("ids of points say nothing without their data; give their provenance too")
        examples = Examples.of(rows, distances)
        recipe = Recipe(
            features=rows.shape[1],
            classes=0 if head is None else len(head.weight),
            layers=layers,
            width=width,
            scale=examples.scale,
            seed=seed,
            epochs=epochs,
            batch=batch,
            rate=rate,
            best_epoch=0,
            validation_loss=0.0,
            points=int(examples.used.sum()),
            dropped=int((~examples.used).sum()),
            clipped=examples.clipped,
            norm=norm,
            model=model,
            data=Source.of(data) if len(points) and data is not None else None,
        )
        used = tuple(point for point, one in zip(points, examples.used.tolist(), strict=False) if one)
        return cls(*train(recipe, head, examples), used)

    @classmethod
    def fit_run(
        cls,
        table: Table,
        classifier: Classifier,
        points: Points | tuple[Any, Any] | Tensor,
        norm: str | None = None,
        seed: int = 0,
        **settings: Any,
    ) -> PseudoMargin:
        """Learn the input margins of a run from the features of the same points and the head's margins there.

        Masked margins are left out. `head=None` reads the features alone, as the paper does.

        Args:
            table: a run with one `input_margin` in `norm`.
            classifier: the model of the run.
            points: the data of the run, as `brittle.score` takes them; points that the run does not hold are left out.
            norm: of the margins, `l2`, `linf` or `l1`; by default the one that the run holds them in.
            seed: as `fit`.
            settings: the other arguments of `fit`.

        Raises:
            DataError: the run holds no such margins, too few points, or is of other data than `points`.
            ModelError: `classifier` is another model or preprocesses otherwise, or has no last linear layer.
            ParameterError: `table` is no table or `classifier` no classifier.
        """
        check_table(table, "table")
        model, norm = Identity.of_run(table.record), norm_of(table, norm)
        differing = model.differences(Identity.of_classifier(classifier))
        if differing:
            raise ModelError("other_model", f"the run is of another model or preprocessing: {differing}")
        points = as_points(points, classifier.bounds)
        ours, theirs = Source.of_run(table.record), Source.of(points.provenance)
        if not ours.same(theirs):
            raise DataError("runs_differ", f"the run is of the data {ours}; found {theirs}; give those of the run")
        known = known_margins(table, norm)
        ids, features = observe(classifier, points, known)
        margins = [known[point] for point in ids]
        known_facts = {"norm": norm, "model": model.state_sha256, "data": points.provenance, "head": classifier.head}
        return cls.fit(features, margins, seed, points=ids, **(known_facts | settings))

    @property
    def score(self) -> PseudoMarginScore:
        """The pseudo-margin as a score that `brittle.score` computes."""
        return PseudoMarginScore(self)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write weights, recipe and points to the `.safetensors` file `path`, and give that path.

        Raises:
            StorageError: it cannot be written.
        """
        return write(path, self.recipe, self.regressor, self.points)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PseudoMargin:
        """Read a pseudo-margin; nothing in the file is run.

        Raises:
            ArtefactError: the file holds anything else.
            ModelError: it cannot be read.
        """
        return cls(*read(path))


def check_pseudo_margin(found: PseudoMargin | None) -> None:
    """Raise unless `found` is a pseudo-margin, or None.

    Raises:
        ParameterError: it is something else.
    """
    if not isinstance(found, PseudoMargin | None):
        kind = type(found).__name__
        raise ParameterError(
            f"expected a brittle.PseudoMargin, found {kind}; PseudoMargin.load reads one from its file"
        )
