"""A surrogate: a small network that learns from features what a run measured, the input margin or `p_robust`."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, get_args

import numpy as np
import pandas as pd
import safetensors
import safetensors.torch
import scipy
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from brittle.data import Points
from brittle.data.formats import as_points
from brittle.data.points import check_values
from brittle.errors import ArtefactError, DataError, ModelError, ParameterError, StorageError, warn
from brittle.estimate import Parameters, Status
from brittle.extensions.detector.conformal import Calibration, Worth, check_alpha, judge
from brittle.extensions.detector.criterion import check_table, margin_column, noise_columns
from brittle.extensions.detector.flags import prediction_frame
from brittle.extensions.detector.identity import Identity, Source
from brittle.extensions.detector.passes import ROWS, margin_of, observe
from brittle.extensions.detector.regressor import FEWEST, Form, Recipe, Regressor, train
from brittle.extensions.detector.wrapped import SurrogateNetwork, with_head
from brittle.intervals import clopper_pearson
from brittle.model.classifier import Classifier
from brittle.model.digest import state_digest
from brittle.model.head import Head
from brittle.scores.base import mark
from brittle.scores.evaluate import check_seed
from brittle.scores.one_pass import OnePass, OnePassScore
from brittle.scores.options import NO_OPTION
from brittle.store.columns import Column
from brittle.store.strict_json import FormatProblem, Share, convert, dump, parse_json, plain
from brittle.store.table import Table
from brittle.store.writing import write

__all__ = ["PseudoMarginScore", "Recipe", "Regressor", "Surrogate"]

WIDTH = 64  # hidden units of each network
EPOCHS = 200  # maximum number of passes over the points

TAIL = 0.3
"""Probability with which the lower end of a counted probability exceeds it, where the column counts all draws: with a
smaller one the ends lie lower, with a larger one more of alpha is spent on them."""

SHARES = (0.5, 0.75)
"""Ends of the share of the points that is learned from, and of that which calibrates; the others check."""

DIGITS = 4  # digits of the predictions that are compared in the search for a shift
MOST_WEIGHTS, MOST_BYTES = 2**28, 2**29  # bytes of the weights of a surrogate, and of a file, which has points, too
MOST_CLASSES = 2**20  # largest class of a file
SUFFIX = ".safetensors"  # suffix of the file


@dataclass(frozen=True, eq=False, repr=False)
class Surrogate:
    r"""A small network from the pass of a classifier to its input margins, or to `p_robust` at several sigmas.

    $$\min_\theta \sum_i H\bigl(\min(d_i / c, 1), \sigma(f_\theta(u_i))\bigr)$$

    with the cross entropy `H`, input margins `d_i`, `c` their scale (`regressor.SCALE_QUANTILE` of the finite margins),
    `sigma` the sigmoid, and `f` the mean of `regressor.FOLDS` perceptrons with a hidden layer of `WIDTH` and ReLU. They
    read standardised inputs `u_i`: features of the last linear layer and margins of the head (see `Regressor`), without
    those that hardly vary in single precision (`regressor.NARROW`). Each starts as a logistic regression on the
    smallest margins, whose order it keeps where it finds no better one, and learns by Adam from three quarters of the
    points, until the error at the others rises. Features are read where they lower the error at points that were not
    learned from by more than its standard error. The pseudo-margin of the paper reads features alone, in five layers of
    512, and has the squared error.

    Of a probability `c` is 1, and `f` falls with sigma. Half of the points teach. A quarter calibrates: a lower bound
    holds for a new point with probability `1 - alpha` (`conformal.Calibration` has formula and validity). The last
    quarter shows what predictions and bounds are worth (`worth`); without any order, fitting is refused.

    Validity: for points like the training points, and features of the same network. A pseudo-margin ranks points; its
    value does not bound their margin. A detector may be calibrated only on points outside the training points.

    References:
        Detecting brittle decisions for free: leveraging margin consistency in deep robust classifiers, Jonas Ngnawé et
        al., 2024, section 3.3 and appendix B.4, https://arxiv.org/abs/2406.18451

    Attributes:
        recipe: inputs, targets, sizes and training.
        regressor: the network, in evaluation mode.
        points: ids of the points of the fit, if given; they belong to the data `recipe.data`.
        calibration: what the bounds follow from; None for margins.
        worth: of each sigma, at points that were not learned from; empty for margins.
    """

    recipe: Recipe
    regressor: Regressor
    points: tuple[str, ...] = ()
    calibration: Calibration | None = None
    worth: tuple[Worth, ...] = ()

    def __repr__(self) -> str:
        learned = self.recipe
        return (
            f"Surrogate({learned.points} points, {learned.features} features, norm={learned.norm!r}, "
            f"targets={list(learned.targets)}, validation_loss={learned.validation_loss:.4g})"
        )

    def __str__(self) -> str:
        learned = self.recipe
        first = f"{learned.points} points, validation loss {learned.validation_loss:.4g}"
        return "\n".join((first, *map(str, self.worth)))

    @classmethod
    def fit(
        cls,
        features: Tensor | ArrayLike,
        margins: Tensor | ArrayLike,
        seed: int = 0,
        *,
        head: Head | None = None,
        norm: str | None = None,
        form: Form | None = None,
        width: int = WIDTH,
        epochs: int = EPOCHS,
    ) -> Surrogate:
        """Learn `margins` from `features`; the same arguments give the same weights, for every number of threads.

        Args:
            features: `[n, d]`.
            margins: `[n]`, in pixel units; infinite ones count as the scale, a point with NaN or None is dropped.
            seed: seed of the split, the initial weights and the order of the points.
            head: the last linear layer of the network, whose margins to every class can be read too, in the dual of
                `norm` (L2 without a norm).
            norm: norm of the margins.
            form: as `fit_run`; without a head the features alone are read.
            width: hidden units of each network.
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
        seen = torch.from_numpy(rows[used])
        logits = None if head is None else head.logits(seen.to(head.weight)).detach().double().cpu()
        settings = {"norm": norm, "form": form or (None if head else "paper"), "width": width}
        return cls(*_train(head, seen, logits, distances[used], seed, epochs, **settings))

    @classmethod
    def fit_run(
        cls,
        table: Table,
        classifier: Classifier,
        points: Points | tuple[Any, Any] | Tensor,
        norm: str | None = None,
        seed: int = 0,
        *,
        alpha: float | None = None,
        form: Form | None = None,
        width: int = WIDTH,
        epochs: int = EPOCHS,
    ) -> Surrogate:
        """Learn a run from the features of the same points and the head's margins there: its input margins, or with
        `alpha` its `p_robust` at every sigma of its counted noise.

        Masked margins are left out. Without a last linear layer, and for an estimator, `p_robust` is learned from the
        logits and, of a row, its numbers (not its categories).

        Args:
            table: a run with one `input_margin` in `norm`, or with `monte_carlo` at one sigma or more: with a fixed
                number of draws (`limit=None`) the intervals, and so the bounds, are narrowest.
            classifier: the model of the run.
            points: the data of the run, as `brittle.score` takes them; points that the run does not hold are left out.
            norm: norm of the margins, `l2`, `linf` or `l1`; by default that of the run.
            seed: as `fit`, and of the split into points that teach, calibrate and check.
            alpha: probability with which a lower bound on `p_robust` may fail at the points that check, below 0.5.
            form: `paper` reads the features alone, as in the paper, `head` also the margins of the head, `margins`
                these alone. By default `margins`, unless `head` has a smaller error by more than its standard error.
            width: as `fit`.
            epochs: as `fit`.

        Raises:
            DataError: the run holds no such scores, too few points, or is of other data than `points`, or what was
                learned shows no order.
            ModelError: `classifier` is another model or preprocesses otherwise, or margins need a last linear layer.
            ParameterError: `table` is no table, `classifier` no classifier, there is no such form or alpha.
        """
        if form not in (None, *get_args(Form)):
            raise ParameterError(f"form must be one of {', '.join(get_args(Form))}; found {form!r:.60}")
        if alpha is not None:
            alpha = check_alpha(alpha)
            if norm is not None:
                raise ParameterError(
                    f"norm is that of margins, and with alpha probabilities are learned; found norm {norm!r:.60} and "
                    f"alpha {alpha!r:.60}; leave out --norm (norm=) or --alpha (alpha=)"
                )
        check_seed(seed)
        check_table(table)
        model = Identity.of_run(table.record.model)
        columns = [margin_column(table, norm)] if alpha is None else noise_columns(table)
        model.check(classifier, "the run is")
        points = as_points(points, classifier.bounds, levels=classifier.reads_frames)
        run_source, data_source = Source.of(vars(table.record.data)), Source.of(points.provenance)
        if not run_source.is_same(data_source):
            reason = f"the run is of the data {run_source}; found {data_source}; give those of the run"
            raise DataError("runs_differ", reason)
        values = {column: column.value[column.status != Status.MASKED.slug] for column in columns}
        numbers = pd.DataFrame(values).dropna()
        seen = observe(classifier, points, set(numbers.index), alpha is not None)
        described = {"model": model, "data": data_source, "head": table.record.model.head, "form": form}
        described |= {"reads_logits": seen.head is None, "width": width, "epochs": epochs}
        targets = numbers.loc[seen.ids].to_numpy(np.float64)
        if alpha is None:
            described |= {"norm": columns[0].parameters["norm"]}
            return cls(
                *_train(seen.head, seen.features, seen.logits, targets[:, 0], seed, **described), tuple(seen.ids)
            )
        described |= {"norm": None, "targets": tuple(column.label for column in columns)}
        order = np.random.default_rng(seed).permutation(len(seen.ids))
        teach, calibrate, check = np.split(order, [round(share * len(order)) for share in SHARES])
        probabilities = 1.0 - targets
        rows = seen.features[teach], seen.logits[teach], probabilities[teach]
        learned = cls(*_train(seen.head, *rows, seed, **described), tuple(seen.ids))
        low, tail = lower_ends(columns, seen.ids, table.record.confidence)
        predictions, classes = learned.predict(seen.features, seen.logits), seen.logits.argmax(dim=1)
        calibration = Calibration(predictions[calibrate], low[calibrate], classes[calibrate], tail)
        checked = predictions[check], probabilities[check], margin_of(seen.logits)[check]
        worth = judge(described["targets"], *checked, calibration, alpha, seed)
        if not any(target.tau_low > 0.0 for target in worth):  # a choice by the bounds would void them
            raise DataError(
                "too_few_points",
                f"from {len(teach)} points no order was learned that shows at {len(check)} others, so no surrogate is "
                f"offered; measure more points, or count copies:\n" + "\n".join(map(str, worth)),
            )
        return replace(learned, calibration=calibration, worth=worth)

    @property
    def score(self) -> PseudoMarginScore:
        """Score for `brittle.score`, the pseudo-margin.

        Raises:
            ParameterError: probabilities were learned.
        """
        if self.recipe.targets:
            raise ParameterError(
                f"this surrogate predicts {self.recipe.targets[0]} and no margin, so it is no pseudo-margin; wrap the "
                f"network, or apply the surrogate"
            )
        return PseudoMarginScore(self)

    @cached_property
    def digest(self) -> str:
        """sha256 of the weights."""
        return state_digest(self.regressor)

    def predict(self, features: Tensor | ArrayLike, logits: Tensor | ArrayLike | None = None) -> Tensor:
        """Return the pseudo-margins `[B]` or the probabilities `[B, K]` of features `[B, d]` and of the logits `[B, C]`
        of the same pass, in double precision; NaN where one is not finite.

        Args:
            features: what the last linear layer reads.
            logits: what it gives; not needed by a surrogate that reads the features alone.
        """
        recipe, tensors = self.recipe, []
        for name, values, size in (("features", features, recipe.features), ("logits", logits, recipe.classes)):
            rows = values if isinstance(values, Tensor | None) else torch.from_numpy(np.asarray(values, np.float64))
            if size and (rows is None or rows.dim() != 2 or rows.shape[1] != size):
                shape = "none" if rows is None else list(rows.shape)
                raise ParameterError(f"expected {name} [B, {size}] of the pass, found {shape}")
            tensors.append(None if rows is None else rows.to(self.regressor.scale.device))
        with torch.no_grad():
            return self.regressor(*tensors)

    def learned_from(self, source: Source) -> tuple[str, ...]:
        """Return the ids of the points of the fit, as far as they may belong to `source`."""
        data = self.recipe.data
        return self.points if data is not None and data.may_share(source) else ()

    def check_model(self, model: str | None) -> None:
        """Raise if the digest of the weights of `model` is known and differs from that of the recipe."""
        expected = None if self.recipe.model is None else self.recipe.model.state_sha256
        if None not in (expected, model) and expected != model:
            raise ModelError(
                "other_model",
                f"the pseudo-margin was learned from the model {expected}; found {model}; learn one for this model",
            )

    def wrap(self, network: Any, alpha: float | None = None, *, by_class: bool = False) -> SurrogateNetwork:
        """Build this surrogate into `network`: inputs to `(logits, p_robust, bound)` in one forward pass.

        `p_robust` and `bound` are `[B, K]`, a column for each of `recipe.targets`. Under a bound lies the truth of a
        point like those of the fit with probability `alpha` at most, at each sigma by itself, `by_class` also among the
        points that are predicted as each class; a class with too few points to calibrate on then has the bound 0. An
        input that is not finite, outside the bounds of the data or tied has the bound 0.

        Args:
            network: as `Detector.wrap` takes it.
            alpha: probability with which a bound may fail, between 0 and 0.5; by default that of the fit.
            by_class: whether it holds for each predicted class.

        Raises:
            DataError: too few points calibrate for this `alpha`.
            ModelError: the model or its last linear layer is another one, or the layer is missing.
            ParameterError: margins were learned, or there is no such alpha.
        """
        recipe, (identity, calibration) = self.recipe, self.calibrated
        alpha = check_alpha(self.worth[0].alpha if alpha is None else alpha)
        classifier = identity.declare(network)
        identity.check(classifier, "the surrogate is")
        classifier = with_head(classifier, recipe.head) if recipe.uses_features else classifier
        return SurrogateNetwork(classifier, recipe, self.regressor, calibration.quantiles(alpha, by_class=by_class))

    @property
    def calibrated(self) -> tuple[Identity, Calibration]:
        """The identity of the model whose probabilities were learned, and the points that calibrate.

        Raises:
            ParameterError: margins were learned.
        """
        if self.recipe.model is None or self.calibration is None:
            raise ParameterError("this surrogate predicts margins, which have no bound; a detector reads them")
        return self.recipe.model, self.calibration

    def apply(
        self,
        classifier: Any,
        points: Points | tuple[Any, Any] | Tensor,
        alpha: float | None = None,
        *,
        by_class: bool = False,
    ) -> pd.DataFrame:
        """Return a frame with a row per point: the columns `flags.POINT_FIELDS`, for each target `p_robust` and
        `bound`, and `status`.

        With several targets these names have their place behind them, `bound_1` that of the smallest sigma. A point
        that cannot be read or run has no prediction, and the bound 0. Points whose bound is low are left to be counted
        by `brittle.score`. Arguments and errors are those of `wrap`; data with values outside the bounds, or that the
        model cannot be run on, are refused.

        Warns:
            BrittleWarning: points are those of the fit, as far as the data are the same: no bound holds for them.
        """
        classifier = self.calibrated[0].declare(classifier)
        network = self.wrap(classifier, alpha, by_class=by_class)
        points = as_points(points, classifier.bounds, levels=classifier.reads_frames)
        taught, parts = set(self.learned_from(Source.of(points.provenance))), []
        with torch.no_grad():
            for batch in points.batches(ROWS):
                check_values(batch, classifier.bounds)
                parts.append(prediction_frame(batch, *network.observe(points, batch)))
        frame = pd.concat(parts, ignore_index=True)
        if shared := len(taught.intersection(frame["point"])):
            warn(
                "too_few_points",
                f"{shared} of {len(frame)} points are those of the fit, so their predictions look better than others, "
                f"and no bound holds for them; apply the surrogate to other points",
            )
        return frame

    def shift(self, p_robust: ArrayLike | Tensor) -> float:
        """Return the p-value of the predictions `[n]` of new points at the smallest sigma: small where these are not
        like the points that calibrate, so that no bound holds.

        That of the two-sample Kolmogorov-Smirnov test: at most `p` with probability `p` for points drawn in the same
        way. A shift that leaves the predictions as they are stays unseen. Points without a prediction are left out, and
        predictions that round to the same `DIGITS` digits are tied, as passes differ in their last bits.
        """
        before = self.calibrated[1].predictions[:, 0].numpy()
        after = np.asarray(p_robust, dtype=np.float64)
        after = after[~np.isnan(after)]
        if np.ndim(p_robust) != 1 or not after.size:
            shape = f"{list(np.shape(p_robust))} with {after.size} numbers"
            raise ParameterError(f"a shift is that of predictions [n] at the smallest sigma; found {shape}")
        test: Any = scipy.stats.ks_2samp(before.round(DIGITS), after.round(DIGITS))
        return float(test.pvalue)

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
        if self.calibration is not None:
            weights |= {f"{CALIBRATION}{name}": getattr(self.calibration, name).contiguous() for name in CALIBRATED}
        tail = None if self.calibration is None else self.calibration.tail
        metadata = _Metadata(self.recipe, self.points, tail, self.worth)
        write(path, safetensors.torch.save(weights, {"learned": dump(metadata)}))
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Surrogate:
        """Read a surrogate; nothing in the file is run.

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
            raise ArtefactError("file_refused", f"{path} is not a surrogate: {why:.400}; train it again") from error


CALIBRATION, CALIBRATED = "calibration.", ("predictions", "low", "classes")
"""Prefix of the tensors of a file that calibrate, and their names."""


@dataclass(frozen=True)
class _Metadata:
    """The metadata of a file, beside the weights."""

    recipe: Recipe
    points: tuple[str, ...]
    tail: Share | None = None
    worth: tuple[Worth, ...] = ()


REFUSED = (
    safetensors.SafetensorError, LookupError, TypeError, ValueError, RuntimeError, OverflowError
)  # fmt: skip
"""Errors from reading a file that is no surrogate; the last five from types or shapes unknown to PyTorch."""


def _decode(content: bytes) -> Surrogate:
    if len(content) > MOST_BYTES:
        raise FormatProblem(f"it has more than {MOST_BYTES:,} bytes")
    weights = safetensors.torch.load(content)
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])  # safetensors has validated it
    metadata = convert(_Metadata, parse_json((header.get("__metadata__") or {}).get("learned", "")))
    recipe, points = metadata.recipe, metadata.points
    if (len(points) == 0) != (recipe.data is None):
        raise FormatProblem(f"it names {len(points)} points of the data {recipe.data}")
    if not len(recipe.targets) == len(metadata.worth) == (0 if metadata.tail is None else len(recipe.targets)):
        raise FormatProblem(f"it has {len(recipe.targets)} targets and {len(metadata.worth)} verdicts on them")
    calibration = None if metadata.tail is None else _calibration(weights, len(recipe.targets), metadata.tail)
    with torch.device("meta"):
        regressor = Regressor(recipe)
    expected, actual = (
        {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in state.items()}
        for state in (regressor.state_dict(), weights)
    )
    if differing := sorted({name for name, _ in actual.items() ^ expected.items()}):
        raise FormatProblem(f"its weights are not those of its recipe: {', '.join(differing[:5])!r:.200}")
    regressor.load_state_dict(weights, assign=True)
    for name, tensor in weights.items():
        if not bool(tensor.isfinite().all() and (name not in ("reciprocals", "scale") or (tensor > 0).all())):
            raise FormatProblem(f"{name} holds numbers that it cannot have")
    return Surrogate(recipe, regressor.eval(), points, calibration, metadata.worth)


def _calibration(weights: dict[str, Tensor], targets: int, tail: float) -> Calibration:
    """Take the points that calibrate out of the tensors of a file."""
    tensors = {name: weights.pop(CALIBRATION + name) for name in CALIBRATED}
    rows = len(tensors["classes"])
    for name, tensor in tensors.items():
        shape, dtype = ((rows,), torch.int64) if name == "classes" else ((rows, targets), torch.float64)
        if (tuple(tensor.shape), tensor.dtype) != (shape, dtype) or not bool((tensor >= 0).all()):
            raise FormatProblem(f"{CALIBRATION}{name} holds numbers that it cannot have")
        if not rows or float(tensor.max()) > (MOST_CLASSES if name == "classes" else 1):
            raise FormatProblem(f"{CALIBRATION}{name} holds no points, or numbers that are no class or probability")
    if bool((tensors["predictions"].diff(dim=1) > 0).any()):
        raise FormatProblem(f"{CALIBRATION}predictions rise with sigma")
    return Calibration(**tensors, tail=tail)


def _train(
    head: Head | None,
    features: Tensor,
    logits: Tensor | None,
    truth: NDArray[np.float64],
    /,
    seed: int,
    epochs: int,
    form: Form | None,
    **described: Any,
) -> tuple[Recipe, Regressor]:
    """Train a regressor on features without NaN, once its recipe is checked: in this form, or the best one."""
    if len(features) < FEWEST:
        raise DataError("too_few_points", f"a surrogate needs {FEWEST} points; found {len(features)}")
    if not isinstance(epochs, int) or epochs < 0:
        raise ParameterError(f"epochs must be a whole number from 0 on; found {epochs!r:.40}")
    described |= {"features": features.shape[1], "points": len(features), "seed": seed, "validation_loss": 0.0}
    trained = []
    for name in ("margins", "head") if form is None else (form,):
        used = None if name == "paper" else logits
        recipe = Recipe(**described, form=name, classes=0 if used is None else used.shape[1])
        try:
            convert(Recipe, plain(recipe))
        except (TypeError, ValueError) as error:
            raise ParameterError(f"a surrogate has no such settings: {error}") from error
        with torch.device("meta"):
            size = sum(tensor.nbytes for tensor in Regressor(recipe).state_dict().values())
        if size > MOST_WEIGHTS:
            raise ParameterError(
                f"a surrogate that reads {recipe.features} features and {recipe.classes} classes would hold {size:,} "
                f"bytes, and may hold {MOST_WEIGHTS:,}; choose a smaller width (width=), or of margins the features "
                f"alone: --form paper (form='paper')"
            )
        trained.append(train(recipe, head, features, used, truth, epochs))
    gain = (trained[0][0] - trained[-1][0]).double()
    return trained[-1 if gain.mean() >= gain.std() / len(gain) ** 0.5 else 0][1:]


def lower_ends(columns: list[Column], ids: list[str], confidence: float) -> tuple[Tensor, float]:
    """Return the lower ends of the probabilities `[n, K]`, and the probability with which one exceeds the truth.

    Of counts of a fixed number of copies they are taken at `TAIL`, else the run has them at its confidence. As the two
    copies of a pair may keep or lose the prediction together, half of the copies count as trials, and half of those
    that keep it, rounded down, as successes: of all laws of a pair the tail is largest where they always agree.
    """
    counts = [(column.draws or np.nan) * (1.0 - column.value.loc[ids].to_numpy(np.float64)) for column in columns]
    if all(np.allclose(count, count.round(), rtol=0.0, atol=1e-6) for count in counts):
        trials = [
            (count.round() // 2, (column.most_draws or 2) // 2) for count, column in zip(counts, columns, strict=True)
        ]
        lows, tail = [clopper_pearson(*counted, 1.0 - 2.0 * TAIL)[0] for counted in trials], TAIL
    else:
        lows, tail = [1.0 - column.high.loc[ids].to_numpy(np.float64) for column in columns], (1.0 - confidence) / 2.0
    return torch.from_numpy(np.stack(lows, axis=1)), tail


@dataclass(frozen=True)
class PseudoMarginScore(OnePassScore):
    """A pseudo-margin as a score: `Surrogate.predict` of the features of the clean pass, in pixel units.

    Validity: that of the pseudo-margin. The interval has no width.

    Source: Ngnawé et al., Detecting brittle decisions for free (NeurIPS 2024), section 3.3.
    """

    learned: Surrogate = field(metadata=NO_OPTION)

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
        return self.learned.regressor(one_pass.features_and_weight[0], one_pass.logits)

    def checked_value(self, one_pass: OnePass) -> Tensor:
        """Compute `value` on the device of the weights, after a check of the number of features."""
        return self.learned.predict(one_pass.features_and_weight[0], one_pass.logits)

    @property
    def network(self) -> nn.Module:
        return self.learned.regressor

    def judge(self, status: Tensor, value: Tensor) -> Tensor:
        """Features that are not finite have no margin."""
        return mark(status, ~value.isfinite(), Status.NONFINITE_LOGITS)
