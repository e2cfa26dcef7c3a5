"""What a finished run is asked for beyond what it holds: more draws for points that are open, other stopped counts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa

from brittle.errors import ParameterError, ResumeError
from brittle.estimate import parameters_json
from brittle.run.job import Job
from brittle.scores import MonteCarlo, Score
from brittle.store.record import RunRecord, ScoreRecord

ScoreKey = tuple[str, str]
"""A score's name and its parameters, as the table writes them."""


@dataclass(frozen=True)
class Continued:
    """A count that goes on where fewer draws ended.

    Attributes:
        score: the count.
        before: what the run calls the count that it goes on from.
        most: draws that a point could have there.
    """

    score: MonteCarlo
    before: ScoreKey
    most: int

    @property
    def key(self) -> ScoreKey:
        """What the run calls the count that takes its place."""
        return _key(self.score)


@dataclass(frozen=True)
class Growth:
    """What a finished run is asked for beyond what it holds.

    Attributes:
        held: the scores of the run as it is, in order.
        scores: those that it will hold, in order.
        continued: which of them go on from one that it holds, and take its place.
        added: which of them are new.
    """

    held: tuple[ScoreKey, ...]
    scores: tuple[ScoreKey, ...]
    continued: tuple[Continued, ...]
    added: tuple[Score, ...]

    def is_in(self, scores: pa.Table) -> bool:
        """Whether a shard holds rows of every score that the run will hold, as those of its first point say.

        A shard is written whole, so all points have the same.
        """
        points, *pairs = (scores[column].to_pylist() for column in ("point", "score", "parameters"))
        return {tuple(pair) for point, *pair in zip(points, *pairs, strict=True) if point == points[0]} >= {
            *self.scores
        }

    def expected(self, before: RunRecord, now: RunRecord) -> RunRecord:
        """`before` with the scores of `now`, so that everything else, and the scores that stay, can be compared."""
        there = {_key_of(one): one for one in before.scores}
        code = {one.key: there[one.before].code for one in self.continued}
        scores = (replace(one, code=code.get(_key_of(one), one.code)) for one in now.scores)
        return replace(before, scores=tuple(there.get(_key_of(one), one) for one in scores))


def growth_of(job: Job, before: RunRecord, folder: str) -> tuple[Job, Growth | None]:
    """What `job` asks of a run, as a job with all scores that the run holds then, and what is more than it holds.

    A run grows by counts that stop (`MonteCarlo` with `limit` or `precision`): one with more draws takes the place of
    the one that asks the same; others are added. Beside a stopped count, counts under its noise that the run holds need
    not be asked for again. Where the scores differ otherwise, the job comes back as it is.

    Args:
        job: what is asked.
        before: the record of the run.
        folder: where it lies, for messages.

    Raises:
        ResumeError: the run counts more draws for the same question.
    """
    asked = {_key(score): score for score in job.scores}
    held = tuple(map(_key_of, before.scores))
    stopped = [score for score in job.scores if type(score) is MonteCarlo and score.stops]
    new = {_key(score): score for score in stopped if _key(score) not in held}
    scores: dict[ScoreKey, Score] = {}
    continued: list[Continued] = []
    for key, old in zip(held, before.scores, strict=True):
        more = next((score for score in new.values() if _asks_same(score, old)), None)
        if key in asked:
            scores[key] = asked[key]
        elif more is not None:
            continued.append(_continued(new.pop(_key(more)), old, folder))
            scores[_key(more)] = more
        elif (again := _again(old, stopped)) is not None:
            scores[key] = again
        else:
            return job, None
    scores |= new
    if not scores.keys() >= asked.keys() or scores.keys() == asked.keys() == {*held}:
        return job, None
    found = Growth(held, tuple(scores), tuple(continued), tuple(new.values()))
    return replace(job, scores=tuple(scores.values())), found if continued or new else None


def without_growth(job: Job, before: RunRecord, now: RunRecord) -> tuple[RunRecord, RunRecord]:
    """The records of two runs without the scores by which one could grow to the other, to tell what else differs.

    Those are stopped counts that are asked for and would be new, and scores that beside them need not be asked for
    again. A stopped count stays where the run holds a score of that name that is not asked for. Where nothing is left
    that differs the records come back as they are.

    Args:
        job: what is asked.
        before: the record of the run.
        now: the record that a run of `job` would have.
    """
    asked, held = set(map(_key, job.scores)), set(map(_key_of, before.scores))
    stopped = [score for score in job.scores if type(score) is MonteCarlo and score.stops]
    gone = {
        _key_of(old)
        for old in before.scores
        if _key_of(old) not in asked
        and not any(_asks_same(score, old) for score in stopped)
        and _again(old, stopped) is None
    }
    lost = {name for name, _ in gone}
    come = asked - held - {_key(score) for score in stopped if score.name not in lost}
    if not gone and not come:
        return before, now
    records = ((before, asked | gone), (now, held | come))
    one, other = (
        replace(record, scores=tuple(score for score in record.scores if _key_of(score) in kept))
        for record, kept in records
    )
    return one, other


def _continued(score: MonteCarlo, old: ScoreRecord, folder: str) -> Continued:
    most = int(old.parameters["draws"])  # type: ignore[arg-type]
    if score.draws < most:
        raise ResumeError(
            "other_run",
            f"{folder} holds {old.label}, and at most {score.draws} draws are asked for; give {most} or more "
            f"(--most-draws, most_draws)",
        )
    return Continued(score, _key_of(old), most)


def _asks_same(score: MonteCarlo, old: ScoreRecord) -> bool:
    """Whether a score is the one of the record but for its draws."""
    draws = {"draws": old.parameters.get("draws")}
    same = parameters_json({**score.parameters, **draws}) == parameters_json(old.parameters)
    return same and score.name == old.score and isinstance(draws["draws"], int)


def _again(old: ScoreRecord, stopped: Sequence[MonteCarlo]) -> MonteCarlo | None:
    """The count that a record describes, where it is one under the noise of one of `stopped`."""
    given = {name: old.parameters[name] for name in ("draws", "clip", "limit", "precision") if name in old.parameters}
    for one in stopped:
        with suppress(ParameterError):
            found = MonteCarlo(noise=one.noise, **given).about(one.of_label)  # type: ignore[arg-type]
            if _key(found) == _key_of(old):
                return found
    return None


def _key(score: Score) -> ScoreKey:
    return score.name, parameters_json(score.parameters)


def _key_of(record: ScoreRecord) -> ScoreKey:
    return record.score, parameters_json(record.parameters)
