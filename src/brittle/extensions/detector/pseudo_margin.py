"""The pseudo-margin: input margins learned from features, for networks whose logit margin does not follow them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import safetensors
import safetensors.torch
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from brittle.data import Points
from brittle.data.formats import as_points
from brittle.errors import ArtefactError, DataError, ModelError, ParameterError, StorageError
from brittle.estimate import Parameters, Status
from brittle.extensions.detector.criterion import check_table, margin_column
from brittle.extensions.detector.identity import Identity, Source
from brittle.extensions.detector.regressor import FEWEST, MarginRegressor, Recipe, train
from brittle.model.classifier import Classifier
from brittle.model.digest import state_digest
from brittle.model.head import Head
from brittle.scores.base import mark
from brittle.scores.one_pass import OnePass, OnePassScore
from brittle.scores.options import NO_OPTION
from brittle.store.strict_json import FormatProblem, convert, dump, parse_json, plain
from brittle.store.table import Table
from brittle.store.writing import write

__all__ = ["MarginRegressor", "PseudoMargin", "PseudoMarginScore", "Recipe"]

LAYERS, WIDTH = 5, 512
"""Hidden layers and their width, as in the paper."""

EPOCHS = 200
"""Maximum number of passes over the points."""

MOST_BYTES = 2**28
"""Size of the largest file that is read."""

Form = Literal["head", "paper"]
"""The inputs of a pseudo-margin: the features and the margins of the head, or the features alone."""

SUFFIX = ".safetensors"
"""Suffix of the file."""


@dataclass(frozen=True, eq=False, repr=False)
class PseudoMargin:
    r"""A small network from the features of a classifier to its input margins.

    $$\min_\theta \sum_i \bigl(\sigma(f_\theta((h_i - \mu) / s)) - \min(d_i / c, 1)\bigr)^2$$

    with features `h_i` (and the margins of the head to every class there, see `MarginRegressor`), input margins `d_i`,
    `sigma` the sigmoid, `f` a perceptron with `LAYERS` hidden layers of `WIDTH` and ReLU, `c` the scale
    (`regressor.SCALE_QUANTILE` of the finite margins), `mu` and `s` mean and standard deviation of each feature over
    the training share. Adam; the weights with the smallest squared error on a held-out share (`regressor.HELD_OUT`).

    The pseudo-margin of the paper has these layers and this loss, reads features alone, and has no `c`, `mu`, `s`.

    Validity: for points like the training points, and features of the same network. It ranks points; its value does
    not bound their margin. A detector may be calibrated only on points outside the training points.

    References:
        Detecting brittle decisions for free: leveraging margin consistency in deep robust classifiers, Jonas Ngnawé et
        al., 2024, section 3.3 and appendix B.4, https://arxiv.org/abs/2406.18451

    Attributes:
        recipe: inputs, sizes and training.
        regressor: the network, in evaluation mode.
        points: ids of the training points, if given; they belong to the data `recipe.data`.
    """

    recipe: Recipe
    regressor: MarginRegressor
    points: tuple[str, ...] = ()

    def __repr__(self) -> str:
        learned = self.recipe
        return (
            f"PseudoMargin({learned.points} points, {learned.features} features, norm={learned.norm!r}, "
            f"validation_loss={learned.validation_loss:.4g})"
        )

    @classmethod
    def fit(
        cls,
        features: Tensor | ArrayLike,
        margins: Tensor | ArrayLike,
        seed: int = 0,
        *,
        head: Head | None = None,
        norm: str | None = None,
        layers: int = LAYERS,
        width: int = WIDTH,
        epochs: int = EPOCHS,
    ) -> PseudoMargin:
        """Learn `margins` from `features`; the same arguments give the same weights, for every number of threads.

        Args:
            features: `[n, d]`.
            margins: `[n]`, in pixel units; infinite ones count as the scale, a point with NaN or None is dropped.
            seed: seed of the split, the initial weights and the order of the points.
            head: the last linear layer of the network: the regressor then also reads its margins to every class, in
                the dual of `norm` (L2 without a norm).
            norm: norm of the margins.
            layers: number of hidden layers.
            width: width of a hidden layer.
            epochs: maximum number of passes over the points.

        Raises:
            DataError: fewer than `regressor.FEWEST` points can be used, or no margin is finite and positive.
            ParameterError: the arrays do not fit each other, or a parameter is outside its range.
        """
        rows, distances = (
            np.asarray(part.detach().cpu().double() if isinstance(part, Tensor) else part, dtype=np.float64)
            for part in (features, margins)
        )
        if rows.ndim != 2 or distances.shape != rows.shape[:1]:
            shapes = f"{list(rows.shape)} and {list(distances.shape)}"
            raise ParameterError(f"expected features [n, d] and margins [n]; found {shapes}")
        if head is not None and head.weight.shape[1] != rows.shape[1]:
            raise ParameterError(
                f"the head must take features of size {rows.shape[1]}; it takes {head.weight.shape[1]}"
            )
        used = np.isfinite(rows).all(axis=1) & ~np.isnan(distances)
        if used.sum() < FEWEST:
            raise DataError("too_few_points", f"a pseudo-margin needs {FEWEST} points; found {used.sum()}")
        classes = 0 if head is None else len(head.weight)
        recipe = Recipe(rows.shape[1], classes, layers, width, seed, 0.0, int(used.sum()), norm)
        try:
            convert(Recipe, plain(recipe))
        except (TypeError, ValueError) as error:
            raise ParameterError(f"a pseudo-margin has no such settings: {error}") from error
        return cls(*train(recipe, head, torch.from_numpy(rows[used]), distances[used], epochs))

    @classmethod
    def fit_run(
        cls,
        table: Table,
        classifier: Classifier,
        points: Points | tuple[Any, Any] | Tensor,
        norm: str | None = None,
        seed: int = 0,
        *,
        form: Form = "head",
        **settings: Any,
    ) -> PseudoMargin:
        """Learn the input margins of a run from the features of the same points and the head's margins there.

        Masked margins are left out.

        Args:
            table: a run with one `input_margin` in `norm`.
            classifier: the model of the run.
            points: the data of the run, as `brittle.score` takes them; points that the run does not hold are left out.
            norm: norm of the margins, `l2`, `linf` or `l1`; by default that of the run.
            seed: as `fit`.
            form: `paper` reads the features alone, as in the paper, `head` also the margins of the head.
            settings: `layers`, `width` and `epochs`, as `fit`.

        Raises:
            DataError: the run holds no such margins, too few points, or is of other data than `points`.
            ModelError: `classifier` is another model or preprocesses otherwise, or has no last linear layer.
            ParameterError: `table` is no table, `classifier` no classifier, or there is no such form.
        """
        if form not in get_args(Form):
            raise ParameterError(f"form must be one of {', '.join(get_args(Form))}; found {form!r:.60}")
        check_table(table)
        model, column = Identity.of_run(table.record.model), margin_column(table, norm)
        differing = model.differences(Identity.of_classifier(classifier))
        if differing:
            raise ModelError("other_model", f"the run is of another model or preprocessing: {differing}")
        points = as_points(points, classifier.bounds)
        run_source, data_source = Source.of(vars(table.record.data)), Source.of(points.provenance)
        if not run_source.is_same(data_source):
            reason = f"the run is of the data {run_source}; found {data_source}; give those of the run"
            raise DataError("runs_differ", reason)
        rows = column.rows[column.value.notna() & (column.status != Status.MASKED.slug)]
        margins_by_id = dict(zip(rows.index, rows["value"], strict=True))
        ids, features = _observe(classifier, points, margins_by_id)
        settings |= {"norm": column.parameters["norm"], "head": classifier.head if form == "head" else None}
        pseudo_margin = cls.fit(features, [margins_by_id[point] for point in ids], seed, **settings)
        recipe = replace(pseudo_margin.recipe, model=model.state_sha256, data=data_source)
        return replace(pseudo_margin, points=tuple(ids), recipe=recipe)

    @property
    def score(self) -> PseudoMarginScore:
        """Score for `brittle.score`."""
        return PseudoMarginScore(self)

    @cached_property
    def digest(self) -> str:
        """sha256 of the weights."""
        return state_digest(self.regressor)

    def predict(self, features: Tensor | ArrayLike) -> Tensor:
        """Return the pseudo-margins of `features` `[B, d]`: `[B]`, double precision, NaN if a feature is not finite."""
        rows = features if isinstance(features, Tensor) else torch.from_numpy(np.asarray(features, np.float32))
        if rows.dim() != 2 or rows.shape[1] != self.recipe.features:
            raise ParameterError(f"expected [B, {self.recipe.features}], found {list(rows.shape)}")
        with torch.no_grad():
            return self.regressor(rows.to(self.regressor.mean.device))

    def learned_from(self, source: Source) -> tuple[str, ...]:
        """Return the ids of the training points, as far as they may belong to `source`."""
        data = self.recipe.data
        return self.points if data is not None and data.may_share(source) else ()

    def check_model(self, model: str | None) -> None:
        """Raise if the digest of the weights of `model` is known and differs from the digest of the recipe."""
        expected = self.recipe.model
        if None not in (expected, model) and expected != model:
            raise ModelError(
                "other_model",
                f"the pseudo-margin was learned from the model {expected}; found {model}; learn one for this model",
            )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write weights, recipe and points to the `.safetensors` file `path`, and return that path.

        Raises:
            ParameterError: the file name ends otherwise.
            StorageError: it cannot be written.
        """
        path = Path(path)
        if path.suffix != SUFFIX:
            raise ParameterError(f"the file must end in {SUFFIX}; found {path.name!r}")
        weights = {name: tensor.contiguous() for name, tensor in self.regressor.state_dict().items()}
        write(path, safetensors.torch.save(weights, {"learned": dump(_Metadata(self.recipe, self.points))}))
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PseudoMargin:
        """Read a pseudo-margin; nothing in the file is run.

        Raises:
            ArtefactError: the file holds anything else.
            StorageError: it cannot be read.
        """
        path = Path(path)
        try:
            with path.open("rb") as file:
                content = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise StorageError("unreadable", f"{path} cannot be read: {error.strerror or error}") from error
        try:
            return _decode(content)
        except REFUSED as error:
            why = str(error).partition(chr(10))[0]
            raise ArtefactError("file_refused", f"{path} is not a pseudo-margin: {why:.400}; train it again") from error


@dataclass(frozen=True)
class _Metadata:
    """The metadata of a file, beside the weights."""

    recipe: Recipe
    points: tuple[str, ...]


REFUSED = (
    safetensors.SafetensorError, LookupError, TypeError, ValueError, RuntimeError, OverflowError
)  # fmt: skip
"""Errors from reading a file that is no pseudo-margin; the last five from types or shapes unknown to PyTorch."""


def _decode(content: bytes) -> PseudoMargin:
    if len(content) > MOST_BYTES:
        raise FormatProblem(f"it has more than {MOST_BYTES:,} bytes")
    weights = safetensors.torch.load(content)
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])  # safetensors has validated it
    metadata = convert(_Metadata, parse_json((header.get("__metadata__") or {}).get("learned", "")))
    recipe, points = metadata.recipe, metadata.points
    if (len(points) == 0) != (recipe.data is None):
        raise FormatProblem(f"it names {len(points)} points of the data {recipe.data}")
    regressor = MarginRegressor.blank(recipe)
    expected, actual = (
        {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in state.items()}
        for state in (regressor.state_dict(), weights)
    )
    if differing := sorted({name for name, _ in actual.items() ^ expected.items()}):
        raise FormatProblem(f"its weights are not those of its recipe: {', '.join(differing[:5])!r:.200}")
    for name, tensor in weights.items():
        if not bool(tensor.isfinite().all() and (name not in ("std", "scale") or (tensor > 0).all())):
            raise FormatProblem(f"{name} holds numbers that it cannot have")
    regressor.load_state_dict(weights, assign=True)
    return PseudoMargin(recipe, regressor.requires_grad_(False).eval(), points)


def _observe(
    classifier: Classifier, points: Points, margins_by_id: Mapping[Any, float], rows: int = 64
) -> tuple[list[str], Tensor]:
    """Return ids and features `[n, d]` of the points in `margins_by_id`."""
    ids, features = [], []
    with classifier.evaluating(), torch.no_grad():
        for batch in points.batches(rows):
            positions = [position for position, point in enumerate(batch.ids) if point in margins_by_id]
            if positions:
                ids += [batch.ids[position] for position in positions]
                features.append(classifier.observe(batch.inputs[positions])[1].double().cpu())
    if not ids:
        raise DataError("runs_differ", "none of the points has a margin in the run; give the data of the run")
    return ids, torch.cat(features)


@dataclass(frozen=True)
class PseudoMarginScore(OnePassScore):
    """A pseudo-margin as a score: `PseudoMargin.predict` of the features of the clean pass, in pixel units.

    Validity: that of the pseudo-margin. The interval has no width.

    Source: Ngnawé et al., Detecting brittle decisions for free (NeurIPS 2024), section 3.3.
    """

    learned: PseudoMargin = field(metadata=NO_OPTION)

    name: ClassVar[str] = "pseudo_margin"
    title: ClassVar[str] = "Pseudo-margin"
    quantity: ClassVar[str] = "distance"
    reference: ClassVar[str] = "Ngnawé et al. (NeurIPS 2024), section 3.3"
    uses_features: ClassVar[bool] = True
    explanation: ClassVar[str] = "A stand-in for the input margin, learned from the features of other points."

    @property
    def parameters(self) -> Parameters:
        """The digest of the weights and, if known, the norm of the learned margins."""
        norm = self.learned.recipe.norm
        digest: Parameters = {"sha256": self.learned.digest}
        return digest if norm is None else digest | {"norm": norm}

    def value(self, one_pass: OnePass) -> Tensor:
        return self.learned.regressor(one_pass.features_and_weight[0])

    def checked_value(self, one_pass: OnePass) -> Tensor:
        """Compute `value` on the device of the weights, after a check of the number of features."""
        return self.learned.predict(one_pass.features_and_weight[0])

    @property
    def network(self) -> nn.Module:
        return self.learned.regressor

    def judge(self, status: Tensor, value: Tensor) -> Tensor:
        """Features that are not finite have no margin."""
        return mark(status, ~value.isfinite(), Status.NONFINITE_LOGITS)
