"""Run folders put together: the parts of one run, or a run and later ones that add to it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from brittle.errors import ResumeError, StorageError, UsageError, listed
from brittle.estimate import parameters_json, score_label
from brittle.run.record import MOST_FAILURES, RunningRecord
from brittle.store.columns import WITHOUT_VALUE
from brittle.store.folder import RECORD, Manifest, RunFolder, Shard, ShardEntry, check_writable, file_name
from brittle.store.reading import open_run, read_shard
from brittle.store.record import UNDECISIVE, Account, RunRecord, ScoreRecord, differences
from brittle.store.schemas import POINTS, SHARD_KINDS, unpack_votes

_CHOSEN = ("points", "limit", "chosen_from", "sample_seed", "ids_sha256")
OF_POINTS = frozenset({"shard_points", *(f"data.{name}" for name in _CHOSEN)})
"""Fields in which a later run over some points may differ from the first."""

Rows = dict[str, pa.Table]
"""Points, scores and counterexamples."""

ScoreKey = tuple[str, str]
"""A score's name and its parameters, as the table writes them."""


class JoinedRun(NamedTuple):
    """A finished run that is joined: where it lies, its record, its shards."""

    folder: Path
    record: RunRecord
    manifest: Manifest

    def read(self, shard: ShardEntry) -> Rows:
        """The rows of one of its shards."""
        return {kind: schema.empty_table() for kind, schema in SHARD_KINDS.items()} | {
            kind: read_shard(self.folder / file_name(kind, shard.number), kind, file, self.record).combine_chunks()
            for kind, file in shard.files.items()
        }


def join(
    out: str | os.PathLike[str], runs: Sequence[str | os.PathLike[str]], most_failures: int | None = MOST_FAILURES
) -> RunRecord:
    """Put runs together in the new run folder `out`; what dies leaves no run there, and is begun again.

    Parts of one run (`part=`, `--part`) give the run that one process computes, byte for byte but for its times. Later
    runs over some or all points of a first one add their scores to it; of rows of the same point and score the one with
    most noisy copies, or passes, stays, of equals the last. Counts that stop and ask the same, with other draws at
    most, are one score.

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
    check_writable(out)
    if (Path(out) / RECORD).exists():
        raise StorageError("exists", f"{out} holds a run already; choose another folder")
    sources = [JoinedRun(Path(run), *open_run(Path(run))) for run in runs]
    for source in sources:
        check_finished(source.folder, source.record)
    parts = [source for source in sources if source.record.part is not None]
    if len(sources) < 2 and not parts:
        raise UsageError("join takes all parts of a run, or a run and later ones; give two folders or more")
    if parts and len(parts) < len(sources):
        whole = next(source.folder for source in sources if source.record.part is None)
        raise UsageError(f"{parts[0].folder} is part of a run and {whole} is a whole one; join the parts first")
    with RunFolder(out).open() as folder:
        if parts:
            return _join_parts(folder, sorted(parts, key=lambda part: part.record.part or (0, 0)), most_failures)
        return _grow(folder, sources)


def check_finished(folder: Path, record: RunRecord) -> None:
    """Raise where a run has shards to compute."""
    if record.finished is None:
        raise StorageError("run_damaged", f"{folder} has not finished; go on with its command and --resume first")


def _join_parts(folder: RunFolder, parts: Sequence[JoinedRun], most_failures: int | None) -> RunRecord:
    for part in parts[1:]:
        _check_same(parts[0], part)
    _check_complete(parts)
    first, *_ = records = [part.record for part in parts]
    whole = replace(
        first,
        part=None,
        command=first.command and _of_the_whole(first.command, folder.path),
        created=min(record.created for record in records),
        account=Account(),
        **_together(records),
    )
    running = RunningRecord(whole, most_failures)
    entries = sorted(((entry, part) for part in parts for entry in part.manifest.shards), key=lambda one: one[0].number)
    for entry, part in entries:
        tables = part.read(entry)
        folder.commit(Shard(entry.number, tables, entry.account))
        running.add(entry.account, tables["points"])
    running.note_outcome()
    folder.note(running.now)
    return running.now


def _together(records: Sequence[RunRecord]) -> dict[str, Any]:
    """When the last of some runs was over, and how long they took, where that is known of all."""
    seconds: list[Any] = [record.seconds for record in records]
    return {
        "finished": max(record.finished or "" for record in records),
        "seconds": None if None in seconds else sum(seconds),
    }


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
    found = Counter(part.record.part for part in parts if part.record.part)
    count = parts[0].record.part[1] if parts[0].record.part else 1
    expected = Counter((number, count) for number in range(1, count + 1))
    if found != expected:
        missing, more = (
            listed([f"{number}/{many}" for number, many in sorted(some)]) or "none"
            for some in (expected - found, found - expected)
        )
        raise UsageError(f"of the {count} parts of this run {missing} are missing, {more} too many; give each once")
    for part in parts:
        record, (number, _) = part.record, part.record.part or (1, 1)
        shards = range(number - 1, -(-(record.data.points or 0) // record.shard_points), count)
        if {entry.number for entry in part.manifest.shards} != {*shards}:
            raise StorageError("run_damaged", f"{part.folder} does not hold its {len(shards)} shards; score it again")


NAME = ["point", "score", "parameters"]
"""What a row of scores is known by."""


class _Shards:
    """The shards of a run by the rows of the data that they hold, in whose order they are; and the last that was read.

    Runs over the same data have the same row for a point.
    """

    def __init__(self, run: JoinedRun) -> None:
        self.run = run
        self.read = lru_cache(maxsize=1)(lambda place: run.read(run.manifest.shards[place]))
        self.ends = [_ends(self.read(place)["points"]) for place in range(len(run.manifest.shards))]

    def rows_of(self, points: pa.Table) -> Rows:
        """The rows of those of some points that the run holds."""
        first, last = _ends(points)
        wanted = pc.field("point").isin(points["point"].combine_chunks())
        within = (place for place, (low, high) in enumerate(self.ends) if low <= last and first <= high)
        parts = [{kind: rows.filter(wanted) for kind, rows in self.read(place).items()} for place in within]
        empty = {kind: schema.empty_table() for kind, schema in SHARD_KINDS.items()}
        return {kind: pa.concat_tables([empty[kind], *(part[kind] for part in parts)]) for kind in SHARD_KINDS}

    def check_within(self, first: _Shards) -> None:
        """Raise where the run holds a point that the first lacks."""
        for place in range(len(self.ends)):
            points = self.read(place)["points"]
            known = {*first.rows_of(points)["points"]["point"].to_pylist()}
            if lacking := [point for point in points["point"].to_pylist() if point not in known]:
                raise UsageError(
                    f"{self.run.folder} holds the point {lacking[0]}, which {first.run.folder} lacks; score it there"
                )


def _ends(points: pa.Table) -> tuple[int, int]:
    """The first and the last row of the data among some points."""
    rows = points["row"].to_numpy()
    return int(rows.min()), int(rows.max())


def _grow(folder: RunFolder, runs: Sequence[JoinedRun]) -> RunRecord:
    """Write a first run and what later ones add to it, of which a shard of each at a time is held."""
    scores, records = _scores_of(runs), [run.record for run in runs]
    first, *later = map(_Shards, runs)
    for shards in later:
        shards.check_within(first)
    account = Account(check_passes=sum(one.account.check_passes for one in records))
    for number, shard in enumerate(runs[0].manifest.shards):
        own = first.read(number)
        rows = _sum(runs, [own, *(shards.rows_of(own["points"]) for shards in later)], scores)
        passes = sum(rows["points"]["passes"].to_pylist())
        told = Account.of(rows["points"], rows["scores"], passes, 0, account.points)
        folder.commit(Shard(shard.number, rows, told if number else replace(told, check_passes=account.check_passes)))
        account += told
    record = replace(
        records[0],
        scores=tuple({_key(one): one for one in scores.values()}.values()),
        account=account,
        warnings=tuple(dict.fromkeys(warning for one in records for warning in one.warnings)),
        **_together(records),
    )
    folder.note(record)
    return record


def _sum(runs: Sequence[JoinedRun], tables: Sequence[Rows], scores: Mapping[ScoreKey, ScoreRecord]) -> Rows:
    """Some rows of a first run and what later ones add to them.

    Of several rows of a point and a score it holds the one with most noisy copies, so that no count becomes a shorter
    one, of equals the one with most passes, and of equals the last. Mirror images are passes and no copies.
    """
    points = _joined_points(runs, [table["points"] for table in tables])
    rows, names = _stacked([table["scores"] for table in tables], scores)
    examples, found_by = _stacked([table["counterexamples"] for table in tables], scores)
    names["copies"] = unpack_votes(rows["votes"].to_pylist()).draws
    names["passes"], names["place"] = rows["passes"].to_pandas(), range(len(names))
    best = names.sort_values(["copies", "passes"], kind="stable").drop_duplicates(NAME, keep="last").set_index(NAME)
    known = {_key(one): one for one in scores.values()}
    wanted = pd.MultiIndex.from_tuples([(point, *key) for point in points["point"].to_pylist() for key in known])
    places = best["place"].reindex(wanted)
    if places.hasnans:
        point, *key = wanted[places.isna()][0]
        label = known[key[0], key[1]].label
        raise UsageError(f"no run holds {label} of point {point}; a new score needs a run over all points")
    of_kept = best["run"].reindex(found_by.set_index(NAME).index).to_numpy() == found_by["run"].to_numpy()
    values, kept = rows.take(pa.array(places, pa.int64())), examples.filter(pa.array(of_kept, pa.bool_()))
    return {"points": points, "scores": values, "counterexamples": kept}


def _stacked(tables: Sequence[pa.Table], scores: Mapping[ScoreKey, ScoreRecord]) -> tuple[pa.Table, pd.DataFrame]:
    """Rows of several runs under the names of the joined one; these names, with the place of the run of each."""
    rows = pa.concat_tables([_renamed(table, scores) for table in tables])
    runs = [run for run, table in enumerate(tables) for _ in range(len(table))]
    return rows, rows.select(NAME).to_pandas().assign(run=runs)


def _joined_points(runs: Sequence[JoinedRun], tables: Sequence[pa.Table]) -> pa.Table:
    """The points of the first run with the passes of all; of one that it could not measure, as a later run has it."""
    first = runs[0].folder
    points = {row["point"]: row for row in tables[0].to_pylist()}
    for run, table in zip(runs[1:], tables[1:], strict=True):
        for new in table.to_pylist():
            old = points[new["point"]]
            if not {old["status"], new["status"]} & WITHOUT_VALUE and old["predicted"] != new["predicted"]:
                raise ResumeError(
                    "other_run",
                    f"point {new['point']} is predicted as {old['predicted']} in {first} and as {new['predicted']} in "
                    f"{run.folder}; this is another model",
                )
            kept = new if old["status"] in WITHOUT_VALUE else old
            points[new["point"]] = kept | {"passes": old["passes"] + new["passes"]}
    return pa.Table.from_pylist([*points.values()], schema=POINTS)


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
    most: dict[ScoreKey, ScoreRecord] = {}
    for run in runs:
        for score in run.record.scores:
            best = most.get(_question(score), score)
            most[_question(score)] = max(best, score, key=lambda one: one.parameters.get("draws") or 0)
    for run in runs[1:]:
        common = {*map(_question, runs[0].record.scores)} & {*map(_question, run.record.scores)}
        _check_same(_about(runs[0], common), _about(run, common), UNDECISIVE | OF_POINTS)
    return {_key(score): most[_question(score)] for run in runs for score in run.record.scores}


def _about(run: JoinedRun, questions: Set[ScoreKey]) -> JoinedRun:
    """The run as if it had those scores alone that ask one of these questions, with any draws."""
    asking = (_without_draws(score) for score in run.record.scores if _question(score) in questions)
    return run._replace(record=replace(run.record, scores=tuple(sorted(asking, key=lambda score: score.label))))


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
