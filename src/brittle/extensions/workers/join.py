"""Join run folders: the parts of one run, or a run and later runs that add to it."""

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

Rows = dict[str, pa.Table]  # points, scores and counterexamples
ScoreKey = tuple[str, str]  # a score's name and its parameters, as the table writes them


class JoinedRun(NamedTuple):
    """A finished run that is joined: its folder, its record, its shards."""

    folder: Path
    record: RunRecord
    manifest: Manifest

    def read(self, shard: ShardEntry) -> Rows:
        return {kind: schema.empty_table() for kind, schema in SHARD_KINDS.items()} | {
            kind: read_shard(self.folder / file_name(kind, shard.number), kind, file, self.record).combine_chunks()
            for kind, file in shard.files.items()
        }


def join(
    out: str | os.PathLike[str], runs: Sequence[str | os.PathLike[str]], most_failures: int | None = MOST_FAILURES
) -> RunRecord:
    """Join runs in the new run folder `out`; a join that dies leaves no run there, and can be begun again.

    Parts of one run (`part=`, `--part`) give the run that one process computes, byte for byte but for its times. Later
    runs over some or all points of a first run add their scores to it; among rows of the same point and score the row
    with the most noisy copies, or passes, stays (the last wins ties). Counts that stop and differ in their largest
    number of draws alone are one score.

    Args:
        out: the folder.
        runs: all parts, in any order; or the first run and later ones.
        most_failures: as in `score`, over all parts; None joins them however many points got no number.

    Returns:
        the record of the joined run.

    Raises:
        DataError: too many of the first points of all parts got no number.
        ResumeError: they are not of one experiment; the fields that differ are named.
        UsageError: parts are missing, come twice or are joined with whole runs, or points or rows are missing.
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
        whole_folder = next(source.folder for source in sources if source.record.part is None)
        raise UsageError(f"{parts[0].folder} is part of a run and {whole_folder} is a whole one; join the parts first")
    with RunFolder(out).open() as folder:
        if parts:
            return _join_parts(folder, sorted(parts, key=lambda part: part.record.part or (0, 0)), most_failures)
        return _grow(folder, sources)


def check_finished(folder: Path, record: RunRecord) -> None:
    if record.finished is None:
        raise StorageError("run_damaged", f"{folder} has not finished; go on with its command and --resume first")


def _join_parts(folder: RunFolder, parts: Sequence[JoinedRun], most_failures: int | None) -> RunRecord:
    for part in parts[1:]:
        _check_same(parts[0], part)
    _check_complete(parts)
    first_record, *_ = records = [part.record for part in parts]
    joined = replace(
        first_record,
        part=None,
        command=first_record.command and _whole_command(first_record.command, folder.path),
        created=min(record.created for record in records),
        account=Account(),
        **_merge_times(records),
    )
    running = RunningRecord(joined, most_failures)
    entries = sorted(((entry, part) for part in parts for entry in part.manifest.shards), key=lambda e: e[0].number)
    for entry, part in entries:
        tables = part.read(entry)
        folder.commit(Shard(entry.number, tables, entry.account))
        running.add(entry.account, tables["points"])
    running.note_outcome()
    folder.note(running.now)
    return running.now


def _merge_times(records: Sequence[RunRecord]) -> dict[str, Any]:
    """Return the end of the last run and the sum of the times; None where a run has no time."""
    times: list[Any] = [record.seconds for record in records]
    return {"finished": max(run.finished or "" for run in records), "seconds": None if None in times else sum(times)}


def _whole_command(command: Sequence[str], out: Path) -> tuple[str, ...]:
    """Turn the command of a part into the command of the whole run in one process, into `out`."""
    args = [part for arg in command for part in (arg.split("=", 1) if arg.startswith(("--part=", "--out=")) else [arg])]
    for option, replacement in (("--part", []), ("--out", ["--out", str(out)])):
        if option in args:
            place = args.index(option)
            args[place : place + 2] = replacement
    return tuple(args)


def _check_complete(parts: Sequence[JoinedRun]) -> None:
    """Raise unless these are all parts of a run, each once, with the shards of its share."""
    part_counts = Counter(part.record.part for part in parts if part.record.part)
    count = parts[0].record.part[1] if parts[0].record.part else 1
    expected = Counter((number, count) for number in range(1, count + 1))
    if part_counts != expected:
        missing, surplus = (
            listed([f"{number}/{total}" for number, total in sorted(difference)]) or "none"
            for difference in (expected - part_counts, part_counts - expected)
        )
        raise UsageError(f"this run has {count} parts: missing {missing}, too many {surplus}; give each once")
    for part in parts:
        record, (number, _) = part.record, part.record.part or (1, 1)
        shards = range(number - 1, -(-(record.data.points or 0) // record.shard_points), count)
        if {entry.number for entry in part.manifest.shards} != {*shards}:
            raise StorageError("run_damaged", f"{part.folder} does not hold its {len(shards)} shards; score it again")


NAME = ["point", "score", "parameters"]  # the columns that identify a row of scores


class _Shards:
    """The shards of a run, each with its range of data rows, which are the same in all runs; the last read stays in
    memory."""

    def __init__(self, run: JoinedRun) -> None:
        self.run = run
        self.read = lru_cache(maxsize=1)(lambda place: run.read(run.manifest.shards[place]))
        self.ends = [_row_range(self.read(place)["points"]) for place in range(len(run.manifest.shards))]

    def rows_of(self, points: pa.Table) -> Rows:
        """Return the rows of these points, where the run holds them."""
        first_row, last_row = _row_range(points)
        has_point = pc.field("point").isin(points["point"].combine_chunks())
        within = (place for place, (low, high) in enumerate(self.ends) if low <= last_row and first_row <= high)
        parts = [{kind: rows.filter(has_point) for kind, rows in self.read(place).items()} for place in within]
        empty = {kind: schema.empty_table() for kind, schema in SHARD_KINDS.items()}
        return {kind: pa.concat_tables([empty[kind], *(part[kind] for part in parts)]) for kind in SHARD_KINDS}

    def check_within(self, first_run: _Shards) -> None:
        for place in range(len(self.ends)):
            points = self.read(place)["points"]
            shared_points = {*first_run.rows_of(points)["points"]["point"].to_pylist()}
            if lacking := [point for point in points["point"].to_pylist() if point not in shared_points]:
                raise UsageError(
                    f"{self.run.folder} holds point {lacking[0]}, which {first_run.run.folder} lacks; score it there"
                )


def _row_range(points: pa.Table) -> tuple[int, int]:
    rows = points["row"].to_numpy()
    return int(rows.min()), int(rows.max())


def _grow(folder: RunFolder, runs: Sequence[JoinedRun]) -> RunRecord:
    """Write a first run with the rows that later runs add; memory holds one shard of each run at a time."""
    scores, records = _match_scores(runs), [run.record for run in runs]
    first_shards, *later = map(_Shards, runs)
    for shards in later:
        shards.check_within(first_shards)
    account = Account(check_passes=sum(record.account.check_passes for record in records))
    for number, shard in enumerate(runs[0].manifest.shards):
        tables = first_shards.read(number)
        rows = _sum(runs, [tables, *(shards.rows_of(tables["points"]) for shards in later)], scores)
        passes = sum(rows["points"]["passes"].to_pylist())
        shard_account = Account.of(rows["points"], rows["scores"], passes, 0, account.points)
        written = shard_account if number else replace(shard_account, check_passes=account.check_passes)
        folder.commit(Shard(shard.number, rows, written))
        account += shard_account
    record = replace(
        records[0],
        scores=tuple({_key(score): score for score in scores.values()}.values()),
        account=account,
        warnings=tuple(dict.fromkeys(warning for record in records for warning in record.warnings)),
        **_merge_times(records),
    )
    folder.note(record)
    return record


def _sum(runs: Sequence[JoinedRun], tables: Sequence[Rows], scores: Mapping[ScoreKey, ScoreRecord]) -> Rows:
    """Return some rows of a first run with the rows that later runs add: of the same point and score that with the most
    noisy copies, so that no count becomes shorter, then the most passes, then the last. Mirror images are passes."""
    points = _merge_points(runs, [table["points"] for table in tables])
    rows, names = _stack([table["scores"] for table in tables], scores)
    examples, found_by = _stack([table["counterexamples"] for table in tables], scores)
    names["copies"] = unpack_votes(rows["votes"].to_pylist()).draws
    names["passes"], names["place"] = rows["passes"].to_pandas(), range(len(names))
    best = names.sort_values(["copies", "passes"], kind="stable").drop_duplicates(NAME, keep="last").set_index(NAME)
    scores_by_key = {_key(score): score for score in scores.values()}
    ids = points["point"].to_pylist()
    row_keys = pd.MultiIndex.from_tuples([(point, *key) for point in ids for key in scores_by_key])
    places = best["place"].reindex(row_keys)
    if places.hasnans:
        point, *key = row_keys[places.isna()][0]
        label = scores_by_key[key[0], key[1]].label
        raise UsageError(f"no run holds {label} of point {point}; a new score needs a run over all points")
    is_kept = best["run"].reindex(found_by.set_index(NAME).index).to_numpy() == found_by["run"].to_numpy()
    values, kept_examples = rows.take(pa.array(places, pa.int64())), examples.filter(pa.array(is_kept, pa.bool_()))
    return {"points": points, "scores": values, "counterexamples": kept_examples}


def _stack(tables: Sequence[pa.Table], scores: Mapping[ScoreKey, ScoreRecord]) -> tuple[pa.Table, pd.DataFrame]:
    """Return the rows of several runs under the names of the joined run, and these names with the number of the run."""
    rows = pa.concat_tables([_rename(table, scores) for table in tables])
    runs = [run for run, table in enumerate(tables) for _ in range(len(table))]
    return rows, rows.select(NAME).to_pandas().assign(run=runs)


def _merge_points(runs: Sequence[JoinedRun], tables: Sequence[pa.Table]) -> pa.Table:
    """Return the points of the first run with the passes of all; a point without a value is taken from a later run."""
    first_folder = runs[0].folder
    points = {row["point"]: row for row in tables[0].to_pylist()}
    for run, table in zip(runs[1:], tables[1:], strict=True):
        for new in table.to_pylist():
            old = points[new["point"]]
            if not {old["status"], new["status"]} & WITHOUT_VALUE and old["predicted"] != new["predicted"]:
                raise ResumeError(
                    "other_run",
                    f"point {new['point']} is predicted as {old['predicted']} in {first_folder} and as "
                    f"{new['predicted']} in {run.folder}; so the runs are of different models",
                )
            row = new if old["status"] in WITHOUT_VALUE else old
            points[new["point"]] = row | {"passes": old["passes"] + new["passes"]}
    return pa.Table.from_pylist([*points.values()], schema=POINTS)


def _rename(table: pa.Table, scores: Mapping[ScoreKey, ScoreRecord]) -> pa.Table:
    names = list(zip(table["score"].to_pylist(), table["parameters"].to_pylist(), strict=True))
    if foreign := sorted(set(names) - scores.keys()):
        raise StorageError("run_damaged", f"a run holds rows of {foreign[0][0]!r:.60}, which its record does not list")
    field = table.schema.field("parameters")
    parameters = pa.array([parameters_json(scores[name].parameters) for name in names], field.type)
    return table.set_column(table.schema.get_field_index("parameters"), field, parameters)


def _match_scores(runs: Sequence[JoinedRun]) -> dict[ScoreKey, ScoreRecord]:
    """Map each score of the runs to its score in the joined run: among equal counts, the one with the most draws."""
    longest: dict[ScoreKey, ScoreRecord] = {}
    for run in runs:
        for score in run.record.scores:
            best = longest.get(_question(score), score)
            longest[_question(score)] = max(best, score, key=lambda candidate: candidate.parameters.get("draws") or 0)
    for run in runs[1:]:
        common = {*map(_question, runs[0].record.scores)} & {*map(_question, run.record.scores)}
        _check_same(_restrict(runs[0], common), _restrict(run, common), UNDECISIVE | OF_POINTS)
    return {_key(score): longest[_question(score)] for run in runs for score in run.record.scores}


def _restrict(run: JoinedRun, questions: Set[ScoreKey]) -> JoinedRun:
    asking = (_without_draws(score) for score in run.record.scores if _question(score) in questions)
    return run._replace(record=replace(run.record, scores=tuple(sorted(asking, key=lambda score: score.label))))


def _question(score: ScoreRecord) -> ScoreKey:
    return _key(_without_draws(score))


def _without_draws(score: ScoreRecord) -> ScoreRecord:
    """Return a count that stops without its largest number of draws; any other score unchanged."""
    if not {"limit", "precision"} & score.parameters.keys():
        return score
    parameters = {name: value for name, value in score.parameters.items() if name != "draws"}
    return replace(score, parameters=parameters, label=score_label(score.score, parameters))


def _key(score: ScoreRecord) -> ScoreKey:
    return score.score, parameters_json(score.parameters)


def _check_same(reference: JoinedRun, run: JoinedRun, without: frozenset[str] = UNDECISIVE) -> None:
    places = (f"in {reference.folder}", f"in {run.folder}")
    if mismatches := differences(reference.record, run.record, places, without):
        raise ResumeError(
            "other_run",
            f"{reference.folder} and {run.folder} are of different runs: {'; '.join(mismatches)}; join those of one",
        )
