"""A calibrated rule that says from one forward pass whether a prediction is brittle, tied to its model."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from brittle.data import Points
from brittle.detector.calibration import Goal, about_threshold, flagged
from brittle.detector.fields import FORMAT, DetectorFields, check_consistent
from brittle.detector.fitting import Question, check_runs, fit
from brittle.detector.flags import flag_frame
from brittle.detector.identity import Identity
from brittle.detector.known_points import MarginCriterion, NoiseCriterion
from brittle.detector.network import DetectorNetwork
from brittle.detector.pseudo_margin.pseudo_margin import PseudoMargin, check_pseudo_margin
from brittle.detector.results import left_out_sentence
from brittle.detector.scoring import check_read, reading_of, score_of
from brittle.errors import DetectorFormatError, ModelError, ParameterError
from brittle.estimate import CONFIDENCE, Status
from brittle.model.classifier import Classifier
from brittle.model.head import find_head
from brittle.scores import LogitMargin
from brittle.store.files.strict_json import FormatProblem, dump, parse, read_text
from brittle.store.files.writing import write
from brittle.store.table import Table


@dataclass(frozen=True)
class Detector(DetectorFields):
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

    Attributes: those of `brittle.detector.fields.DetectorFields`.

    Raises:
        ParameterError: a field has no such value.
    """

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise ParameterError(f"expected format {FORMAT}, found {self.format}; fit the detector again")
        check_consistent(self)

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
        check_runs(table, scores, pseudo_margin)
        goal, question = Goal(tpr, confidence, seed), Question(epsilon, limit, norm, margin, column)
        decisive = LogitMargin.name if score is None and limit is None else score
        return cls(**vars(fit(table, question, goal, decisive, scores, pseudo_margin)))

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
    def holds(self) -> bool:
        """Whether the interval of the rate on held-out points, without undecided ones, reaches the rate asked for."""
        return self.true_positives.without_undecided(self.confidence).high >= self.tpr

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
        check_pseudo_margin(pseudo_margin)
        check_read(self.score, self.parameters, pseudo_margin)
        classifier = network if isinstance(network, Classifier) else self._classifier(network)
        forced = self.model.check(Identity.of_classifier(classifier), force=force)
        score = score_of(self.score, self.parameters.get("norm"), pseudo_margin)
        return DetectorNetwork(self._with_head(classifier), score, self.threshold, forced)

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

        check_pseudo_margin(pseudo_margin)
        check_read(self.score, self.parameters, pseudo_margin)
        forced = self.model.check(Identity.of_classifier(classifier), force=force)
        run = score(
            self._with_head(classifier),
            points,
            [score_of(self.score, self.parameters.get("norm"), pseudo_margin)],
            confidence=self.confidence,
            batch_size=batch_size,
            progress=progress,
            most_failures=None,
        )
        values = reading_of(self.score).oriented(run.scores["value"].to_pandas().to_numpy(np.float64))
        tied = [status == Status.TIE.slug for status in run.scores["status"].to_pylist()]
        return flag_frame(run, values, self.flag(values) | np.array(tied, dtype=bool), forced)

    def __str__(self) -> str:
        counts, rate = self.counts, self.true_positives
        score = reading_of(self.score).name
        brittle, undecided = counts.left(counts.brittle), f", {counts.undecided} undecided" if counts.undecided else ""
        remedy = self.criterion.remedy(counts.undecided, counts.brittle + counts.robust + counts.undecided)
        chosen = f"the score was chosen on {counts.choice} points that serve for nothing else" if counts.choice else ""
        about = about_threshold(rate.without_undecided(self.confidence), brittle, self.tpr)
        lines = (
            f"flagged as brittle when {score} < {self.threshold!r}, or it is not finite, or the two largest logits tie",
            f"brittle points are {self.criterion}",
            f"calibrated for a true positive rate of {self.tpr} on {counts.calibration} of {counts.brittle} "
            f"brittle points; {counts.robust} robust{undecided}{left_out_sentence(counts)}",
            chosen,
            f"flags of held-out brittle points: {rate}",
            f"flags of robust points: {self.false_positives}",
            remedy,
            f"verdict on the score: {self.verdict}",
            f"verdict on the threshold: {'without the undecided points it ' if counts.undecided else ''}{about}",
            f"model {self.model.state_sha256[:12]}…; intervals at {self.confidence}; seed {self.seed}",
        )
        return "\n".join(line for line in lines if line)

    def _classifier(self, network: nn.Module) -> Classifier:
        known = self.model
        return Classifier(network, known.bounds, known.mean, known.std, outputs=known.outputs)

    def _with_head(self, classifier: Classifier) -> Classifier:
        """The classifier with the last linear layer of the fit, where the score reads features.

        Raises:
            ModelError: there is no such layer, or the classifier names another one.
        """
        if not reading_of(self.score).uses_features:
            return classifier
        wanted, named = find_head(classifier.model, self.head).name, classifier.head_name
        if named not in (None, wanted):
            raise ModelError(
                "no_head",
                f"the detector reads the features of the layer {wanted!r}; the classifier names {named!r}; leave the "
                f"name out (--head, head=)",
            )
        return classifier if named == self.head else classifier.with_head(self.head)
