"""The commands that read runs: one screen, points, a comparison, what is damaged, and whether rules are kept."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from brittle.cli.common import (
    Config,
    Json,
    Overwrite,
    Run,
    as_called,
    check_new,
    check_own,
    note_unfinished,
    open_run,
    records,
)  # fmt: skip
from brittle.cli.common import show as print_lines
from brittle.errors import StorageError, UsageError, listed
from brittle.registry import load
from brittle.store.export import cell
from brittle.store.writing import write
from brittle.text import as_json

if TYPE_CHECKING:
    from brittle.analysis.overview import Overview
    from brittle.store.table import Table

FACTS = ("name", "title", "quantity", "cost", "reference", "explanation")  # of a score, in `brittle list`
TOP = 20  # points in a list, unless another number is given


def show(
    run_folder: Run,
    point: str | None = None,
    /,
    *,
    top: int | None = None,
    by: str | None = None,
    of_class: Annotated[str | None, Parameter(name="--class")] = None,
    state: Literal["holds", "breaks", "undecided", "failed"] | None = None,
    right: bool = False,
    wrong: bool = False,
    limit: float | None = None,
    sigma: float | None = None,
    json: Json = False,
) -> int:
    """Show what RUN found: on one screen, as a list of points, or for one POINT.

    The screen says how many predictions hold and break, which classes, how sure that is, and what to do next. Any of
    the options --top, --by, --class, --state, --right and --wrong asks for a list instead.

    Args:
        run_folder: A folder that `brittle score` wrote.
        point: The id, the row or the name of a point: everything that the run says of it.
        top: Points in the list; 20 by default.
        by: The score that orders the list, the least safe point first: a name, at the noise that speaks for the run, or
            a label such as moments(draws=100, sigma=0.1). By default the flip probability that speaks for the run, and
            with --wrong the probability of the label.
        of_class: Only points of this class, by name or number.
        state: Only points that hold, break or are undecided at --limit, or that have no number (failed).
        right: Only points that are predicted right.
        wrong: Only points that are predicted wrong.
        limit: A prediction holds where it is kept with this probability or more; by default the one that points were
            drawn for, or 0.9.
        sigma: The noise level to speak of, one of the run's; by default the one that tells its points apart best.
    """
    from brittle.analysis.columns import named_column
    from brittle.analysis.decisions import column_for, numbers_beside
    from brittle.analysis.overview import overview
    from brittle.analysis.point_list import Wanted, format_point_list, least_points
    from brittle.store.reading import read_shards

    listing = top is not None or by or of_class or state or right or wrong
    if right and wrong:
        raise UsageError("--right and --wrong leave no point together; give one of them")
    if top is not None and top < 1:
        raise UsageError(f"--top takes a number of points, 1 or more; found {top}")
    if point is not None and (listing or limit is not None or sigma is not None):
        raise UsageError(f"POINT ({point}) shows one point and takes no option of a list; give one of both")
    table = open_run(run_folder, point=point)
    sigmas = sorted({column.setting.sigma for column in table.columns if column.setting.sigma is not None})
    if sigma is not None and sigma not in sigmas:
        raise UsageError(f"no score of the run has sigma {sigma:g}; it has {listed(sigmas) or 'none'}")
    if point is not None:
        text = _card(table, point, json)
    elif listing:
        at_level = [column for column in table.columns if sigma is None or column.setting.sigma in (sigma, None)]
        judge = named_column(at_level, by) if by else column_for(table, limit, sigma)
        column = judge if by else numbers_beside(table, judge)
        correct = "right" if right else "wrong" if wrong else None
        criteria, shard = Wanted(of_class, state, correct, limit, wrong and not by), next(read_shards(run_folder))
        frame, counts = least_points(read_shards(run_folder), top or TOP, table, column, judge, criteria)
        text = format_point_list(frame, shard, column, top or TOP, judge, counts)
        text = as_json(by=column.label, points=records(frame)) if json else text
    else:
        text = _screen(table, overview(table, limit, sigma=sigma), str(run_folder), json)
    print_lines(text if json else as_called(text))
    return 0


def _card(table: Table, query: str, json: bool) -> str:
    """Everything that the run says of a point."""
    from brittle.analysis.class_votes import class_votes, has_votes
    from brittle.analysis.point_card import find_point, format_point_card, point_card
    from brittle.store.table import TOLD

    point = find_point(table, query)
    if not json:
        return format_point_card(table, point)
    frame = table.frame(whole=True)
    (row,) = records(frame.loc[frame["point"] == point, [*TOLD, "row", "status", "detail"]])
    votes = class_votes(table) if any(map(has_votes, table.columns)) else frame.head(0)
    return as_json(point=row, scores=records(point_card(table, point)), copies=records(votes[votes["point"] == point]))


def _screen(table: Table, overview: Overview, run: str, json: bool) -> str:
    """Print how many predictions hold and break, which classes, how sure that is, and what to do next."""
    from brittle.analysis.overview_text import format_overview, next_steps

    if json:
        states = {state: overview.count(state) for state in overview.groups.columns}
        counts = {"limit": overview.limit, "points": overview.points, "chosen_from": table.record.data.chosen_from}
        counts |= {"labelled": overview.labelled, "right": overview.correct}
        steps = [asdict(step) for step in next_steps(overview, run)]
        groups = overview.groups.to_dict("index")
        by = None if overview.column is None else overview.column.label
        notes = [asdict(note) for note in table.record.warnings]
        classes = records(overview.classes)
        return as_json(by=by, **counts, states=states, groups=groups, classes=classes, next=steps, notes=notes)
    part = table.record.part
    parts = part and f"Part {part[0]} of {part[1]} of a run; `brittle join OUT PART...` puts all of them together.\n"
    notes = "".join(f"\n\nnote: {note.code}: {note.sentence}" for note in table.record.warnings)
    return f"{parts or ''}{format_overview(overview, run)}{notes}"


def compare(
    first: Path,
    second: Path,
    /,
    *others: Path,
    epsilon: str | None = None,
    out: Path | None = None,
    json: Json = False,
) -> int:
    """Compare the scores of two runs over the same points: two models, or clean and corrupted copies.

    Points are paired by id, or by row where no id is shared. Every score that both runs hold with the same parameters
    takes part: its mean or median in either run, the difference with its interval and p-value, and the share of points
    where the first is larger; of flip probabilities p_robust, so that larger is safer. With OTHERS each run after the
    first gets one line.

    Args:
        first: A folder that `brittle score` wrote.
        second: Another one.
        others: More of them, such as one for each kind and severity of corruption.
        epsilon: Largest distance of the expected robustness, for runs with input_margin, such as 8/255.
        out: A .csv file to write the comparison to, one row per run and score; no file but an earlier comparison is
            replaced.
    """
    from brittle.analysis import compare as compare_runs
    from brittle.analysis import format_comparison
    from brittle.analysis.comparison import FIELDS, compare_several, format_comparisons, unpaired
    from brittle.analysis.overview_text import chosen_sentence

    if out is not None:
        check_new(out, True, ".csv")
        check_own(out, ",".join(FIELDS), "comparison")
    runs = (first, second, *others)
    table = open_run(first, *runs)
    chosen = chosen_sentence(len(table.points), table.record.data).strip()
    if others:
        frame = compare_several(table, ((str(folder), open_run(folder, *runs)) for folder in runs[1:]), epsilon)
        texts = [chosen, format_comparisons(frame)]
    else:
        second_table = open_run(second, first)
        frame = compare_runs(table, second_table, epsilon=epsilon)
        texts = [chosen, as_called("\n".join(filter(None, [format_comparison(frame), unpaired(table, second_table)])))]
    print_lines(as_json(scores=records(frame)) if json else "\n".join(filter(None, texts)))
    if out is not None:
        safe = frame.map(lambda value: cell(value) if isinstance(value, str) else value)
        write(out, safe.to_csv(index=False, lineterminator="\n").encode())
        print(out, file=sys.stderr if json else sys.stdout)
    return 0


def export(
    run_folder: Run, out: Path, *, whole: bool = False, limit: float | None = None, overwrite: Overwrite = False
) -> int:
    """Write one row per point of RUN to a file for other programs: its class, prediction, scores and states.

    Args:
        run_folder: A folder that `brittle score` wrote.
        out: The file: .csv, .parquet, .arrow, .json or .jsonl; or .md, a section of a model card with the main figures.
        whole: Write every column, under the whole names of the scores.
        limit: A prediction holds where it is kept with this probability or more; by default the one that points were
            drawn for, or 0.9.
    """
    check_new(out, overwrite)
    from brittle.store.reading import export_run
    from brittle.store.reading import open_run as open_folder

    record, manifest = open_folder(run_folder)
    note_unfinished(run_folder, record, sum(entry.account.points for entry in manifest.shards))
    print(export_run(run_folder, out, limit=limit, whole=whole))
    return 0


def verify(run_folder: Run, *, json: Json = False) -> int:
    """Read every shard of RUN again and print a line for each that is damaged, and for each stray file.

    Args:
        run_folder: A folder that `brittle score` wrote.
    """
    from brittle.store.reading import verify as verify_run
    from brittle.store.record import RunRecord, read_object

    faults = verify_run(run_folder)
    damaged = [fault for fault in faults if not fault.stray]
    if json:
        print_lines(as_json(faults=[asdict(fault) for fault in faults]))
    else:
        for fault in faults:
            print(fault, file=sys.stderr if fault.stray else sys.stdout)
    if damaged:
        raise StorageError(
            "run_damaged",
            f"{len(damaged)} shard files of {run_folder} are damaged, beginning with {damaged[0].file}; score again "
            f"with --resume, which computes only what is lost, or get the files again",
        )
    finished = read_object(run_folder / "run.json", RunRecord).finished
    state = "" if finished else "; the run has not finished, score --resume goes on with it"
    print_lines(f"brittle: every shard of {run_folder} is what was written{state}", sys.stderr)
    return 0


def list_scores(*, json: Json = False) -> int:
    """Show the scores: name, what it is, value, cost, source."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as Grid

    from brittle.scores.catalogue import CATALOGUE
    from brittle.scores.outside import find_score
    from brittle.user_code import failing

    facts = []
    for name in CATALOGUE:
        kind = find_score(name)
        with failing(kind, "record"):
            facts.append({fact: getattr(kind, fact) for fact in FACTS})
    if json:
        print_lines(as_json(scores=facts))
        return 0
    grid = Grid("name", "what it is", "value", "passes per point", "source", box=box.SIMPLE_HEAD)
    for fact in facts:
        grid.add_row(*(fact[name] for name in FACTS[:-1]))
    Console(width=None if sys.stdout.isatty() else 180).print(grid)
    return 0


def check(
    run_folder: Run,
    *,
    holds: float | None = None,
    every_class: float | None = None,
    limit: float | None = None,
    accuracy: float | None = None,
    robust_accuracy: float | None = None,
    expected_robustness: float | None = None,
    epsilon: str | None = None,
    norm: str | None = None,
    against: Path | None = None,
    no_worse_than: float | None = None,
    detector: Path | None = None,
    detector_tpr: float | None = None,
    undecided: Literal["10", "0", "1"] = "10",
    junit: Path | None = None,
    markdown: Path | None = None,
    github: bool = False,
    json: Json = False,
    config: Config = None,
) -> int:
    """Say whether RUN keeps rules: each passes, fails, or is undecided, by its whole interval.

    Exits with 0 where all rules pass, with 1 where one fails, and with 10 where none fails and one is undecided. The
    intervals hold for all rules and classes together. Of a run of more than a million rows of scores points are drawn
    at random, which is said. Rules may stand in a TOML file: --config rules.toml.

    Args:
        run_folder: A folder that `brittle score` wrote.
        holds: At least this share of the predictions holds: each is kept with probability --limit.
        every_class: The same for each class alone.
        limit: That probability; by default the one that points were drawn for, or 0.9.
        accuracy: At least this share of the labelled points is predicted right.
        robust_accuracy: At least this share is right, with no other prediction found within --epsilon.
        expected_robustness: The same, averaged over the distances from 0 to --epsilon.
        epsilon: That distance, such as 8/255.
        norm: Of the margins, where RUN has them in several.
        against: Another run over the same points, which RUN may be less robust than by --no-worse-than at most.
        no_worse_than: How much less the mean of p_robust may be there; 0 by default.
        detector: A detector that `brittle detector fit` wrote.
        detector_tpr: At least this share of the brittle predictions that it was not fitted on is flagged by it.
        undecided: Exit code where a rule is undecided and none fails.
        junit: File to write the verdicts to as the XML of JUnit.
        markdown: File to write them to as Markdown, for a pull request.
        github: Print them as annotations of a GitHub action, too.
    """
    from brittle.analysis.rules import FAILS, PASSES
    from brittle.analysis.rules import check as check_rules
    from brittle.store.writing import write

    if json and github:
        raise UsageError("--json and --github both print; give one of them")
    files = {"junit": junit, "markdown": markdown}
    if junit is not None and junit == markdown:
        raise UsageError("--junit and --markdown name one file; give each its own")
    for form, mark in (("junit", "<testsuites"), ("markdown", "**brittle: ")):
        if (path := files[form]) is not None:
            check_own(path, mark, f"{form} file")
    rivals = () if against is None else (against,)
    checked = check_rules(
        open_run(run_folder, *rivals), holds=holds, every_class=every_class, limit=limit, accuracy=accuracy,
        robust_accuracy=robust_accuracy, expected_robustness=expected_robustness, epsilon=epsilon, norm=norm,
        no_worse_than=no_worse_than,
        against=None if against is None else open_run(against, run_folder), detector_tpr=detector_tpr,
        detector=None if detector is None else load("file", "detector").load(detector),
    )  # fmt: skip
    print_lines(checked.json().rstrip() if json else as_called(str(checked)))
    if github:
        print_lines(checked.github())
    for form, path in files.items():
        if path is not None:
            write(path, getattr(checked, form)().encode("utf-8"))
    return 0 if checked.state == PASSES else 1 if checked.state == FAILS else int(undecided)
