"""One shard of a finished run, with what it is asked for beyond what it holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from brittle.data import Batch
from brittle.doctor.reference import Reference
from brittle.errors import ModelError, StorageError
from brittle.estimate import Status
from brittle.intervals import sequence_successes
from brittle.measure import Clean, SampleUntil, StoppedVotes
from brittle.measure.rows import join
from brittle.run.growth import Continued, Growth, ScoreKey
from brittle.run.job import Job
from brittle.run.rows import cells, evaluate_rows
from brittle.scores.evaluate import deciding, decisions_of, estimate_of, look_at, of_label
from brittle.store.account import Account
from brittle.store.columns import BULKY, WITHOUT_VALUE, Row
from brittle.store.schemas import SCORES
from brittle.store.table import rows_of


@dataclass(frozen=True)
class Grown:
    """A shard that has grown.

    Attributes:
        points: its points; their passes are those of a run that held all its scores from the first.
        scores: its scores; those that others take the place of are still among them.
        account: what became of its points.
    """

    points: pa.Table
    scores: pa.Table
    account: Account


def grow(
    job: Job,
    growth: Growth,
    number: int,
    tables: Mapping[str, pa.Table],
    account: Account,
    begun: Callable[[Batch], None] | None,
    reference: Reference,
) -> Grown:
    """Shard `number` with what `growth` asks of it.

    Passes that a run with all scores from the first would not have made (the clean pass once more, and draws that are
    made anew) are counted as those of checks.

    Args:
        job: of the run with all scores that it will hold.
        growth: what is more than it holds.
        number: of the shard.
        tables: its points and scores as they are.
        account: what became of its points so far.
        begun: called with each batch.
        reference: the first points as this process saw them at first.

    Raises:
        ModelError: the model is another one, or what `Job.shard` raises.
        StorageError: rows of the shard are missing.
    """
    held = _Held.of(tables, growth.held, number)
    visit = _Visit(job, growth, held)
    parts, spent, checks = [], 0, 0
    if growth.added or any(held.start(one, point) is not None for one in growth.continued for point in held.points):
        visited = job.visit(number, visit, held.lost, begun, None, reference)
        parts, spent, checks = visited.parts, visited.passes, visited.check_passes
    passes = [row["passes"] + sum(part.passes[point] for part in parts) for point, row in held.points.items()]
    at = tables["points"].schema.get_field_index("passes")
    points = tables["points"].set_column(at, tables["points"].schema.field(at), pa.array(passes, pa.int64()))
    rows = {key: row for part in parts for key, row in part.rows.items()}
    scores = pa.Table.from_pylist(list(held.with_rows(growth, rows)), schema=SCORES)
    before = sum(row["passes"] for row in held.points.values())
    checks += account.check_passes + spent - (sum(passes) - before)
    rows_now = rows_of(scores, growth.scores)
    found = Account.of(points, rows_now, sum(passes), account.turned, checks, first=job.first_point(number))
    return Grown(points, scores, found)


@dataclass(frozen=True)
class _Held:
    """What a shard holds.

    Attributes:
        points: the row of each point, by its id.
        rows: those of its scores, by point and score.
    """

    points: Mapping[str, Row]
    rows: Mapping[tuple[str, ScoreKey], Row]

    @classmethod
    def of(cls, tables: Mapping[str, pa.Table], scores: Iterable[ScoreKey], number: int) -> _Held:
        """The rows of these scores.

        Raises:
            StorageError: one is missing.
        """
        points = {row["point"]: row for row in tables["points"].drop_columns(list(BULKY)).to_pylist()}
        rows = {
            (row["point"], (row["score"], row["parameters"])): row
            for row in rows_of(tables["scores"], scores).to_pylist()
        }
        if any((point, key) not in rows for point in points for key in scores):
            raise StorageError("run_damaged", f"shard {number} lacks rows of scores that the run holds; score again")
        return cls(points, rows)

    @property
    def lost(self) -> dict[int, str]:
        """The rows of the data that killed their worker, and how."""
        died = [row for row in self.points.values() if row["status"] == Status.WORKER_DIED.slug]
        return {row["row"]: row["detail"].removeprefix(f"row {row['row']}: ") for row in died}

    def start(self, one: Continued, point: str) -> int | None:
        """The number of draws from which a point goes on; None where it does not.

        The row of a point with copies that were not finite does not hold its counts, so it begins anew.
        """
        row = self.rows[point, one.before]
        if self.points[point]["status"] in WITHOUT_VALUE or row["passes"] <= one.most:
            return None
        return 0 if row["value"] is None else one.most

    def with_rows(self, growth: Growth, rows: Mapping[tuple[str, ScoreKey], Row]) -> Iterable[Row]:
        """All rows, point by point, with new ones among them; a score that another goes on from stands before it."""
        places = {one.before: one.key for one in growth.continued}
        added = [key for key in growth.scores if key not in growth.held and key not in places.values()]
        for point in self.points:
            for key in growth.held:
                old = self.rows[point, key]
                yield old
                if key in places:
                    yield rows.get((point, places[key]), old | {"parameters": places[key][1]})
            yield from (rows[point, key] for key in added)


@dataclass(frozen=True)
class _Part:
    """What came of a batch: its new rows, and the passes on top of those that its points have."""

    rows: dict[tuple[str, ScoreKey], Row] = field(default_factory=dict)
    passes: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class _Visit:
    """Computes what is asked of a batch.

    Attributes:
        job: of the run with all scores.
        growth: what is asked.
        held: what its shard holds.
    """

    job: Job
    growth: Growth
    held: _Held

    def __call__(self, batch: Batch) -> _Part:
        part = _Part()
        if self.growth.added:
            self._add(batch, part)
        for one in self.growth.continued:
            starts = [self.held.start(one, point) for point in batch.ids]
            if any(start is not None for start in starts):
                self._go_on(one, batch, starts, part)
        return part

    def _add(self, batch: Batch, part: _Part) -> None:
        """Scores that the run does not hold."""
        job = self.job
        tables = evaluate_rows(job.classifier, batch, self.growth.added, job.seed, job.rows, job.confidence)
        for row in tables["scores"].to_pylist():
            part.rows[row["point"], (row["score"], row["parameters"])] = row
        points = tables["points"].to_pydict()
        self._check_predicted(batch, points["predicted"])
        for point, passes in zip(batch.ids, points["passes"], strict=True):
            part.passes[point] += max(0, passes - 1)  # all but the clean pass, which was counted

    def _go_on(self, one: Continued, batch: Batch, starts: Sequence[int | None], part: _Part) -> None:
        """More draws for the points that are open."""
        job, need = self.job, one.score.needs[0]
        assert isinstance(need, SampleUntil)
        clean = look_at(job.classifier, batch, [need], job.seed, job.rows, job.confidence)
        assert clean is not None  # points are open only where they were measured
        self._check_predicted(batch, decisions_of(job.classifier.decision, clean))
        if one.score.of_label is not None:
            clean = of_label(job.classifier, one.score.of_label, [need], clean)
        order = sorted((at for at, start in enumerate(starts) if start is not None), key=lambda at: not starts[at])
        begun = sum(bool(starts[at]) for at in order)
        votes = self._votes(one, need, clean, batch, order[:begun], order[begun:])
        columns = cells(estimate_of(one.score, {need: votes}, job.confidence, len(order)))
        draws = votes.draws.tolist()
        for place, at in enumerate(order):
            point, (name, parameters) = batch.ids[at], one.key
            own = {"point": point, "score": name, "parameters": parameters}
            part.rows[point, (name, parameters)] = own | {column: found[place] for column, found in columns.items()}
            part.passes[point] += draws[place] - min(draws[place], one.most)

    def _votes(
        self, one: Continued, need: SampleUntil, clean: Clean, batch: Batch, begun: Sequence[int], anew: Sequence[int]
    ) -> StoppedVotes:
        """The votes of the points at the positions `begun`, from the first draws that are there, then `anew`."""
        classifier, votes = deciding(self.job.classifier, one.score.of_label), []
        if begun:
            rows = [self.held.rows[batch.ids[at], one.before] for at in begun]
            votes.append(
                need.go_on(classifier, clean.only(torch.tensor(begun)), one.most, *self._flips(rows, one.most))
            )
        if anew:
            votes.append(need(classifier, clean.only(torch.tensor(anew))))
        return join(votes)

    def _flips(self, rows: Sequence[Row], draws: int) -> tuple[Tensor, Tensor]:
        """How many of the draws flipped, ties among them and not; the two ends of an interval tell it, `[B]` each."""
        low, high = (np.array([row[end] for row in rows]) for end in ("low", "high"))
        flips = draws - sequence_successes(1.0 - high, draws, self.job.confidence)
        return torch.from_numpy(flips), torch.from_numpy(sequence_successes(low, draws, self.job.confidence))

    def _check_predicted(self, batch: Batch, predicted: Sequence[int | None]) -> None:
        """Raise where a prediction is not the one that the run holds.

        Raises:
            ModelError: one is not.
        """
        for point, row, now in zip(batch.ids, batch.rows, predicted, strict=True):
            there = self.held.points[point]["predicted"]
            if there is not None and now != there:
                raise ModelError(
                    "model_changed",
                    f"row {row} was predicted as class {there} when it was scored and is as {now} now; this is another "
                    f"model, score it into another folder",
                )
