"""A calibrated rule that says from one forward pass whether a prediction is brittle, tied to its model."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from brittle.data import Points
from brittle.errors import DataError, DetectorFormatError, ModelError, ParameterError, StorageError
from brittle.estimate import CONFIDENCE, Parameter, Status, check_norm
from brittle.extensions.detector.calibration import calibrate, is_flagged, judge_threshold, left_out_text, points_needed
from brittle.extensions.detector.criterion import LEFT_OUT, Criterion, check_table, select_points
from brittle.extensions.detector.flags import flag_frame
from brittle.extensions.detector.identity import Identity, Source
from brittle.extensions.detector.network import (
    PSEUDO_MARGIN,
    DetectorNetwork,
    kind_of,
    orient,
    score_of,
)
from brittle.extensions.detector.results import Counts, Judgement, Rate
from brittle.extensions.detector.surrogate import Surrogate
from brittle.extensions.detector.wrapped import with_head
from brittle.intervals import check_confidence, check_share
from brittle.model.classifier import Classifier
from brittle.scores import LogitMargin
from brittle.scores.one_pass import OnePassScore
from brittle.store.columns import Column
from brittle.store.strict_json import MOST_WHOLE, Count, FormatProblem, Share, dump, parse, read_text
from brittle.store.table import Table
from brittle.store.writing import write
from brittle.text import parse_epsilon

FORMAT = 1  # version of the detector file


@dataclass(frozen=True)
class Detector:
    """A rule that flags a prediction as brittle unless its score is a finite number that reaches a threshold.

    In the worst case a point is *brittle* when its input margin, as the attacks of the run found it, is at most
    `epsilon`; in the average case when its prediction is kept with a probability below `limit` under noise, by the
    interval of the flip probability of the run (`brittle.analysis.decide`). For a further brittle point, exchangeable
    with those of the calibration,

        P(score < threshold) >= tpr

    over the draw of the calibration points and of that point (`calibration.choose_threshold`). `true_positives` is
    the rate of the chosen threshold on points that it was not chosen on.

    Validity: for points drawn as those of the run were, on the model whose identity is `model`. A brittle point whose
    margin the attacks overlooked counts as robust; a point that is undecided belongs to neither, and the rates count it
    either way. NaN and infinite scores or logits, and ties of the two largest logits, are always brittle.

    Source: Ngnawé et al., Detecting brittle decisions for free (NeurIPS 2024), section 2.3; Vovk et al., Algorithmic
    learning in a random world (2005), for the threshold.

    Attributes:
        format: version of the file.
        brittle: version of the package that fitted it.
        model: the model it belongs to.
        criterion: what makes a point brittle.
        score: name of the score, one of `READINGS`; larger is safer.
        parameters: parameters of the score.
        head: name of the last linear layer whose features the score reads, or None to search for it or without need.
        threshold: a score below it is brittle.
        tpr: true positive rate that the threshold was chosen for.
        confidence: confidence of every interval.
        seed: seed of the split into calibration and held-out points.
        counts: points of the run by their part in the calibration.
        verdict: whether the score may be trusted for this model.

    Raises:
        ParameterError: a field has no such value.
    """

    format: int
    brittle: str
    model: Identity
    criterion: Criterion
    score: str
    parameters: dict[str, Parameter]
    head: str | None
    threshold: float
    tpr: Share
    confidence: Share
    seed: Count
    counts: Counts
    verdict: Judgement

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise ParameterError(f"expected format {FORMAT}, found {self.format}; fit the detector again")
        kind = kind_of(self.score)
        lowest, highest = sorted(orient(kind, end) for end in (kind.minimum, kind.maximum))
        if not lowest < self.threshold <= math.nextafter(highest, math.inf):
            raise ParameterError(
                f"{self._score} lies in [{lowest:.6g}, {highest:g}]; found the threshold {self.threshold!r}"
            )
        if self.score == PSEUDO_MARGIN:
            is_valid = isinstance(self.parameters.get("sha256"), str)
        else:
            is_valid = self.parameters == score_of(self.score, self.parameters.get("norm")).parameters
        if not is_valid:
            raise ParameterError(f"{self.score} has no such parameters; found {self.parameters!r:.80}")
        if self.counts.calibration < (needed := points_needed(self.tpr)):
            raise ParameterError(
                f"tpr {self.tpr!r} needs {needed} brittle points to calibrate on; counts have {self.counts.calibration}"
            )

    @classmethod
    def fit(
        cls,
        table: Table,
        epsilon: float | str | None = None,
        norm: str | None = None,
        tpr: float = 0.95,
        score: str = LogitMargin.name,
        confidence: float = CONFIDENCE,
        seed: int = 0,
        *,
        limit: float | None = None,
        column: str | None = None,
        pseudo_margin: Surrogate | None = None,
    ) -> Detector:
        """Calibrate on the points of a run, for the worst case or the average case; labels are not needed.

        With `epsilon` a point is brittle if its input margin is at most that; points whose margin is `masked` are left
        out, an infinite margin is robust. With `limit` a point is brittle if its prediction breaks under the noise of
        the run: `brittle.analysis.decide` finds it kept with a probability below `limit`; an undecided point is
        neither brittle nor robust. Half of the brittle points give the threshold, all other points give its rates.

        Args:
            table: a run with `input_margin` or a flip probability, and with the score, perhaps by `brittle join`.
            epsilon: margins up to this are brittle, in the declared pixel units; a number, or a fraction as `8/255`.
            norm: norm of the margins, `l2`, `linf` or `l1`; by default that of the run. With `limit`, the norm of the
                score where it has one.
            tpr: true positive rate to hold, between 0 and 1.
            score: name of the score, one of `READINGS`.
            confidence: confidence of every interval.
            seed: seed of the split.
            limit: probability with which a prediction has to be kept, between 0 and 1.
            column: label of the margins, where the run holds several in this norm; with `limit` the label of the flip
                probability, by default the one that was drawn for `limit`, or else the representative of the run.
            pseudo_margin: the one that computed the score `pseudo_margin`; the points it was trained on are left out,
                as far as `table` is of the data that it was trained on (`Source.may_share`).

        Raises:
            DataError: a score or the norm is missing or ambiguous, there are too few brittle points or no robust one,
                too many of the brittle points have no score, or the run has no digest.
            ModelError: the pseudo-margin is of another model.
            ParameterError: `table` is no table, both or neither of `epsilon` and `limit` are given, a parameter is
                outside its range, or a pseudo-margin is given that the score does not read.
        """
        tpr, confidence, seed = _check_goal(tpr, confidence, seed)
        check_table(table)
        score_of(score, None, pseudo_margin)
        check_share("limit", limit)
        if norm is not None:
            check_norm(norm)
        identity, source = Identity.of_run(table.record.model), Source.of(vars(table.record.data))
        if pseudo_margin is not None:
            pseudo_margin.check_model(identity.state_sha256)
        learned_from = () if pseudo_margin is None else pseudo_margin.learned_from(source)
        size = None if epsilon is None else parse_epsilon(epsilon)
        criterion, points = select_points(table, size, limit, norm, column, learned_from)
        norm = criterion.norm or norm
        decisive = _column(table, score, norm, pseudo_margin)
        values = orient(kind_of(score), decisive.value.reindex(points.ids).to_numpy(np.float64))
        threshold, counts, verdict = calibrate(points, values, tpr, confidence, seed)
        return cls(
            format=FORMAT,
            brittle=version("brittle"),
            model=identity,
            criterion=criterion,
            score=score,
            parameters=dict(decisive.parameters),
            head=table.record.model.head if kind_of(score).uses_features else None,
            threshold=threshold,
            tpr=tpr,
            confidence=confidence,
            seed=seed,
            counts=counts,
            verdict=verdict,
        )

    @property
    def true_positives(self) -> Rate:
        """Share of held-out brittle points that are flagged."""
        counts, undecided = self.counts, (self.counts.undecided // 2, self.counts.flagged_undecided_held_out)
        return Rate(counts.flagged_brittle, counts.held_out, self.confidence, *undecided)

    @property
    def false_positives(self) -> Rate:
        """Share of robust points that are flagged."""
        counts = self.counts
        undecided = counts.undecided, counts.flagged_undecided
        return Rate(counts.flagged_robust, counts.robust, self.confidence, *undecided)

    @property
    def holds(self) -> bool:
        """True where the interval of the rate on held-out points, without undecided ones, reaches `tpr`."""
        return self.true_positives.without_undecided.high >= self.tpr

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the detector to the JSON file `path`, and return that path.

        Raises:
            StorageError: it cannot be written, or is a link, a pipe, a device or a folder.
        """
        path = Path(path)
        write(path, dump(self).encode())
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Detector:
        """Read a detector; nothing in the file is run, and a file that is not exactly a detector is refused.

        Raises:
            DetectorFormatError: the file holds anything else.
            StorageError: it cannot be read.
        """
        path = Path(path)
        try:
            return parse(cls, read_text(path))
        except FormatProblem as error:
            raise DetectorFormatError("detector_format", f"{path} is not a detector: {error}; fit it again") from error
        except OSError as error:
            raise StorageError("unreadable", f"{path} cannot be read: {error.strerror or error}") from error

    def flag(self, scores: ArrayLike | Tensor) -> NDArray[np.bool_]:
        """Flag `scores` `[B]` as brittle, `[B]`: all but finite numbers that reach the threshold.

        A score does not show whether two logits tie: `apply` and `wrap` flag ties at every threshold.

        Args:
            scores: larger where safer, so for a detector of the entropy its negative; NaN and None where there is none.

        Raises:
            ParameterError: they are no numbers.
        """
        values = scores.detach().cpu().double().numpy() if isinstance(scores, Tensor) else scores
        try:
            numbers = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ParameterError(f"expected numbers [B], found {scores!r:.80}") from error
        return is_flagged(numbers, self.threshold)

    def wrap(self, network: Any, *, pseudo_margin: Surrogate | None = None) -> DetectorNetwork:
        """Build this detector into `network`: inputs to `(logits, score, brittle)` in one forward pass.

        Preprocessing is built in too, so that the result takes inputs in the declared units; a bare network gets the
        preprocessing that the detector was fitted with.

        Args:
            network: a classifier or its network, which is put into evaluation mode and shares its weights. Features
                come from the layer that the detector was fitted with. Or a fitted classifier of scikit-learn, which
                takes NumPy arrays too, or a frame if it was fitted on a frame, and gives arrays.
            pseudo_margin: the pseudo-margin of the fit, if the score is `pseudo_margin`.

        Raises:
            ModelError: the model, its last linear layer or the pseudo-margin is another one, or the layer is missing.
            ParameterError: a pseudo-margin is given that the score does not read.
        """
        network = self.model.declare(network)
        return DetectorNetwork(*self._prepare(network, pseudo_margin), self.threshold)

    def apply(
        self,
        classifier: Classifier,
        points: Points | tuple[Any, Any] | Tensor,
        *,
        pseudo_margin: Surrogate | None = None,
        batch_size: int | None = None,
        progress: Callable[[int, int, int], None] | bool | None = None,
    ) -> pd.DataFrame:
        """Flag every point of `points`, and return a frame with a row per point and the columns of `FLAGS`.

        A point that cannot be scored (a broken image, NaN logits) has no score, and is flagged as brittle.

        Args:
            classifier: the model that the detector was fitted for.
            points: as `brittle.score` takes them.
            pseudo_margin: the pseudo-margin of the fit, if the score is `pseudo_margin`.
            batch_size: most rows in one pass through the network.
            progress: as `brittle.score` takes it.

        Raises:
            ModelError: the model, its last linear layer or the pseudo-margin is another one, or it cannot be scored.
            ParameterError: `classifier` is none, or a pseudo-margin is given that the score does not read.
            DataError: the data do not fit the declaration, or no point at the start can be read.
        """
        from brittle.run import score

        subject, reading = self._prepare(classifier, pseudo_margin)
        options: dict[str, Any] = {"confidence": self.confidence, "batch_size": batch_size, "progress": progress}
        run = score(subject, points, [reading], **options, most_failures=None)
        values = orient(kind_of(self.score), run.scores["value"].to_pandas().to_numpy(np.float64))
        tied = [status == Status.TIE.slug for status in run.scores["status"].to_pylist()]
        return flag_frame(run, values, self.flag(values) | np.array(tied, dtype=bool))

    def __str__(self) -> str:
        counts, criterion = self.counts, self.criterion
        undecided = f", {counts.undecided} undecided" if counts.undecided else ""
        left_out = {name: getattr(counts, name) for name in LEFT_OUT}
        lines = [
            f"flagged as brittle when {self._score} < {self.threshold!r}, or it is not finite, or the "
            f"two largest logits tie",
            f"brittle points are {criterion}",
            f"calibrated for a true positive rate of {self.tpr} on {counts.calibration} of {counts.brittle} "
            f"brittle points; {counts.robust} robust{undecided}{left_out_text(left_out)}",
            f"flags of held-out brittle points: {self.true_positives}",
            f"flags of robust points: {self.false_positives}",
        ]
        if counts.undecided:
            lines.append(f"{counts.undecided} of {counts.used} points are undecided; {criterion.remedy}")
        agrees = judge_threshold(self.true_positives.without_undecided, counts.brittle, self.tpr)
        lines += [
            f"verdict on the score: {self.verdict}",
            f"verdict on the threshold: {'without the undecided points it ' if counts.undecided else ''}{agrees}",
            f"model {self.model.state_sha256[:12]}…; intervals at {self.confidence}; seed {self.seed}",
        ]
        return "\n".join(lines)

    @property
    def _score(self) -> str:
        """The score in comparison with the threshold, such as `-entropy`."""
        return f"-{self.score}" if kind_of(self.score).safer == "lower" else self.score

    def _prepare(self, classifier: Classifier, pseudo_margin: Surrogate | None) -> tuple[Classifier, OnePassScore]:
        """Check that classifier and pseudo-margin are those of the fit; return the classifier and the score."""
        score = score_of(self.score, self.parameters.get("norm"), pseudo_margin)
        if score.parameters != self.parameters:
            raise ModelError(
                "other_model",
                f"the detector reads the pseudo-margin {self.parameters}; found {score.parameters}; give the file of "
                f"the fit: --pseudo-margin FILE (pseudo_margin=)",
            )
        self.model.check(classifier, "the detector is")
        return with_head(classifier, self.head) if score.uses_features else classifier, score


def _check_goal(tpr: float, confidence: float, seed: int) -> tuple[float, float, int]:
    check_confidence(confidence)
    if tpr is None:
        raise ParameterError("tpr must be a number between 0 and 1; found None")
    check_share("tpr", tpr)
    if not isinstance(seed, Integral) or isinstance(seed, bool) or not 0 <= seed <= MOST_WHOLE:
        raise ParameterError(f"the seed must be a whole number, at least 0; found {seed!r:.60}")
    return float(tpr), float(confidence), int(seed)


def _column(table: Table, score: str, norm: str | None, pseudo_margin: Surrogate | None) -> Column:
    """Return the only column of the score in a run that the detector can read."""
    columns = [
        column
        for column in table.columns
        if column.score == score
        and (norm is None or column.parameters.get("norm", norm) == norm)
        and dict(column.parameters) == score_of(score, column.parameters.get("norm"), pseudo_margin).parameters
    ]
    if len(columns) != 1:
        labels = ", ".join(column.label for column in table.columns) or "none"
        raise DataError(
            "no_such_score",
            f"the run holds {len(columns)} columns of {score} that the detector can read, and it needs exactly one"
            f"{'' if norm is None else f', in {norm}'}; scores of the run: {labels}; score the points by {score}, or "
            f"name the norm",
        )
    return columns[0]
