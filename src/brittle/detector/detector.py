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
from torch import Tensor, nn

from brittle.data import Points
from brittle.detector.calibration import calibrate, flagged, left_out_text, points_needed, threshold_verdict
from brittle.detector.criterion import MarginCriterion, NoiseCriterion, by_margin, by_noise, check_table, margin_column
from brittle.detector.flags import flag_frame
from brittle.detector.identity import SMALLEST, Identity, Source, check_same_run
from brittle.detector.network import DetectorNetwork
from brittle.detector.pseudo_margin import PseudoMargin
from brittle.detector.results import Counts, Rate, Verdict
from brittle.detector.scoring import PSEUDO_MARGIN, READINGS, check_pseudo_margin, reading_of, score_of
from brittle.errors import DataError, DetectorFormatError, ModelError, ParameterError
from brittle.estimate import CONFIDENCE, Parameter, Status
from brittle.intervals import check_confidence, check_share
from brittle.model.classifier import Classifier
from brittle.model.head import find_head
from brittle.norms import check_norm, parse_epsilon
from brittle.scores import LogitMargin
from brittle.scores.one_pass import OnePassScore
from brittle.store.columns import Column
from brittle.store.strict_json import MOST_WHOLE, Count, FormatProblem, Share, dump, parse, read_text
from brittle.store.table import Table
from brittle.store.writing import write

FORMAT = 1
"""Version of the detector file."""

FARTHEST = {"linf": 1.0, "l2": 2.0**20, "l1": 2.0**40}
"""No two inputs of fewer than 2^40 numbers are farther apart than so many times the width of their bounds."""


@dataclass(frozen=True)
class Detector:
    """Says that a prediction is brittle unless its score is a finite number that reaches a threshold.

    In the worst case a point is *brittle* when its input margin, as the attacks of the run found it, is at most
    `epsilon`; in the average case when its prediction is kept with a probability below `limit` under noise, as the flip
    probability of the run says for sure (`brittle.analysis.decide`). For a further brittle point, exchangeable with
    those of the calibration,

        P(score < threshold) >= tpr

    over the draw of the calibration points and of that point (`brittle.detector.calibration.threshold_of`). What the
    threshold found achieves is measured on points that it was not chosen on: `true_positives`.

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
        parameters: of the score.
        head: name of the last linear layer that its features are of, or None where that is found or not needed.
        threshold: a score below it is brittle.
        tpr: true positive rate that the threshold was chosen for.
        confidence: of every interval.
        seed: of the split into calibration and held-out points.
        counts: what became of the points of the run.
        verdict: whether the score may be trusted for this model.

    Raises:
        ParameterError: a field has no such value.
    """

    format: int
    brittle: str
    model: Identity
    criterion: MarginCriterion | NoiseCriterion
    score: str
    parameters: dict[str, Parameter]
    head: str | None
    threshold: float
    tpr: Share
    confidence: Share
    seed: Count
    counts: Counts
    verdict: Verdict

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise ParameterError(f"expected format {FORMAT}, found {self.format}; fit the detector again")
        reading = reading_of(self.score)
        least, most = reading.span
        if not least < self.threshold <= math.nextafter(most, math.inf):
            raise ParameterError(
                f"{reading.name} lies in [{least:.6g}, {most:g}]; found the threshold {self.threshold!r}"
            )
        if self.score == PSEUDO_MARGIN:
            known = isinstance(self.parameters.get("sha256"), str)
        else:
            known = self.parameters == score_of(self.score, self.parameters.get("norm")).parameters
        if not known:
            raise ParameterError(f"{self.score} has no such parameters; found {self.parameters!r:.80}")
        if self.counts.calibration < (needed := points_needed(self.tpr)):
            raise ParameterError(
                f"tpr {self.tpr!r} needs {needed} brittle points to calibrate on; counts have {self.counts.calibration}"
            )
        asked, bounds = self.criterion, self.model.bounds
        if isinstance(asked, MarginCriterion) and bounds is not None and asked.margin.get("bounded", True):
            most = (bounds[1] - bounds[0]) * FARTHEST[asked.norm]
            if not SMALLEST <= asked.epsilon <= most:
                raise ParameterError(
                    f"margins within the bounds lie in [{SMALLEST:g}, {most:g}]; found epsilon {asked.epsilon!r}"
                )

    @classmethod
    def fit(
        cls,
        table: Table,
        epsilon: float | str | None = None,
        norm: str | None = None,
        tpr: float = 0.95,
        score: str | None = None,
        confidence: float = CONFIDENCE,
        seed: int = 0,
        *,
        limit: float | None = None,
        margin: str | None = None,
        column: str | None = None,
        scores: Table | None = None,
        pseudo_margin: PseudoMargin | None = None,
    ) -> Detector:
        """Calibrate on the points of a run, for the worst case or the average case; labels are not needed.

        With `epsilon` a point is brittle whose input margin is at most that; points whose margin is `masked` are left
        out, an infinite margin is robust. With `limit` a point is brittle whose prediction breaks under the noise of
        the run: it is kept with a probability below `limit`, as `brittle.analysis.decide` says; where that leaves it
        undecided, the point is neither. Half of the brittle points give the threshold, the other half and all robust
        points say what it achieves.

        Args:
            table: a run with `input_margin` or a flip probability, and with the score unless `scores` holds it.
            epsilon: margins up to this are brittle, in the declared pixel units; a number, or a fraction as `8/255`.
            norm: of the margins, `l2`, `linf` or `l1`; by default the one that the run holds them in. With `limit`,
                of the score where it has one.
            tpr: true positive rate to hold, between 0 and 1.
            score: name of the score, one of `READINGS`, or of a score that an installed package offers. By default
                `logit_margin` with `epsilon`; with `limit` the one with the largest AUROC among those of the run that
                the network alone gives, chosen on a fifth of the points, which then serve for nothing else.
            confidence: of every interval.
            seed: of the split.
            limit: probability with which a prediction has to be kept, between 0 and 1.
            margin: label of the margins, where the run holds several in this norm.
            column: label of the flip probability; by default the one that was drawn for `limit`, and where there is
                none the one that speaks for the run.
            scores: another run of the same model and data that holds the score of every point that is used.
            pseudo_margin: the one that computed the score `pseudo_margin`; the points it was trained on are left out,
                as far as `table` is of the data that it was trained on (`brittle.detector.Source.may_share`).

        Raises:
            DataError: a score or the norm is missing or ambiguous, there are too few brittle points or no robust one,
                too many of the brittle points have no score, the run has no digest, or `scores` is a run of other data.
            ModelError: `scores` is a run of another model, or the pseudo-margin is of another model or norm.
            ParameterError: `table` or `scores` is no table, both or neither of `epsilon` and `limit` are given, a
                parameter is outside its range, or a pseudo-margin is given that the score does not read.
        """
        tpr, confidence, seed = _goal(tpr, confidence, seed)
        _check_question(epsilon, limit, margin, column)
        for run in (table,) if scores is None else (table, scores):
            check_table(run)
        check_pseudo_margin(pseudo_margin)
        if score is None and epsilon is not None:
            score = LogitMargin.name
        if score is not None or pseudo_margin is not None:
            score_of(score or "any", None, pseudo_margin)
        identity = Identity.of_run(table.record)
        if scores is not None:
            check_same_run(table.record, scores.record)
        learned_from = () if pseudo_margin is None else pseudo_margin.learned_from(Source.of_run(table.record))
        if epsilon is not None:
            margins = margin_column(table, norm, margin)
            norm = str(margins.parameters["norm"])
            criterion = MarginCriterion(parse_epsilon(epsilon), norm, dict(margins.parameters))
            points = by_margin(margins, criterion.epsilon, learned_from)
        else:
            norm = None if norm is None else check_norm(norm)
            criterion, points = by_noise(table, float(limit or 0.0), column, learned_from)
        if pseudo_margin is not None:
            pseudo_margin.check_model(identity.state_sha256, norm)
        readable = _readable(scores or table, score, norm, pseudo_margin)
        values = {one.label: reading_of(one.score).oriented(points.values(one)) for one in readable}
        chosen, threshold, counts, verdict = calibrate(points, values, tpr, confidence, seed)
        decisive = next(one for one in readable if one.label == chosen)
        return cls(
            format=FORMAT,
            brittle=version("brittle"),
            model=identity,
            criterion=criterion,
            score=decisive.score,
            parameters=dict(decisive.parameters),
            head=(scores or table).record.model.head if reading_of(decisive.score).uses_features else None,
            threshold=threshold,
            tpr=tpr,
            confidence=confidence,
            seed=seed,
            counts=counts,
            verdict=verdict,
        )

    @property
    def epsilon(self) -> float | None:
        """Margins up to this are brittle; None in the average case."""
        return self.criterion.epsilon if isinstance(self.criterion, MarginCriterion) else None

    @property
    def norm(self) -> str | None:
        """The norm of the margins; None in the average case."""
        return self.criterion.norm if isinstance(self.criterion, MarginCriterion) else None

    @property
    def limit(self) -> float | None:
        """Probability with which a prediction has to be kept; None in the worst case."""
        return self.criterion.limit if isinstance(self.criterion, NoiseCriterion) else None

    @property
    def true_positives(self) -> Rate:
        """Share of held-out brittle points that are flagged."""
        return self.counts.true_positives(self.confidence)

    @property
    def false_positives(self) -> Rate:
        """Share of robust points that are flagged."""
        return self.counts.false_positives(self.confidence)

    @property
    def holds(self) -> bool:
        """Whether the interval of the rate on held-out points, without undecided ones, reaches the rate asked for."""
        return self.true_positives.without_undecided.high >= self.tpr

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the detector to the JSON file `path`, and give that path.

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
            ModelError: it cannot be read.
        """
        path = Path(path)
        try:
            return parse(cls, read_text(path))
        except FormatProblem as error:
            raise DetectorFormatError("detector_format", f"{path} is not a detector: {error}; fit it again") from error
        except OSError as error:
            raise ModelError("other_model", f"{path} cannot be read: {error.strerror or error}") from error

    def flag(self, scores: ArrayLike | Tensor) -> NDArray[np.bool_]:
        """Which of `scores` `[B]` are brittle, `[B]`: all but finite numbers that reach the threshold.

        A score cannot say whether two logits tie: `apply` and `wrap`, which know the logits, call ties brittle at
        every threshold.

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
        return flagged(numbers, self.threshold)

    def wrap(
        self,
        network: Classifier | nn.Module,
        *,
        force: bool = False,
        pseudo_margin: PseudoMargin | None = None,
    ) -> DetectorNetwork:
        """The network with this detector built in: inputs to `(logits, score, brittle)` in one forward pass.

        Preprocessing is built in too, so that it takes inputs in the declared units; that of a bare network is the
        one that the detector was fitted with.

        Args:
            network: a classifier or its network, which is put into evaluation mode and shares its weights. Features
                are those of the layer that the detector was fitted with.
            force: accept another model than the one it was fitted for.
            pseudo_margin: the one that it was fitted with, where its score is `pseudo_margin`.

        Raises:
            ModelError: the model, its last linear layer or the pseudo-margin is another one, or the score needs such a
                layer and the network has none.
            ParameterError: a pseudo-margin is given that the score does not read.
        """
        if not isinstance(network, Classifier):
            known = self.model
            network = Classifier(network, known.bounds, known.mean, known.std, outputs=known.outputs)
        classifier, score, forced = self._prepare(network, force, pseudo_margin)
        return DetectorNetwork(classifier, score, self.threshold, forced)

    def apply(
        self,
        classifier: Classifier,
        points: Points | tuple[Any, Any] | Tensor,
        force: bool = False,
        *,
        pseudo_margin: PseudoMargin | None = None,
        batch_size: int | None = None,
        progress: Callable[[int, int, int], None] | bool | None = None,
    ) -> pd.DataFrame:
        """Flag every point of `points`: a frame with a row for each, and the columns of `FLAGS`.

        A point that cannot be scored (a broken image, NaN logits) has no score, and is flagged as brittle, however
        many there are.

        Args:
            classifier: the model that it was fitted for.
            points: as `brittle.score` takes them.
            force: accept another model; written into every row.
            pseudo_margin: the one that it was fitted with, where its score is `pseudo_margin`.
            batch_size: most rows in one pass through the network.
            progress: as `brittle.score` takes it.

        Raises:
            ModelError: the model, its last linear layer or the pseudo-margin is another one, or it cannot be scored.
            ParameterError: `classifier` is none, or a pseudo-margin is given that the score does not read.
            DataError: the data do not fit the declaration, or none of the first points can be read.
        """
        from brittle.run import score

        subject, reading, forced = self._prepare(classifier, force, pseudo_margin)
        run = score(
            subject,
            points,
            [reading],
            confidence=self.confidence,
            batch_size=batch_size,
            progress=progress,
            most_failures=None,
        )
        values = reading_of(self.score).oriented(run.scores["value"].to_pandas().to_numpy(np.float64))
        tied = [status == Status.TIE.slug for status in run.scores["status"].to_pylist()]
        return flag_frame(run, values, self.flag(values) | np.array(tied, dtype=bool), forced)

    def __str__(self) -> str:
        counts, criterion = self.counts, self.criterion
        undecided = f", {counts.undecided} undecided" if counts.undecided else ""
        left_out = {name: getattr(counts, name) for name in ("masked", "without_number", "learned_from")}
        lines = [
            f"flagged as brittle when {reading_of(self.score).name} < {self.threshold!r}, or it is not finite, or the "
            f"two largest logits tie",
            f"brittle points are {criterion}",
            f"calibrated for a true positive rate of {self.tpr} on {counts.calibration} of {counts.brittle} "
            f"brittle points; {counts.robust} robust{undecided}{left_out_text(left_out)}",
        ]
        if counts.score_chosen:
            lines.append(f"the score was chosen on {counts.choice} points that serve for nothing else")
        lines += [
            f"flags of held-out brittle points: {self.true_positives}",
            f"flags of robust points: {self.false_positives}",
        ]
        if counts.undecided and isinstance(criterion, NoiseCriterion):
            lines.append(f"{counts.undecided} of {counts.used} points are undecided; {criterion.remedy}")
        agrees = threshold_verdict(self.true_positives.without_undecided, counts.left(counts.brittle), self.tpr)
        lines += [
            f"verdict on the score: {self.verdict}",
            f"verdict on the threshold: {'without the undecided points it ' if counts.undecided else ''}{agrees}",
            f"model {self.model.state_sha256[:12]}…; intervals at {self.confidence}; seed {self.seed}",
        ]
        return "\n".join(lines)

    def _prepare(
        self, classifier: Classifier, force: bool, pseudo_margin: PseudoMargin | None
    ) -> tuple[Classifier, OnePassScore, bool]:
        """The classifier with the last linear layer of the fit, the score, and whether it is forced onto the model."""
        check_pseudo_margin(pseudo_margin, self.parameters.get("sha256"))
        score = score_of(self.score, self.parameters.get("norm"), pseudo_margin)
        forced = self.model.check(Identity.of_classifier(classifier), force=force)
        if not score.uses_features:
            return classifier, score, forced
        wanted, named = find_head(classifier.model, self.head).name, classifier.head_name
        if named not in (None, wanted):
            raise ModelError(
                "no_head",
                f"the detector reads the features of the layer {wanted!r}; the classifier names {named!r}; leave the "
                f"name out (--head, head=)",
            )
        return classifier if named == self.head else classifier.with_head(self.head), score, forced


def _goal(tpr: float, confidence: float, seed: int) -> tuple[float, float, int]:
    """The rate, the confidence and the seed, as the file holds them."""
    check_confidence(confidence)
    if tpr is None:
        raise ParameterError("tpr must be a number between 0 and 1; found None")
    check_share("tpr", tpr)
    if not isinstance(seed, Integral) or isinstance(seed, bool) or not 0 <= seed <= MOST_WHOLE:
        raise ParameterError(f"the seed must be at least 0, a whole number; found {seed!r:.60}")
    return float(tpr), float(confidence), int(seed)


def _check_question(epsilon: float | str | None, limit: float | None, margin: str | None, column: str | None) -> None:
    """Raise unless one case is asked for, with nothing that belongs to the other."""
    if (epsilon is None) == (limit is None):
        raise ParameterError(
            f"a detector is of the worst case, with epsilon, or of the average case, with limit; found epsilon "
            f"{epsilon!r:.60} and limit {limit!r:.60}; give one of them",
        )
    check_share("limit", limit)
    for name, label, other in (("margin", margin, limit), ("column", column, epsilon)):
        if not isinstance(label, str | None) or (label is not None and other is not None):
            raise ParameterError(
                f"margin is the label of margins, for epsilon, and column that of a flip probability, for limit; found "
                f"{name} {label!r:.60}"
            )


def _readable(table: Table, score: str | None, norm: str | None, pseudo_margin: PseudoMargin | None) -> list[Column]:
    """The column of that score in a run; without one all that a detector reads from the network alone."""
    names = [name for name in READINGS if name != PSEUDO_MARGIN] if score is None else [score]
    found = [
        column
        for name in names
        for column in table.columns
        if column.score == name
        and (norm is None or column.parameters.get("norm", norm) == norm)
        and dict(column.parameters) == score_of(name, column.parameters.get("norm"), pseudo_margin).parameters
    ]
    if not found or (score is not None and len(found) > 1):
        there = ", ".join(column.label for column in table.columns) or "none"
        raise DataError(
            "no_such_score",
            f"the run holds {len(found)} columns of {score or LogitMargin.name} that the detector can read, and one is "
            f"needed{'' if norm is None else f', in {norm}'}; its scores: {there}; score by it, or say its norm",
        )
    return found
