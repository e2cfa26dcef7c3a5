"""Run folders put together: the parts of one run, or a run and later ones that add to it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from brittle.doctor import Finding
from brittle.errors import ResumeError, StorageError, UsageError, listed
from brittle.estimate import parameters_json, score_label
from brittle.run.record import RunningRecord
from brittle.store.columns import WITHOUT_VALUE, Row
from brittle.store.folder import RECORD, Manifest, PackedShard, RunFolder, check_writable, file_name
from brittle.store.reading import open_run, read_bytes, read_shard, read_table
from brittle.store.record import UNDECISIVE, Account, RunRecord, ScoreRecord, differences
from brittle.store.schemas import COUNTEREXAMPLES, POINTS, SCORES

OF_POINTS = frozenset({"shard_points", "data.points", "data.limit", "data.chosen_from", "data.ids_sha256"})
"""Fields in which a later run over some points may differ from the first."""

SHOWN = 5
"""Parts or labels that a message names at most."""

ScoreKey = tuple[str, str]
"""A score's name and its parameters, as the table writes them."""


@dataclass(frozen=True)
class JoinedRun:
    """A finished run that is joined.

    Attributes:
        folder: where it lies.
        record: its record.
        manifest: its shards.
    """

    folder: Path
    record: RunRecord
    manifest: Manifest

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> JoinedRun:
        """The run in a folder.

        Raises:
            StorageError: there is none, it is damaged, or it has not finished.
        """
        record, manifest = open_run(Path(folder))
        if record.finished is None:
            raise StorageError("run_damaged", f"{folder} has not finished; go on with its command and --resume first")
        return cls(Path(folder), record, manifest)


def join(out: str | os.PathLike[str], runs: Sequence[str | os.PathLike[str]]) -> RunRecord:
    """Put runs together in the new run folder `out`; what dies leaves no run there, and is begun again.

    Parts of one run (`part=`, `--part`) give the run that one process computes, byte for byte but for its times. Later
    runs over some or all points of a first one add their scores to it; their rows of the same point and score take the
    place of its rows. Counts that stop and ask the same, with more draws at most, are the same score.

    Args:
        out: the folder.
        runs: all parts, in any order; or the first run and later ones.

    Returns:
        the record of the whole.

    Raises:
        ResumeError: they are not of one experiment; the fields that differ are named.
        UsageError: parts are missing or there twice, are joined with whole runs, or points or rows are missing.
        StorageError: a run is damaged or has not finished, or `out` holds a run already or cannot be written.
    """
    if (Path(out) / RECORD).exists():
        raise StorageError("exists", f"{out} holds a run already; choose another folder")
    check_writable(out)
    sources = [JoinedRun.open(run) for run in runs]
    parts = [source for source in sources if source.record.part is not None]
    if len(sources) < 2 and not parts:
        raise UsageError("join takes all parts of a run, or a run and later ones; give two folders or more")
    if parts and len(parts) < len(sources):
        whole = next(source.folder for source in sources if source.record.part is None)
        raise UsageError(f"{parts[0].folder} is part of a run and {whole} is a whole one; join the parts first")
    with RunFolder.open(out) as folder:
        return _join_parts(folder, parts) if parts else _add(folder, *sources)


def _join_parts(folder: RunFolder, parts: Sequence[JoinedRun]) -> RunRecord:
    first = parts[0]
    for part in parts[1:]:
        _check_same(first, part, differences(first.record, part.record, _places(first, part)))
    _check_complete(parts)
    entries = {entry.number: (part.folder, entry) for part in parts for entry in part.manifest.shards}
    records = [part.record for part in parts]
    fixed = replace(
        min(records, key=lambda record: record.part or (0, 0)),
        part=None,
        created=min(record.created for record in records),
        finished=max(record.finished or "" for record in records),
        seconds=sum(record.seconds or 0.0 for record in records),
    )
    findings = [Finding(warning.code, warning.sentence) for warning in fixed.warnings]
    running = RunningRecord(fixed, findings, fixed.model.classes or 0)
    for number, (place, entry) in sorted(entries.items()):
        files = {kind: read_bytes(place / file_name(kind, number), file) for kind, file in entry.files.items()}
        folder.enter(PackedShard(number, entry.account, files))
        running.add(entry.account, folder.points(number))
    running.note_outcome()
    folder.finish(running.now)
    return running.now


def _check_complete(parts: Sequence[JoinedRun]) -> None:
    """Raise unless these are all parts of a run, each once, with the shards of its share."""
    counts = {part.record.part[1]: part for part in parts if part.record.part}
    if len(counts) > 1:
        found = ", ".join(f"{part.folder} is one of {count}" for count, part in counts.items())
        raise UsageError(f"the parts are of runs that were divided in other ways: {found}; give those of one run")
    (count,) = counts
    numbers = Counter(part.record.part[0] for part in parts if part.record.part)
    wrong = {
        "missing": [f"{number}/{count}" for number in range(1, count + 1) if number not in numbers],
        "there twice": [f"{number}/{count}" for number, times in numbers.items() if times > 1],
    }
    if any(wrong.values()):
        said = ", ".join(f"{listed(names, SHOWN)} {what}" for what, names in wrong.items() if names)
        raise UsageError(f"of the parts of this run {said}; give every part once")
    for part in parts:
        record, (number, _) = part.record, part.record.part or (1, 1)
        shards = range(number - 1, -(-(record.data.points or 0) // record.shard_points), count)
        if {entry.number for entry in part.manifest.shards} != {*shards}:
            raise StorageError("run_damaged", f"{part.folder} does not hold its {len(shards)} shards; score it again")


def _add(folder: RunFolder, first: JoinedRun, *later: JoinedRun) -> RunRecord:
    """A run and what later ones add to it."""
    scores = _scores_of(first, later)
    added = [_Added.read(run, scores) for run in later]
    seen: set[str] = set()
    account = Account()
    for entry in first.manifest.shards:
        tables = {
            kind: read_shard(first.folder / file_name(kind, entry.number), kind, file, first.record)
            for kind, file in entry.files.items()
        }
        points = {row["point"]: row for row in tables["points"].to_pylist()}
        rows = _keyed(tables["scores"], scores)
        examples = _keyed(tables.get("counterexamples", COUNTEREXAMPLES.empty_table()), scores)
        for run in added:
            run.take_place(points, rows, examples)
        extra = 0 if seen else sum(run.source.record.account.check_passes for run in added)
        merged = {
            "points": pa.Table.from_pylist([*points.values()], schema=POINTS),
            "scores": pa.Table.from_pylist(list(_in_order(points, rows, scores)), schema=SCORES),
            "counterexamples": pa.Table.from_pylist([*examples.values()], schema=COUNTEREXAMPLES),
        }
        spent = sum(row["passes"] for row in points.values())
        told = entry.account
        found = Account.of(
            merged["points"], merged["scores"], spent, told.turned, told.check_passes + extra, first=len(seen)
        )
        seen |= points.keys()
        account += found
        folder.commit(entry.number, merged, found)
    for run in added:
        if unknown := [point for point in run.points if point not in seen]:
            raise UsageError(f"{run.source.folder} holds points that {first.folder} lacks: {listed(unknown, SHOWN)}")
    records = [first.record, *(run.record for run in later)]
    record = replace(
        first.record,
        scores=tuple({parameters_json(one.parameters) + one.score: one for one in scores.values()}.values()),
        finished=max(one.finished or "" for one in records),
        seconds=sum(one.seconds or 0.0 for one in records),
        account=account,
        warnings=tuple(dict.fromkeys(warning for one in records for warning in one.warnings)),
    )
    folder.finish(record)
    return record


@dataclass(frozen=True)
class _Added:
    """What a later run adds.

    Attributes:
        source: the run.
        points: its points by their ids.
        rows: its scores, by point and score.
        examples: the inputs that it found with another prediction, likewise.
    """

    source: JoinedRun
    points: Mapping[str, Row]
    rows: Mapping[tuple[str, ScoreKey], Row]
    examples: Mapping[tuple[str, ScoreKey], Row]

    @classmethod
    def read(cls, source: JoinedRun, scores: Mapping[ScoreKey, ScoreRecord]) -> _Added:
        table = read_table(source.folder)
        points = {row["point"]: row for row in table.points.to_pylist()}
        return cls(source, points, _keyed(table.scores, scores), _keyed(table.counterexamples, scores))

    def take_place(self, points: dict[str, Row], *tables: dict[tuple[str, ScoreKey], Row]) -> None:
        """Put the rows of this run in the place of those of a shard; its passes come on top."""
        for point in points.keys() & self.points.keys():
            old, new = points[point], self.points[point]
            if not {old["status"], new["status"]} & WITHOUT_VALUE and old["predicted"] != new["predicted"]:
                raise ResumeError(
                    "other_run",
                    f"point {point} is predicted as {old['predicted']} in the first run and as {new['predicted']} in "
                    f"{self.source.folder}; this is another model",
                )
            kept = new if old["status"] in WITHOUT_VALUE else old
            points[point] = kept | {"passes": old["passes"] + new["passes"]}
        for table, own in zip(tables, (self.rows, self.examples), strict=True):
            table |= {key: row for key, row in own.items() if key[0] in points}


def _scores_of(first: JoinedRun, later: Sequence[JoinedRun]) -> dict[ScoreKey, ScoreRecord]:
    """For each score of the runs what the joined run calls it: of counts that ask the same, the one with most draws.

    Raises:
        ResumeError: the runs are not of one experiment.
    """
    runs = [first, *later]
    asked = {id(run): Counter(_question(score) for score in run.record.scores) for run in runs}
    distinct = {question for counts in asked.values() for question, times in counts.items() if times > 1}
    found: dict[ScoreKey, list[ScoreRecord]] = {}
    for run in runs:
        for score in run.record.scores:
            question = _question(score)
            found.setdefault(_key(score) if question in distinct else question, []).append(score)
    for run in later:
        there = [one for one in first.record.scores if asked[id(run)][_question(one)]]
        now = [one for one in run.record.scores if asked[id(first)][_question(one)]]
        records = (
            replace(source.record, scores=tuple(sorted(map(_without_draws, scores), key=lambda one: one.label)))
            for source, scores in ((first, there), (run, now))
        )
        one, other = records
        _check_same(first, run, differences(one, other, _places(first, run), UNDECISIVE | OF_POINTS))
    most = {question: max(some, key=_draws) for question, some in found.items()}
    return {_key(score): most[question] for question, some in found.items() for score in some}


def _question(score: ScoreRecord) -> ScoreKey:
    return _key(_without_draws(score))


def _without_draws(score: ScoreRecord) -> ScoreRecord:
    """A count that stops, without the draws that a point may have at most; any other score as it is."""
    if not {"limit", "precision"} & score.parameters.keys():
        return score
    parameters = {name: value for name, value in score.parameters.items() if name != "draws"}
    return replace(score, parameters=parameters, label=score_label(score.score, parameters))


def _draws(score: ScoreRecord) -> int:
    draws = score.parameters.get("draws")
    return draws if isinstance(draws, int) else 0


def _key(score: ScoreRecord) -> ScoreKey:
    return score.score, parameters_json(score.parameters)


def _keyed(table: pa.Table, scores: Mapping[ScoreKey, ScoreRecord]) -> dict[tuple[str, ScoreKey], Row]:
    """The rows of scores by point and score, under the names of the joined run; others are of no score of a run."""
    found: dict[tuple[str, ScoreKey], Row] = {}
    for row in table.to_pylist():
        record = scores.get((row["score"], row["parameters"]))
        if record is not None:
            key = _key(record)
            found[row["point"], key] = row | {"parameters": key[1]}
    return found


def _in_order(
    points: Mapping[str, Any], rows: Mapping[tuple[str, ScoreKey], Row], scores: Mapping[ScoreKey, ScoreRecord]
) -> Iterator[Row]:
    """All rows, point by point, in the order of the scores.

    Raises:
        UsageError: one is missing.
    """
    keys = {_key(score): score.label for score in scores.values()}
    for point in points:
        for key, label in keys.items():
            if (point, key) not in rows:
                raise UsageError(f"no run holds {label} of point {point}; a new score needs a run over all points")
            yield rows[point, key]


def _places(one: JoinedRun, other: JoinedRun) -> tuple[str, str]:
    return f"in {one.folder}", f"in {other.folder}"


def _check_same(one: JoinedRun, other: JoinedRun, found: Sequence[str]) -> None:
    if found:
        raise ResumeError(
            "other_run", f"{one.folder} and {other.folder} are of different runs: {'; '.join(found)}; join those of one"
        )
