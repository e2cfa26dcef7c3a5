"""The overview of a run in sentences: how brittle, where, how sure, and what to do next."""

import argparse
import math
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from brittle.analysis.decisions import MORE_DRAWS, SHRINKAGE, unjudged_text
from brittle.analysis.overview import FAILED, FROM_SAFE, RIGHT, WRONG, Overview
from brittle.errors import listed, printable
from brittle.estimate import LARGEST_DRAWS, Evidence
from brittle.store.columns import BREAKS, HOLDS, UNDECIDED, Column, Row
from brittle.store.record import DataRecord, ModelRecord
from brittle.text import aligned, by_number, chosen_text, number, share_of, span, verb_of

CLASSES_SHOWN = 10  # classes in the table of a terminal
FEWEST_FOR_DETECTOR = 38  # points that hold, and that break: fewer cannot calibrate a rate of 0.95
FEW_IN_CLASS = 100  # below it a difference of means of 0.15 may be missed (`docs/explanation/groups.md`)
READ_BY_DETECTORS = "logit_margin"  # the score that a detector reads by default
RESTS = {  # evidence of intervals that do not count noisy copies
    Evidence.MODELLED: "a model of the margins that the noisy copies bear out",
    Evidence.EXTRAPOLATED: "a model alone, of noise that no noisy copy drew",
    Evidence.SAMPLED: "rare flips that a search came near; others are not covered",
}

COUNTED = (  # said where all others do, of one interval and of several
    "The interval counts noisy copies and holds for every network.",
    "All intervals count noisy copies and hold for every network.",
)

RIGHT_BREAKS = "right, and broken by noise: look at them"
LOOK_AT_LABELS = "wrong: are their labels right?"
CALIBRATES = "broken by noise: calibrate a detector that flags such predictions in one pass"
"""Words for points, after their number."""


class DecisionWords(NamedTuple):
    """Words for correct predictions: the counted noun, the verbs for one and several, and the predicate."""

    counted: str = "label"
    verbs: tuple[str, str] = ("is", "are")
    correct: str = "predicted right"
    unlabelled: str = "No point has a label, so nothing is known of how many are right."


def words_of(decision: str | None) -> DecisionWords:
    """Return the words for a decision in the record of a run, such as `top:5`; None for the predicted class."""
    words = DecisionWords()
    name, _, value = (decision or "").partition(":")
    unknown = "so nothing is known of how many are right."
    if name == "top":
        return words._replace(correct=f"among the {value} classes that score highest")
    if name == "multilabel" and not value:
        return words._replace(counted="point", verbs=("has", "have"), correct="every label predicted right")
    if name == "within":
        unlabelled = f"The data do not say which number is right, {unknown}"
        correct = f"right: within {value} of what the data say"
        return words._replace(counted="prediction", correct=correct, unlabelled=unlabelled)
    if name not in ("", "multilabel"):
        kind = name if name in ("masks", "boxes") else "a decision of your own"
        return words._replace(unlabelled=f"What the data say is not compared with {kind}, {unknown}")
    return words


def decision_text(model: ModelRecord) -> str:
    """Explain the prediction in a sentence, where it is not the predicted class of a single pass; else empty."""
    decision = model.decision
    name, _, value = (decision or "").partition(":")
    overlap, _, score = value.partition(",")
    sentences = {
        "": model.random and f"A prediction is what most of {model.random} passes of the random model say.",
        "masks": f"A prediction holds while every mask overlaps with its own by more than {overlap}.",
        "boxes": f"A prediction holds while each box (score {score or 0.5}) is found, overlapping above {overlap}.",
        "multilabel": "A prediction is which labels hold; a class is such a set of labels.",
        "top": f"A prediction is which {value} classes score highest, in any order.",
        "within": f"A prediction holds while every number stays within {value} of what it is.",
    }
    if name == "multilabel" and value:
        return f"A prediction is whether label {value} holds."
    sentence = f"A prediction holds while the function {printable(value)} says that it is the same."
    return sentences.get(decision or "", sentences.get(name, sentence)) or ""


def still_text(data: DataRecord) -> str:
    """Name the columns of a table that noise never changes, because they are categories; empty without any."""
    names = [printable(name) for name in data.reading.get("categories") or ()]
    return f"Noise leaves categories as they are: {listed(names)}." if names else ""


@dataclass(frozen=True)
class NextStep:
    """Something to do next: why in words, and the `--state` and right or wrong of `brittle show`."""

    points: int
    words: str
    command: str
    state: str = ""
    kind: str = ""

    @property
    def text(self) -> str:
        return f"{self.points:,} {self.words}{'' if self.words.endswith('?') else '.'}"


def how_brittle(overview: Overview) -> str:
    """Say how many predictions hold and break, how many are correct, and how the points were chosen."""
    words, column = words_of(overview.record.model.decision), overview.column
    imprecise = "" if column is None else imprecise_text(column)
    chosen, accuracy = chosen_sentence(overview.points, overview.record.data), words.unlabelled
    if overview.labelled:
        share = share_of(overview.correct, overview.labelled, words.counted)
        accuracy = f"{share} {verb_of(overview.correct, overview.labelled, *words.verbs)} {words.correct}."
    if column is None or not overview.rated:
        unknown = " No point has a p_robust, so how many predictions hold under noise is not known."
        return chosen + accuracy + ("" if column is None and overview.margins else unknown)
    if not overview.is_decisive:
        return f"{chosen}{unjudged_text(column)}. {accuracy}"
    held, broken, open_ones = (overview.count(state) for state in (HOLDS, BREAKS, UNDECIDED))
    noise = "" if column.setting.sigma is None else f"Under noise of {column.setting}, "
    return (
        f"{chosen}{noise}{share_of(held, overview.rated, 'prediction')} "
        f"{verb_of(held, overview.rated, 'holds', 'hold')}: kept with probability {_limit(overview)} or more. "
        f"{broken:,} {by_number(broken, 'breaks', 'break')} and {open_ones:,} {by_number(open_ones, 'is', 'are')} "
        f"undecided{_undecided_text(overview)}. {accuracy}{imprecise and f' {imprecise}'}"
    )


def imprecise_text(column: Column) -> str:
    """Say how many intervals are wider than was asked for, and which draws are enough for all; empty without any."""
    precision, draws = column.parameters.get("precision"), column.most_draws
    if not isinstance(precision, float) or not draws:
        return ""
    widths = (column.high - column.low).dropna().to_numpy(np.float64)
    wide = widths[widths > precision * (1 + 1e-9)]
    if not len(wide):
        return ""
    enough = draws * (float(wide.max()) / precision) ** 2  # a width falls with the root of the draws
    size = 10 ** math.floor(math.log10(enough))
    needed = math.ceil(enough / size) * size
    advice = f"score again with --draws {needed} (draws=)" if needed <= LARGEST_DRAWS else "ask for less (precision=)"
    return (
        f"{share_of(len(wide), len(widths), 'interval')} {verb_of(len(wide), len(widths), 'is', 'are')} wider than "
        f"--precision {precision:g} after {draws:,} noisy copies: {advice}."
    )


def _undecided_text(overview: Overview) -> str:
    """Say after how many noisy copies points are undecided, and how probably they are kept; empty without any."""
    column = overview.column
    if column is None or column.limit != overview.limit or not overview.count(UNDECIDED):
        return ""
    p_robust = column.p_robust[column.states(overview.limit) == UNDECIDED]
    probabilities = " to ".join(dict.fromkeys((number(p_robust.min()), number(p_robust.max()))))
    return f" after up to {column.most_draws:,} noisy copies (kept with probability {probabilities})"


def chosen_sentence(points: int, data: DataRecord) -> str:
    """Say how the points of a run were chosen, followed by a blank; empty where they were not."""
    who = by_number(points, "1 point here was", f"{points:,} points here were")
    so = "" if data.sample_seed is not None else ", so no share here is one of all the data"
    chosen = chosen_text(points, data)
    return f"The {who} {chosen}{so}. " if chosen else ""


def where(overview: Overview) -> str:
    """Say whether one class is less robust than the others; empty with fewer than two classes."""
    bias, worst = overview.bias, overview.named
    if bias is None or len(bias.classes) < 2:
        return ""
    if worst is not None:
        return (
            f"The least robust class is {worst['name']}: its mean p_robust is {number(worst['mean'])} "
            f"({span(worst['low'], worst['high'])}), and higher in every other class."
        )
    counts, test = bias.classes["points"].tolist(), f"permutation test, p = {number(bias.p_value)}"
    smallest, largest = min(counts), max(counts)
    sizes = f"{smallest:,} to {largest:,} points" if smallest < largest else f"{smallest:,} points"
    if not bias.differ:
        caveat = "; so few points show only large differences" if smallest < FEW_IN_CLASS else ""
        return f"The {len(counts)} classes, of {sizes} each, are not shown to differ in p_robust ({test}){caveat}."
    which = "which one is the least robust is open"
    if len(bias.least_robust) < len(counts):
        which += f": {len(bias.least_robust)} of {len(counts)} may be"
    return f"The {len(counts)} classes, of {sizes} each, differ in p_robust ({test}); {which}."


def how_sure(overview: Overview) -> str:
    """Say how sure the states are, and on which evidence."""
    rated, points, lost = overview.rated, overview.points, overview.without_number
    if not rated or not overview.is_decisive:
        return ""
    level = f"{100 * overview.record.confidence:.4g}%"
    sentences = [f"A point is called only where its whole {level} interval lies on one side."]
    if overview.column is not None and overview.numbers is not None and overview.numbers is not overview.column:
        sentences += [
            f"States are by {overview.column.title}, whose copies stop once a point is decided; the p_robust that "
            f"points are listed with is by {overview.numbers.title}, of {overview.numbers.most_draws:,} copies each."
        ]
    rests = [
        f"{count:,} of {rated:,} {by_number(rated, 'interval', 'intervals')} {verb_of(count, rated, 'rests', 'rest')} "
        f"on {basis}."
        for kind, basis in RESTS.items()
        if (count := overview.evidence.get(kind.slug))
    ]
    sentences += rests or [by_number(rated, *COUNTED)]
    if lost:
        sentences += [f"{share_of(lost, points, 'point')} {verb_of(lost, points, 'has', 'have')} no number."]
    return " ".join(sentences)


def next_steps(overview: Overview, run: str | None = None) -> tuple[NextStep, ...]:
    """Return the next steps, the most useful first, each with its command.

    The folder of the run is by default the one that its command named, else `RUN`.
    """
    run = _take_apart(overview.record.command)[0] if run is None else run
    show = f"brittle show {shlex.quote(run)}"
    if overview.column is None:
        step = NextStep(overview.points, "in all: look at the least safe", f"{show} --by {shlex.quote(overview.order)}")
        return (step,) if overview.order else ()
    if not overview.is_decisive:
        words = "that no noise was drawn for: see which the network itself is the least sure of"
        return (NextStep(overview.points, words, f"{show} --by {shlex.quote(overview.column.shown)}"),)
    limit, sigma = f"--limit {_limit(overview)}", overview.column.setting.sigma
    if len({score.parameters.get("sigma") for score in overview.record.scores} - {None}) > 1 and sigma is not None:
        show += f" --sigma {sigma:g}"
    held, broken = overview.count(HOLDS), overview.count(BREAKS)
    model = overview.record.model
    fits = model.decision is None and model.state_sha256 is not None and model.bounds_shape is None
    fits = fits and any(score.score == READ_BY_DETECTORS for score in overview.record.scores)
    calibrates = fits and min(broken, held) >= FEWEST_FOR_DETECTOR
    fit = f"brittle detector fit {shlex.quote(run)} {limit}"
    steps = (
        NextStep(overview.count(UNDECIDED), "undecided: draw more copies", draw_more(overview, run), UNDECIDED),
        NextStep(overview.count(BREAKS, RIGHT), RIGHT_BREAKS, f"{show} --state breaks --right {limit}", BREAKS, RIGHT),
        NextStep(overview.labelled - overview.correct, LOOK_AT_LABELS, f"{show} --wrong {limit}", kind=WRONG),
        NextStep(broken if calibrates else 0, CALIBRATES, fit, BREAKS),
        NextStep(overview.without_number, "without a number: see why", f"{show} --state failed", FAILED),
    )
    return tuple(step for step in steps if step.points)


def where_to_run(overview: Overview) -> str:
    """Say in which folder the commands of `next_steps` run, or what their folder `RUN` stands for."""
    if _take_apart(overview.record.command)[0] == "RUN":
        return "RUN is the folder of this run."
    return "The commands run in the folder where this run was started."


def format_overview(overview: Overview, run: str | None = None) -> str:
    """Return the overview as plain text for a terminal; `run` is its folder, as of `next_steps`."""
    sentences = (
        how_brittle(overview),
        decision_text(overview.record.model),
        "" if overview.column is None else still_text(overview.record.data),
        where(overview),
        how_sure(overview),
        *overview.margins,
    )
    lines = [text for text in sentences if text]
    kinds = [{"name": kind, **row} for kind, row in overview.groups.to_dict("index").items() if any(row.values())]
    lines += ["", *_counts("predictions", kinds)] if kinds else []
    if len(overview.classes) > 1:
        lines += ["", *_counts("class", overview.classes.head(CLASSES_SHOWN).to_dict("records"))]
        more = len(overview.classes) - CLASSES_SHOWN
        lines += [f"  and {more} classes more"] if more > 0 else []
    steps = next_steps(overview, run)
    lines += ["", "next:"] if steps else []
    lines += [line for step in steps for line in (f"  {step.text}", f"    {step.command}")]
    return "\n".join(lines)


def _counts(title: str, rows: Iterable[Row]) -> list[str]:
    return aligned([[title, *FROM_SAFE], *([row["name"], *(f"{row[state]:,}" for state in FROM_SAFE)] for row in rows)])


def draw_more(overview: Overview, run: str | None = None) -> str:
    """Return the command that draws until the undecided points are decided, into the folder of the run.
    A run that did not draw for this limit is scored again; for one from Python it is a call of `brittle.score`."""
    column, command, limit = overview.column, overview.record.command, _limit(overview)
    draws = None if column is None or column.limit != overview.limit else column.most_draws
    if command is None:
        arguments = f'"{SHRINKAGE}", limit={limit}' if draws is None else f"draws={MORE_DRAWS * draws}"
        return f"brittle.score(..., {arguments})"
    folder, words = _take_apart(command)
    folder = folder if run is None else run
    if draws is None:
        return f"{words} --out {shlex.quote(f'{folder}-decided')} --scores {SHRINKAGE} --limit {limit}"
    return f"brittle more {shlex.quote(folder)}"


def _limit(overview: Overview) -> str:
    """Return the limit with all digits that people give one."""
    return f"{overview.limit:.12g}"


def _take_apart(command: tuple[str, ...] | None) -> tuple[str, str]:
    """Return the folder that the command of a run named, `RUN` for none, and the command without it and its scores."""
    if command is None or command[:2] != ("brittle", "score"):
        return "RUN", "brittle score MODEL DATA"
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for option in ("--out", "--limit", "--precision"):
        parser.add_argument(option, nargs="?")
    for option in ("--scores", "--draws", "--set", "--norm", "--effort"):
        parser.add_argument(option, nargs="*", action="append")
    for option in ("--resume", "--overwrite"):
        parser.add_argument(option, action="store_true")
    options, words = parser.parse_known_args(command[2:])
    return options.out or "RUN", shlex.join(["brittle", "score", *words])
