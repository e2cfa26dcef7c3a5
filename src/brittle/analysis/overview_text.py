"""The overview of a run in sentences: how brittle, where, how sure, and what to do next."""

from __future__ import annotations

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
from brittle.estimate import Evidence
from brittle.store.columns import BREAKS, HOLDS, UNDECIDED, Column, Row
from brittle.store.record import DataRecord, ModelRecord
from brittle.text import aligned, by_number, chosen_text, number, share_of, span, verb_of

CLASSES_SHOWN = 10
"""Classes in the table of a terminal."""

FEWEST_FOR_DETECTOR = 38
"""Points that hold, and that break, before a detector is worth fitting: with fewer that break a true positive rate of
0.95 cannot be calibrated."""

FEW_IN_CLASS = 100
"""With fewer points in a class, the test of means may miss a difference of 0.15 (`docs/explanation/groups.md`)."""

MOST_DRAWS = 10_000_000
"""Noisy copies of a point at most that a score takes."""

READ_BY_DETECTORS = "logit_margin"
"""The score that a detector reads by default."""

RESTS = {
    Evidence.MODELLED: "a model of the margins that the noisy copies bear out",
    Evidence.EXTRAPOLATED: "a model alone, of noise that no noisy copy drew",
    Evidence.SAMPLED: "rare flips that a search came near; others are not covered",
}
"""What intervals that do not count noisy copies rest on."""

COUNTED = (
    "The interval counts noisy copies and holds for every network.",
    "All intervals count noisy copies and hold for every network.",
)
"""Said where all others do, of one interval and of several."""

RIGHT_BREAKS = "right, and broken by noise: look at them"
WRONG_HOLDS = "wrong, and noise does not change them: are their labels right?"
WRONG_OPEN = "wrong, none of them known to hold under noise: look at them, and at their labels"
CALIBRATES = "broken by noise: calibrate a detector that flags such predictions in one pass"
"""What is said of points, after their number."""


class DecisionWords(NamedTuple):
    """How a run speaks of what is right: what is counted, the verbs for one and several, what the right ones are."""

    counted: str = "label"
    verbs: tuple[str, str] = ("is", "are")
    right: str = "predicted right"
    unlabelled: str = "No point has a label, so nothing is known of how many are right."


def words_of(decision: str | None) -> DecisionWords:
    """The words for a decision as the record of a run holds it, such as `top:5`; None for the predicted class."""
    words = DecisionWords()
    name, _, value = (decision or "").partition(":")
    unknown = "so nothing is known of how many are right."
    if name == "top":
        return words._replace(right=f"among the {value} classes that score highest")
    if name == "multilabel" and not value:
        return words._replace(counted="point", verbs=("has", "have"), right="every label predicted right")
    if name == "within":
        unlabelled = f"The data do not say which number is right, {unknown}"
        right = f"right: within {value} of what the data say"
        return words._replace(counted="prediction", right=right, unlabelled=unlabelled)
    if name not in ("", "multilabel"):
        kind = name if name in ("masks", "boxes") else "a decision of your own"
        return words._replace(unlabelled=f"What the data say is not compared with {kind}, {unknown}")
    return words


def decision_text(model: ModelRecord) -> str:
    """What a prediction is, in a sentence, where it is not the predicted class of one pass; else empty."""
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
    own = f"A prediction holds while the function {printable(value)} says that it is the same."
    return sentences.get(decision or "", sentences.get(name, own)) or ""


def still_text(data: DataRecord) -> str:
    """Which columns of a table no noise changes, as they are categories; empty without any."""
    names = [printable(name) for name in data.reading.get("categories") or ()]
    return f"Noise leaves categories as they are: {listed(names)}." if names else ""


@dataclass(frozen=True)
class NextStep:
    """Something to do next. `words` say why, without the number of points; `state` is as `brittle show --state` takes
    it, and `kind` is `right` or `wrong`: empty for any."""

    points: int
    words: str
    command: str
    state: str = ""
    kind: str = ""

    @property
    def text(self) -> str:
        return f"{self.points:,} {self.words}{'' if self.words.endswith('?') else '.'}"


def how_brittle(found: Overview) -> str:
    """How many predictions hold and break, and how many are right; of which points, where these were chosen."""
    words, column = words_of(found.record.model.decision), found.column
    imprecise = "" if column is None else imprecise_text(column)
    chosen, right = chosen_sentence(found.points, found.record.data), words.unlabelled
    if found.labelled:
        share = share_of(found.right, found.labelled, words.counted)
        right = f"{share} {verb_of(found.right, found.labelled, *words.verbs)} {words.right}."
    if column is None or not found.rated:
        unknown = " No point has a flip probability, so how many predictions hold under noise is not known."
        return chosen + right + ("" if column is None and found.margins else unknown)
    if not found.judges:
        return f"{chosen}{unjudged_text(column)}. {right}"
    held, broken, open_ones = (found.count(state) for state in (HOLDS, BREAKS, UNDECIDED))
    noise = "" if column.setting.sigma is None else f"Under noise of {column.setting}, "
    return (
        f"{chosen}{noise}{share_of(held, found.rated, 'prediction')} {verb_of(held, found.rated, 'holds', 'hold')}: "
        f"kept with probability {_limit(found)} or more. {broken:,} {by_number(broken, 'breaks', 'break')} and "
        f"{open_ones:,} {by_number(open_ones, 'is', 'are')} undecided{_undecided_text(found)}. {right}"
        f"{imprecise and f' {imprecise}'}"
    )


def imprecise_text(column: Column) -> str:
    """Say how many intervals are wider than the precision that was asked for, and which draws are enough for all;
    empty where none is."""
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
    advice = f"score again with --draws {needed} (draws=)" if needed <= MOST_DRAWS else "ask for less (precision=)"
    return (
        f"{share_of(len(wide), len(widths), 'interval')} {verb_of(len(wide), len(widths), 'is', 'are')} wider than "
        f"--precision {precision:g} after {draws:,} noisy copies: {advice}."
    )


def _undecided_text(overview: Overview) -> str:
    """How many noisy copies, drawn for the limit, leave points undecided, and with which probabilities these are kept;
    empty without any."""
    column = overview.column
    if column is None or column.limit != overview.limit or not overview.count(UNDECIDED):
        return ""
    p_robust = column.p_robust[column.states(overview.limit) == UNDECIDED]
    probabilities = " to ".join(dict.fromkeys((number(p_robust.min()), number(p_robust.max()))))
    return f" after up to {column.most_draws:,} noisy copies (kept with probability {probabilities})"


def chosen_sentence(points: int, data: DataRecord) -> str:
    """How the points of a run were chosen, with a blank behind it; empty where they were not."""
    who = by_number(points, "1 point here was", f"{points:,} points here were")
    so = "" if data.sample_seed is not None else ", so no share here is one of all the data"
    chosen = chosen_text(points, data)
    return f"The {who} {chosen}{so}. " if chosen else ""


def where(found: Overview) -> str:
    """Whether one class is less robust than the others; empty with fewer than two classes."""
    bias, named = found.bias, found.named
    if bias is None or len(bias.classes) < 2:
        return ""
    if named is not None:
        return (
            f"{named['name']} is the least robust class: its predictions are kept with probability "
            f"{number(named['mean'])} in the mean ({span(named['low'], named['high'])}), and those of every other "
            f"class more often."
        )
    if not bias.differ:
        counts = bias.classes["points"].tolist()
        least, most = min(counts), max(counts)
        sizes = f"{least:,} to {most:,} points" if least < most else f"{least:,} points"
        p = f" (p = {number(bias.p_value)})" if bias.p_value < 1 else ""
        few = "; so few points show only large differences" if least < FEW_IN_CLASS else ""
        return f"The {len(bias.classes)} classes, of {sizes} each, are not shown to differ in mean robustness{p}{few}."
    return (
        f"The classes differ in mean robustness (p = {number(bias.p_value)}), but which is the least robust is open: "
        f"{len(bias.least)} of {len(bias.classes)} may be."
    )


def how_sure(found: Overview) -> str:
    """How sure the states are, and what they rest on."""
    rated, lost = found.rated, found.without_number
    if not rated or not found.judges:
        return ""
    said = [f"A point is called only where its whole {100 * found.record.confidence:.4g}% interval lies on one side."]
    if found.column is not None and found.numbers is not None and found.numbers is not found.column:
        said += [
            f"States are by {found.column.shown}; the values that points are listed with by {found.numbers.shown}."
        ]
    rests = [
        f"{count:,} of {rated:,} {by_number(rated, 'interval', 'intervals')} {verb_of(count, rated, 'rests', 'rest')} "
        f"on {basis}."
        for kind, basis in RESTS.items()
        if (count := found.evidence.get(kind.slug))
    ]
    said += rests or [by_number(rated, *COUNTED)]
    if lost:
        said += [f"{share_of(lost, found.points, 'point')} {verb_of(lost, found.points, 'has', 'have')} no number."]
    return " ".join(said)


def next_steps(found: Overview, run: str | None = None) -> tuple[NextStep, ...]:
    """What to do next, the most useful first, each with the command that does it.

    The folder of the run is by default the one that its command named, else `RUN`.
    """
    run = _take_apart(found.record.command)[0] if run is None else run
    show = f"brittle show {shlex.quote(run)}"
    if found.column is None:
        step = NextStep(found.points, "in all: look at the least safe", f"{show} --by {shlex.quote(found.order)}")
        return (step,) if found.order else ()
    if not found.judges:
        words = "that no noise was drawn for: see which the network itself is the least sure of"
        return (NextStep(found.points, words, f"{show} --by {shlex.quote(found.column.shown)}"),)
    limit, sigma = f"--limit {_limit(found)}", found.column.setting.sigma
    if len({score.parameters.get("sigma") for score in found.record.scores} - {None}) > 1 and sigma is not None:
        show += f" --sigma {sigma:g}"
    held, broken, held_wrong = found.count(HOLDS), found.count(BREAKS), found.count(HOLDS, WRONG)
    model = found.record.model
    fits = model.decision is None and model.state_sha256 is not None and model.bounds_shape is None
    fits = fits and any(one.score == READ_BY_DETECTORS for one in found.record.scores)
    calibrates = fits and min(broken, held) >= FEWEST_FOR_DETECTOR
    open_wrong = 0 if held_wrong else found.labelled - found.right
    fit = f"brittle detector fit {shlex.quote(run)} {limit}"
    steps = (
        NextStep(found.count(UNDECIDED), "undecided: draw more copies", draw_more(found, run), UNDECIDED),
        NextStep(found.count(BREAKS, RIGHT), RIGHT_BREAKS, f"{show} --state breaks --right {limit}", BREAKS, RIGHT),
        NextStep(held_wrong, WRONG_HOLDS, f"{show} --state holds --wrong {limit}", HOLDS, WRONG),
        NextStep(open_wrong, WRONG_OPEN, f"{show} --wrong {limit}", kind=WRONG),
        NextStep(broken if calibrates else 0, CALIBRATES, fit, BREAKS),
        NextStep(found.without_number, "without a number: see why", f"{show} --state failed", FAILED),
    )
    return tuple(step for step in steps if step.points)


def where_to_run(found: Overview) -> str:
    """From which folder the commands of `next_steps` run as they are, or what their folder `RUN` stands for."""
    if _take_apart(found.record.command)[0] == "RUN":
        return "RUN is the folder of this run."
    return "The commands run in the folder where this run was started."


def format_overview(found: Overview, run: str | None = None) -> str:
    """The overview as plain text for a terminal; `run` is its folder, as of `next_steps`."""
    said = (
        how_brittle(found),
        decision_text(found.record.model),
        "" if found.column is None else still_text(found.record.data),
        where(found),
        how_sure(found),
        *found.margins,
    )
    lines = [text for text in said if text]
    kinds = [{"name": kind, **row} for kind, row in found.groups.to_dict("index").items() if any(row.values())]
    lines += ["", *_counts("predictions", kinds)] if kinds else []
    if len(found.classes) > 1:
        lines += ["", *_counts("class", found.classes.head(CLASSES_SHOWN).to_dict("records"))]
        more = len(found.classes) - CLASSES_SHOWN
        lines += [f"  and {more} classes more"] if more > 0 else []
    steps = next_steps(found, run)
    lines += ["", "next:"] if steps else []
    lines += [line for step in steps for line in (f"  {step.text}", f"    {step.command}")]
    return "\n".join(lines)


def _counts(title: str, rows: Iterable[Row]) -> list[str]:
    return aligned([[title, *FROM_SAFE], *([row["name"], *(f"{row[state]:,}" for state in FROM_SAFE)] for row in rows)])


def draw_more(overview: Overview, run: str | None = None) -> str:
    """The command that draws until the undecided points are decided, into the folder of the run.

    A run that did not draw for this limit is scored again for it. For a run from Python it is the call of
    `brittle.score` with `...` for its arguments, which are not recorded. The folder is as in `next_steps`.
    """
    column, command, limit = overview.column, overview.record.command, _limit(overview)
    most = None if column is None or column.limit != overview.limit else column.most_draws
    if command is None:
        arguments = f'"{SHRINKAGE}", limit={limit}' if most is None else f"draws={MORE_DRAWS * most}"
        return f"brittle.score(..., {arguments})"
    folder, words = _take_apart(command)
    folder = folder if run is None else run
    if most is None:
        return f"{words} --out {shlex.quote(f'{folder}-decided')} --scores {SHRINKAGE} --limit {limit}"
    return f"brittle more {shlex.quote(folder)}"


def _limit(found: Overview) -> str:
    """The limit with all digits that people give one."""
    return f"{found.limit:.12g}"


def _take_apart(command: tuple[str, ...] | None) -> tuple[str, str]:
    """The folder that the command of a run named, `RUN` for none, and the command without it and its scores."""
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
