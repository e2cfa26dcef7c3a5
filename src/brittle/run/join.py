"""Run folders put together: the parts of one run, or a run and later ones that add to it."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from brittle.doctor import Finding
from brittle.errors import ResumeError, StorageError, UsageError, listed
from brittle.estimate import parameters_json, score_label
from brittle.run.record import MOST_FAILURES, RunningRecord
from brittle.store.columns import WITHOUT_VALUE
from brittle.store.folder import RECORD, Manifest, PackedShard, RunFolder, check_writable, file_name
from brittle.store.reading import open_run, read_bytes, read_table
from brittle.store.record import UNDECISIVE, Account, RunRecord, ScoreRecord, differences
from brittle.store.schemas import POINTS

OF_POINTS = frozenset({"shard_points", "data.points", "data.limit", "data.chosen_from", "data.ids_sha256"})
"""Fields in which a later run over some points may differ from the first."""

SHOWN = 5
"""Parts or labels that a message names at most."""

ScoreKey = tuple[str, str]
"""A score's name and its parameters, as the table writes them."""


@dataclass(frozen=True)
class JoinedRun:
    """A finished run that is joined: where it lies, its record, its shards."""

    folder: Path
    record: RunRecord
    manifest: Manifest

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> JoinedRun:
        """The run in a folder."""
        record, manifest = open_run(Path(folder))
        if record.finished is None:
            raise StorageError("run_damaged", f"{folder} has not finished; go on with its command and --resume first")
        return cls(Path(folder), record, manifest)


def join(
    out: str | os.PathLike[str], runs: Sequence[str | os.PathLike[str]], most_failures: int | None = MOST_FAILURES
) -> RunRecord:
    """Put runs together in the new run folder `out`; what dies leaves no run there, and is begun again.

    Parts of one run (`part=`, `--part`) give the run that one process computes, byte for byte but for its times. Later
    runs over some or all points of a first one add their scores to it; of rows of the same point and score the one with
    most passes stays, of equals the last. Counts that stop and ask the same, with other draws at most, are one score.

    Args:
        out: the folder.
        runs: all parts, in any order; or the first run and later ones.
        most_failures: as of `score`, over all parts; None joins them however many points got no number.

    Returns:
        the record of the whole.

    Raises:
        DataError: too many of the first points of all parts got no number.
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
        return _join_parts(folder, parts, most_failures) if parts else _add(folder, *sources)


def _join_parts(folder: RunFolder, parts: Sequence[JoinedRun], most_failures: int | None) -> RunRecord:
    for part in parts[1:]:
        _check_same(parts[0], part)
    _check_complete(parts)
    entries = {entry.number: (part.folder, entry) for part in parts for entry in part.manifest.shards}
    records = [part.record for part in parts]
    first = min(records, key=lambda record: record.part or (0, 0))
    fixed = replace(
        first,
        part=None,
        command=first.command and _of_the_whole(first.command, folder.path),
        created=min(record.created for record in records),
        finished=max(record.finished or "" for record in records),
        seconds=sum(record.seconds or 0.0 for record in records),
    )
    findings = [Finding(warning.code, warning.sentence) for warning in fixed.warnings]
    running = RunningRecord(fixed, findings, most_failures)
    for number, (place, entry) in sorted(entries.items()):
        files = {kind: read_bytes(place / file_name(kind, number), file) for kind, file in entry.files.items()}
        folder.enter(PackedShard(number, entry.account, files))
        running.add(entry.account, folder.points(number))
    running.note_outcome()
    folder.finish(running.now)
    return running.now


def _of_the_whole(command: Sequence[str], out: Path) -> tuple[str, ...]:
    """The command that computes in one process, into `out`, what that of a part began."""
    words = [
        part for word in command for part in (word.split("=", 1) if word.startswith(("--part=", "--out=")) else [word])
    ]
    for option, own in (("--part", []), ("--out", ["--out", str(out)])):
        if option in words:
            place = words.index(option)
            words[place : place + 2] = own
    return tuple(words)


def _check_complete(parts: Sequence[JoinedRun]) -> None:
    """Raise unless these are all parts of a run, each once, with the shards of its share."""
    numbers = Counter(part.record.part for part in parts if part.record.part)
    counts = {count for _, count in numbers}
    if len(counts) > 1:
        found = ", ".join(f"{number}/{count}" for number, count in sorted(numbers))
        raise UsageError(f"the parts are of runs that were divided in other ways: {found}; give those of one run")
    (count,) = counts
    missing = [f"{number}/{count}" for number in range(1, count + 1) if (number, count) not in numbers]
    twice = [f"{number}/{count}" for (number, count), times in numbers.items() if times > 1]
    if missing or twice:
        raise UsageError(
            f"parts of this run are missing ({listed(missing, SHOWN) or 'none'}) or there twice "
            f"({listed(twice, SHOWN) or 'none'}); give every part once"
        )
    for part in parts:
        record, (number, _) = part.record, part.record.part or (1, 1)
        shards = range(number - 1, -(-(record.data.points or 0) // record.shard_points), count)
        if {entry.number for entry in part.manifest.shards} != {*shards}:
            raise StorageError("run_damaged", f"{part.folder} does not hold its {len(shards)} shards; score it again")


def _add(folder: RunFolder, *runs: JoinedRun) -> RunRecord:
    """A first run and what later ones add to it."""
    first, later = runs[0].record, [run.record for run in runs[1:]]
    scores = _scores_of(runs)
    tables = [read_table(run.folder) for run in runs]
    points = _joined_points(runs, [table.points for table in tables])
    ids = points["point"].to_pylist()
    keys = {_key(score): score.label for score in scores.values()}
    rows = [_renamed(table.scores, scores) for table in tables]
    at = _best(rows)
    for point in ids:
        for key, label in keys.items():
            if (point, *key) not in at:
                raise UsageError(f"no run holds {label} of point {point}; a new score needs a run over all points")
    found = [_renamed(table.counterexamples, scores) for table in tables]
    kept = [place for name, run, place in _names(found) if at.get(name, (-1, 0))[0] == run]  # of the rows that stay
    examples = pa.concat_tables(found).take(pa.array(kept, pa.int64()))
    taken = pa.array([at[point, *key][1] for point in ids for key in keys], pa.int64())
    values = pa.concat_tables(rows).take(taken)
    account, size = Account(), first.shard_points
    for number, start in enumerate(range(0, len(points), size)):
        some = points.slice(start, size)
        shard = {
            "points": some,
            "scores": values.slice(start * len(keys), size * len(keys)),
            "counterexamples": examples.filter(pc.field("point").isin(some["point"].to_pylist())),
        }
        checks = 0 if start else sum(record.account.check_passes for record in (first, *later))
        turned = 0 if start else first.account.turned
        spent = sum(some["passes"].to_pylist())
        own = Account.of(shard["points"], shard["scores"], spent, turned, checks, first=start)
        account += own
        folder.commit(number, shard, own)
    record = replace(
        first,
        scores=tuple({_key(one): one for one in scores.values()}.values()),
        finished=max(one.finished or "" for one in (first, *later)),
        seconds=sum(one.seconds or 0.0 for one in (first, *later)),
        account=account,
        warnings=tuple(dict.fromkeys(warning for one in (first, *later) for warning in one.warnings)),
    )
    folder.finish(record)
    return record


def _joined_points(runs: Sequence[JoinedRun], tables: Sequence[pa.Table]) -> pa.Table:
    """The points of the first run with the passes of all; of one that it could not measure, as a later run has it."""
    first = runs[0].folder
    points = {row["point"]: row for row in tables[0].to_pylist()}
    for run, table in zip(runs[1:], tables[1:], strict=True):
        for new in table.to_pylist():
            if (old := points.get(new["point"])) is None:
                raise UsageError(f"{run.folder} holds the point {new['point']}, which {first} lacks; score it there")
            if not {old["status"], new["status"]} & WITHOUT_VALUE and old["predicted"] != new["predicted"]:
                raise ResumeError(
                    "other_run",
                    f"point {new['point']} is predicted as {old['predicted']} in {first} and as {new['predicted']} in "
                    f"{run.folder}; this is another model",
                )
            kept = new if old["status"] in WITHOUT_VALUE else old
            points[new["point"]] = kept | {"passes": old["passes"] + new["passes"]}
    return pa.Table.from_pylist([*points.values()], schema=POINTS)


RowName = tuple[str, str, str]
"""A point, a score and its parameters."""


def _best(tables: Sequence[pa.Table]) -> dict[RowName, tuple[int, int]]:
    """For each row of scores which run has it and its place among all rows.

    Of several it is the one with most passes, so that no count becomes a shorter one; of equals the last.
    """
    found: dict[RowName, tuple[int, int]] = {}
    most: dict[RowName, int] = {}
    passes = [spent for table in tables for spent in table["passes"].to_pylist()]
    for name, run, place in _names(tables):
        if passes[place] >= most.get(name, 0):
            found[name], most[name] = (run, place), passes[place]
    return found


def _names(tables: Sequence[pa.Table]) -> Iterator[tuple[RowName, int, int]]:
    """The name of every row, the place of its run, and its own among all rows."""
    place = itertools.count()
    for run, table in enumerate(tables):
        for name in zip(*(table[column].to_pylist() for column in ("point", "score", "parameters")), strict=True):
            yield name, run, next(place)


def _renamed(table: pa.Table, scores: Mapping[ScoreKey, ScoreRecord]) -> pa.Table:
    """Rows of scores under the names of the joined run."""
    names = list(zip(table["score"].to_pylist(), table["parameters"].to_pylist(), strict=True))
    if foreign := sorted(set(names) - scores.keys()):
        raise StorageError("run_damaged", f"a run holds rows of {foreign[0][0]!r:.60}, of which no record speaks")
    own = pa.array([parameters_json(scores[name].parameters) for name in names], table.schema.field("parameters").type)
    return table.set_column(table.schema.get_field_index("parameters"), table.schema.field("parameters"), own)


def _scores_of(runs: Sequence[JoinedRun]) -> dict[ScoreKey, ScoreRecord]:
    """For each score of the runs what the joined run calls it: of counts that ask the same, the one with most draws.

    Raises:
        ResumeError: the runs are not of one experiment.
    """
    asked = [Counter(_question(score) for score in run.record.scores) for run in runs]
    distinct = {question for counts in asked for question, times in counts.items() if times > 1}
    found: dict[ScoreKey, list[ScoreRecord]] = {}
    for run in runs:
        for score in run.record.scores:
            question = _question(score)
            found.setdefault(_key(score) if question in distinct else question, []).append(score)
    for run, counts in zip(runs[1:], asked[1:], strict=True):
        _check_same(_about(runs[0], counts), _about(run, asked[0]), UNDECISIVE | OF_POINTS)
    most = {key: max(some, key=lambda score: score.parameters.get("draws") or 0) for key, some in found.items()}
    return {_key(score): most[question] for question, some in found.items() for score in some}


def _about(run: JoinedRun, questions: Mapping[ScoreKey, int]) -> JoinedRun:
    """The run as if it had those scores alone that ask one of these questions, with any draws."""
    asking = (_without_draws(score) for score in run.record.scores if questions[_question(score)])
    return replace(run, record=replace(run.record, scores=tuple(sorted(asking, key=lambda score: score.label))))


def _question(score: ScoreRecord) -> ScoreKey:
    return _key(_without_draws(score))


def _without_draws(score: ScoreRecord) -> ScoreRecord:
    """A count that stops, without the draws that a point may have at most; any other score as it is."""
    if not {"limit", "precision"} & score.parameters.keys():
        return score
    parameters = {name: value for name, value in score.parameters.items() if name != "draws"}
    return replace(score, parameters=parameters, label=score_label(score.score, parameters))


def _key(score: ScoreRecord) -> ScoreKey:
    return score.score, parameters_json(score.parameters)


def _check_same(one: JoinedRun, other: JoinedRun, without: frozenset[str] = UNDECISIVE) -> None:
    places = (f"in {one.folder}", f"in {other.folder}")
    if found := differences(one.record, other.record, places, without):
        raise ResumeError(
            "other_run", f"{one.folder} and {other.folder} are of different runs: {'; '.join(found)}; join those of one"
        )
