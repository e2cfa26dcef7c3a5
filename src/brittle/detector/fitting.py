"""From a run to what the file of a detector holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version

from brittle.analysis.decisions import column_for
from brittle.detector.calibration import Goal, calibrate
from brittle.detector.fields import FORMAT, DetectorFields
from brittle.detector.identity import Identity, Source, check_same_run
from brittle.detector.known_points import (
    KnownPoints,
    MarginCriterion,
    NoiseCriterion,
    by_decision,
    by_margin,
    check_label,
    check_table,
    margin_entry,
    norm_of,
    rows_by_point,
    score_entry,
)
from brittle.detector.pseudo_margin.pseudo_margin import PseudoMargin, check_pseudo_margin
from brittle.detector.scoring import (
    PSEUDO_MARGIN,
    READINGS,
    check_learned,
    check_score,
    check_use,
    parameters_of,
    reading_of,
)
from brittle.errors import DataError, ParameterError
from brittle.estimate import Scalar
from brittle.intervals import check_share
from brittle.norms import check_norm, parse_epsilon
from brittle.scores import LogitMargin
from brittle.store.keys import column_of
from brittle.store.record import ScoreRecord
from brittle.store.table import Table


@dataclass(frozen=True)
class Question:
    """What is asked of a run; exactly one of `epsilon` and `limit` is given.

    Attributes:
        epsilon: margins up to this are brittle: the worst case.
        limit: predictions kept with a smaller probability are brittle: the average case.
        norm: of the margins, and of the score where it has one.
        margin: label of the margins.
        column: label of the flip probability.
    """

    epsilon: float | str | None
    limit: float | None
    norm: str | None
    margin: str | None
    column: str | None

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.limit is None):
            raise ParameterError(
                f"a detector is of the worst case, with epsilon, or of the average case, with limit; found epsilon "
                f"{self.epsilon!r:.60} and limit {self.limit!r:.60}; give one of them",
            )
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", parse_epsilon(self.epsilon))
        check_label("margin", self.margin, "input_margin(norm=l2)")
        check_label("column", self.column, "monte_carlo(draws=10000, limit=0.9, sigma=0.1)")
        check_share("limit", self.limit)
        if self.limit is not None and self.margin is not None:
            raise ParameterError(f"limit reads no margin; found {self.margin!r:.60}; leave it out")
        if self.epsilon is not None and self.column is not None:
            raise ParameterError(f"epsilon reads no flip probability; found {self.column!r:.60}; leave it out")

    def known(
        self, table: Table, learned_from: tuple[str, ...]
    ) -> tuple[MarginCriterion | NoiseCriterion, KnownPoints]:
        """What makes a point of the run brittle, and which points are."""
        if isinstance(self.epsilon, float):
            norm = norm_of(table, self.norm, self.margin)
            entry = margin_entry(table, norm, self.margin)
            worst = MarginCriterion(self.epsilon, norm, _scalars(entry))
            return worst, by_margin(rows_by_point(table, entry), worst, learned_from)
        assert self.limit is not None
        column = column_for(table, self.limit) if self.column is None else column_of(table.columns, self.column)
        if not column.is_probability or column.setting.sigma is None:
            raise DataError(
                "no_such_score",
                f"{column.label} does not say what noise does to a prediction; score the points by one that does: "
                f"--scores monte_carlo --until decided --limit {self.limit:g}",
            )
        average = NoiseCriterion(float(self.limit), column.score, dict(column.parameters))
        return average, by_decision(table, column, average, learned_from)

    @property
    def score_norm(self) -> str | None:
        """The norm of the score, where it has one; None is that of the run, or else the score's own."""
        return None if self.norm is None else check_norm(self.norm)


def fit(
    table: Table,
    question: Question,
    goal: Goal,
    score: str | None,
    scores: Table | None,
    pseudo_margin: PseudoMargin | None,
) -> DetectorFields:
    """Calibrate on the points of a run; `brittle.Detector.fit` says what the arguments are and what is raised."""
    if score is not None:
        check_score(score)
    check_use(score or "", pseudo_margin)
    identity = Identity.of_run(table.record)
    if scores is not None:
        check_same_run(table.record, scores.record)
    learned_from = () if pseudo_margin is None else pseudo_margin.learned_from(Source.of_run(table.record))
    criterion, points = question.known(table, tuple(learned_from))
    norm = criterion.norm if isinstance(criterion, MarginCriterion) else question.score_norm
    if pseudo_margin is not None:
        check_learned(pseudo_margin, identity, norm)
    scored = scores or table
    entries = _entries(scored, score, norm, pseudo_margin)
    values = {
        name: reading_of(name).oriented(points.values(rows_by_point(scored, entry))) for name, entry in entries.items()
    }
    found = calibrate(points, values, goal, criterion.wider)
    return DetectorFields(
        format=FORMAT,
        brittle=version("brittle"),
        model=identity,
        criterion=criterion,
        parameters=_scalars(entries[found.score]),
        head=scored.record.model.head if reading_of(found.score).uses_features else None,
        **vars(goal),
        **vars(found),
    )


def check_runs(table: Table, scores: Table | None, pseudo_margin: PseudoMargin | None) -> None:
    """Raise where one of the arguments is of another kind."""
    check_table(table, "table")
    if scores is not None:
        check_table(scores, "scores")
    check_pseudo_margin(pseudo_margin)


def _entries(
    table: Table, score: str | None, norm: str | None, pseudo_margin: PseudoMargin | None
) -> Mapping[str, ScoreRecord]:
    """The score of that name in the record of a run; without one all that a detector reads from the network alone."""
    if score is not None:
        return {score: score_entry(table, score, parameters_of(score, norm or _only_norm(table, score), pseudo_margin))}
    known = [name for name in READINGS if name != PSEUDO_MARGIN]
    found = {
        entry.score: entry
        for name in known
        for entry in table.record.scores
        if entry.score == name and dict(entry.parameters) == parameters_of(name, norm or _only_norm(table, name), None)
    }
    return found or {LogitMargin.name: score_entry(table, LogitMargin.name, {})}


def _only_norm(table: Table, score: str) -> str | None:
    """The norm of a score that the run holds in one norm alone; None is its own."""
    found = {one.parameters.get("norm") for one in table.record.scores if one.score == score}
    norm = found.pop() if len(found) == 1 else None
    return norm if isinstance(norm, str) else None


def _scalars(score: ScoreRecord) -> dict[str, Scalar]:
    """The parameters of a score that a detector reads, or of margins; none of these is a list."""
    return {name: value for name, value in score.parameters.items() if not isinstance(value, tuple)}
