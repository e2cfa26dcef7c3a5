"""The overview of a run in sentences: how brittle, where, how sure, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from brittle.analysis.decisions import MORE_DRAWS, unjudged_text
from brittle.analysis.overview import FAILED, FROM_SAFE, RIGHT, WRONG, Overview
from brittle.errors import printable
from brittle.estimate import MOST_DRAWS, Evidence
from brittle.store.columns import BREAKS, HOLDS, UNDECIDED, Row
from brittle.text import aligned, by_number, chosen_text, number, share_of, span, verb_of

SHOWN = 10
"""Classes in the table of a terminal."""

FEWEST_FOR_DETECTOR = 47
"""Points that hold, and that break, before a detector is worth fitting: with fewer that break a true positive rate of
0.95 cannot be calibrated once a fifth of them has chosen the score."""

DETECTED = (None, "one-logit")
"""Decisions that a detector knows."""

RESTS = {
    Evidence.MODELLED: (
        "rests on a model of the margins that the noisy copies bear out",
        "rest on a model of the margins that the noisy copies bear out",
    ),
    Evidence.EXTRAPOLATED: (
        "rests on a model alone, of noise that no noisy copy drew",
        "rest on a model alone, of noise that no noisy copy drew",
    ),
    Evidence.SAMPLED: (
        "rests on rare flips that were searched for, and does not cover flips that no search came near",
        "rest on rare flips that were searched for, and do not cover flips that no search came near",
    ),
}
"""What intervals that do not count noisy copies rest on, of one of them and of several."""

LARGEST = 10_000_000
"""The largest number that --most-draws takes."""

STEEP = 20
"""Over `1 - limit`, noisy copies that are more than enough to show that a point which none of them flips holds."""

OWN_OPTIONS = ("--out", "--part", "--until", "--limit", "--precision", "--most-draws")
"""Options with a value that a command which draws more leaves out: it has a folder and a rule of its own."""


@dataclass(frozen=True)
class DecisionWords:
    """How a run speaks of what is right.

    Attributes:
        counted: what is counted, such as `label`.
        verbs: for one of them and for several, such as `is` and `are`.
        right: what those that are right are, such as `predicted right`.
        unlabelled: what is said where nothing says what is right.
        classes: whether the model's outputs are classes.
        accuracy: whether the share that is right is the accuracy of a classifier.
    """

    counted: str = "label"
    verbs: tuple[str, str] = ("is", "are")
    right: str = "predicted right"
    unlabelled: str = "No point has a label, so nothing is known of how many are right."
    classes: bool = False
    accuracy: bool = False

    def of(self, count: int) -> str:
        """So many of what is counted, such as `60 labels`."""
        return f"{count:,} {by_number(count, self.counted, f'{self.counted}s')}"


def words_of(decision: str | None) -> DecisionWords:
    """The words for a decision.

    Args:
        decision: as the record of a run holds it, such as `top:5`; None for the predicted class.
    """
    if decision is None:
        return DecisionWords(classes=True, accuracy=True)
    name, _, value = decision.partition(":")
    if name == "top":
        return DecisionWords(right=f"among the {value} classes that score highest", classes=True)
    if name == "multilabel":
        every = value in ("", "each")
        return DecisionWords("point", ("has", "have"), "every label predicted right") if every else DecisionWords()
    unknown = "so nothing is known of how many are right."
    if name == "within":
        right = f"right: within {value} of what the data say"
        unlabelled = f"The data do not say which number is right, {unknown}"
        return DecisionWords("prediction", right=right, unlabelled=unlabelled)
    return DecisionWords(unlabelled=f"What the data say is not compared with a decision of your own, {unknown}")


def decision_text(decision: str | None) -> str:
    """What a prediction is, in a sentence, where it is not the predicted class; else empty.

    Args:
        decision: as the record of a run holds it, such as `top:5`.
    """
    name, _, value = (decision or "").partition(":")
    if decision is None:
        return ""
    if name == "multilabel" and value == "each":
        return "A prediction is which labels hold, all together and each by itself; a class is such a set of labels."
    if name == "multilabel" and value:
        return f"A prediction is whether label {value} holds."
    sentences = {
        "multilabel": "A prediction is which labels hold; a class is such a set of labels.",
        "top": f"A prediction is which {value} classes score highest, in any order.",
        "within": f"A prediction holds while every number stays within {value} of what it is.",
    }
    return sentences.get(name, f"A prediction holds while the function {printable(value)} says that it is the same.")


@dataclass(frozen=True)
class NextStep:
    """Something to do next.

    Attributes:
        points: how many points it is about.
        text: why, in a sentence.
        command: what does it, as one types it.
        state: of these points, as `brittle show --state` takes it; empty for any.
        kind: `right` or `wrong`, where it is about these alone; else empty.
        words: the sentence without the number, for one point and for several.
    """

    points: int
    text: str
    command: str
    state: str = ""
    kind: str = ""
    words: tuple[str, str] = ("", "")


def how_brittle(found: Overview) -> str:
    """How many predictions hold and break, and how many are right; of which points, where these were chosen."""
    return f"{chosen_sentence(found.points, found.chosen_from)}{_held(found)}"


def chosen_sentence(points: int, chosen_from: int | None) -> str:
    """That the points of a run were chosen from so many, with a blank behind it; empty where they were not (None)."""
    if chosen_from is None:
        return ""
    who = "1 point of this run was" if points == 1 else f"{points:,} points of this run were"
    chosen = chosen_text(points, chosen_from)
    return f"The {who} {chosen}, so no share here is one of all the data. "


def _held(found: Overview) -> str:
    words, column = words_of(found.decision), found.column
    right = words.unlabelled
    if found.labelled:
        share = share_of(found.right, found.labelled, words.counted)
        right = f"{share} {verb_of(found.right, found.labelled, *words.verbs)} {words.right}."
    if not found.rated:
        unknown = " No point has a flip probability, so how many predictions hold under noise is not known."
        return right + ("" if column is None and found.margins else unknown)
    assert column is not None
    if not found.judges:
        return f"{unjudged_text(column)}. {right}"
    held, broken, open_ones = (found.count(state) for state in (HOLDS, BREAKS, UNDECIDED))
    noise = "" if column.setting.sigma is None else f"Under noise of {column.setting}, "
    return (
        f"{noise}{share_of(held, found.rated, 'prediction')} {verb_of(held, found.rated, 'holds', 'hold')}: kept with "
        f"probability {_limit(found)} or more. {broken:,} {by_number(broken, 'breaks', 'break')} and {open_ones:,} "
        f"{by_number(open_ones, 'is', 'are')} undecided. {right}"
    )


def where(found: Overview) -> str:
    """Whether one class is less robust than the others; empty with fewer than two classes."""
    bias = found.bias
    if bias is None or len(bias.classes) < 2:
        return ""
    named = found.named
    if named is not None:
        return (
            f"{named['name']} is the least robust class: its predictions are kept with probability "
            f"{number(named['mean'])} in the mean ({span(named['low'], named['high'])}), and those of every other "
            f"class more often."
        )
    if not bias.differ:
        several = f"{len(bias.classes)} classes"
        return f"The {several} cannot be told apart by their mean robustness (p = {number(bias.p_value)})."
    return (
        f"The classes differ in mean robustness (p = {number(bias.p_value)}), but which is the least robust is open: "
        f"{len(bias.least)} of {len(bias.classes)} may be."
    )


def how_sure(found: Overview) -> str:
    """How sure the states are, what they rest on, and whether the copies of a point were too few for it to hold."""
    rated = found.rated
    if not rated or not found.judges:
        return ""
    sure = f"A point is called only where its whole {100 * found.confidence:.4g}% interval lies on one side."
    if found.column is not None and found.numbers is not None and found.numbers is not found.column:
        sure += f" That interval is of {found.column.shown}; the numbers of points are those of {found.numbers.shown}."
    rests = [
        f"{count:,} of {rated:,} {by_number(rated, 'interval', 'intervals')} {verb_of(count, rated, *words)}."
        for kind, words in RESTS.items()
        if (count := found.evidence.get(kind.slug))
    ] or [
        by_number(
            rated,
            "The interval counts noisy copies and holds for every network.",
            "All intervals count noisy copies and hold for every network.",
        )
    ]
    lost = found.without_number
    have = verb_of(lost, found.points, "has", "have")
    missing = [f"{share_of(lost, found.points, 'point')} {have} no number."] if lost else []
    return " ".join([sure, *rests, *_too_few(found), *missing])


def _too_few(found: Overview) -> list[str]:
    """That the noisy copies of some points cannot show that these hold, and what can; empty where no point is so."""
    few = found.too_few
    if few is None:
        return []
    copies = f"{few.copies:,} {by_number(few.copies, 'copy', 'copies')}"
    if few.every:
        who = f"{copies} a point cannot show that a prediction holds at {_limit(found)}"
    else:
        some = f"{few.points:,} of {few.undecided:,} undecided {by_number(few.undecided, 'point', 'points')}"
        have = verb_of(few.points, few.undecided, "has", "have")
        who = f"{some} {have} at most {copies}, which cannot show that a prediction holds at {_limit(found)}"
    return [
        f"{who}, even where none of them flips. The command of the run with {_rule(found)}, into another folder, draws "
        "as many as each point needs."
    ]


def next_steps(found: Overview, run: str | None = None) -> tuple[NextStep, ...]:
    """What to do next, the most useful first, each with the command that does it.

    Args:
        found: what `overview` gives.
        run: the folder of the run; by default the one that its command named, else `RUN`.
    """
    run = _folder(found.command) if run is None else run
    show = f"brittle show {shlex.quote(run)}"
    if found.column is None:
        words = "point: look at it", "points: list them, the least safe first"
        return (_step(found.points, words, f"{show} --by {shlex.quote(found.order)}"),) if found.order else ()
    if not found.judges:
        words = "that no noise was drawn for: see which the network itself is the least sure of"
        return (_step(found.points, (words, words), f"{show} --by {shlex.quote(found.column.shown)}"),)
    limit = f" --limit {_limit(found)}"
    held, broken, held_wrong = found.count(HOLDS), found.count(BREAKS), found.count(HOLDS, WRONG)
    knows_decision = found.decision in DETECTED and min(broken, held) >= FEWEST_FOR_DETECTOR
    steps = (
        _step(
            found.count(UNDECIDED),
            ("undecided: draw noise until it is decided", "undecided: draw noise until they are decided"),
            _draw_more(found, run),
            UNDECIDED,
        ),
        _step(
            found.count(BREAKS, RIGHT),
            ("right, and noise breaks it: look at it", "right, and noise breaks them: look at them"),
            f"{show} --state breaks --right{limit}",
            BREAKS,
            RIGHT,
        ),
        _step(
            held_wrong,
            (
                "wrong, and no noise shows it: check what the data say is right for it",
                "wrong, and no noise shows it: check what the data say is right for them",
            ),
            f"{show} --state holds --wrong{limit}",
            HOLDS,
            WRONG,
        ),
        _step(
            0 if held_wrong else found.labelled - found.right,
            (
                "wrong, and it is not known to hold, so noise hints at no mistake in the data yet: look at it",
                "wrong, and none of them is known to hold, so noise hints at no mistake in the data yet: look at them",
            ),
            f"{show} --wrong{limit}",
            kind=WRONG,
        ),
        _step(
            broken if knows_decision else 0,
            (
                "breaks: calibrate a detector that flags such predictions in one pass",
                "break: calibrate a detector that flags such predictions in one pass",
            ),
            f"brittle detector fit {shlex.quote(run)}{limit}",
            BREAKS,
        ),
        _step(found.without_number, (why := "without a number: see why", why), f"{show} --state failed", FAILED),
    )
    return tuple(step for step in steps if step.points)


def where_to_run(found: Overview) -> str:
    """From which folder the commands of `next_steps` run as they are, or what their folder `RUN` stands for."""
    if _folder(found.command) == "RUN":
        return "RUN is the folder of this run."
    return "The commands run in the folder where this run was started."


def _step(points: int, words: tuple[str, str], command: str, state: str = "", kind: str = "") -> NextStep:
    return NextStep(points, f"{points:,} {by_number(points, *words)}.", command, state, kind, words)


def format_overview(found: Overview, run: str | None = None) -> str:
    """The overview as plain text for a terminal.

    Args:
        found: what `overview` gives.
        run: the folder of the run, for the commands; by default as of `next_steps`.
    """
    said = (how_brittle(found), decision_text(found.decision), where(found), how_sure(found), *found.margins)
    lines = [text for text in said if text]
    kinds = [{"name": kind, **row} for kind, row in found.groups.to_dict("index").items() if any(row.values())]
    lines += ["", *_counts("predictions", kinds)] if kinds else []
    if len(found.classes) > 1:
        lines += ["", *_counts("class", found.classes.head(SHOWN).to_dict("records"))]
        more = len(found.classes) - SHOWN
        lines += [f"  and {more} classes more"] if more > 0 else []
    steps = next_steps(found, run)
    lines += ["", "next:"] if steps else []
    for step in steps:
        lines += [f"  {step.text}", f"    {step.command}"]
    return "\n".join(lines)


def _counts(title: str, rows: Iterable[Row]) -> list[str]:
    """How many points of each row hold, are undecided and break."""
    return aligned([[title, *FROM_SAFE], *([row["name"], *(f"{row[state]:,}" for state in FROM_SAFE)] for row in rows)])


def _draw_more(found: Overview, run: str) -> str:
    """The command that draws until points are decided; `brittle join` adds what it finds to the run."""
    rule = f"--out {shlex.quote(f'{run}-decided')} {_rule(found)}"
    if found.command is None or found.command[:2] != ("brittle", "score"):
        return f"brittle score MODEL DATA {rule}"
    return f"{shlex.join(_without_rule(found.command))} {rule}"


def _rule(found: Overview) -> str:
    """The options that draw for undecided points: enough for the limit, and more than the run where it drew for it."""
    drew = found.column is not None and found.column.limit == found.limit
    draws = found.column.parameters.get("draws") if found.column is not None and drew else None
    most = max(enough_draws(found.limit), MORE_DRAWS * draws if isinstance(draws, int) else 0)
    more = f" --most-draws {most}" if most > MOST_DRAWS or draws is not None else ""
    return f"--until decided --limit {_limit(found)}{more}"


def enough_draws(limit: float) -> int:
    """Noisy copies, `MOST_DRAWS` or more, of which so many decide a point at the limit if none flips."""
    most = MOST_DRAWS
    while most * (1.0 - limit) < STEEP and most < LARGEST:
        most *= 10
    return most


def _limit(found: Overview) -> str:
    """The limit with all digits that people give one."""
    return f"{found.limit:.12g}"


def _folder(command: tuple[str, ...] | None) -> str:
    """The folder that the command of a run named; `RUN` where it named none."""
    words = command if command is not None and command[:2] == ("brittle", "score") else ()
    given = [word.partition("=")[2] for word in words if word.startswith("--out=")]
    given += [words[place + 1] for place, word in enumerate(words[:-1]) if word == "--out"]
    return given[-1] if given else "RUN"


def _without_rule(command: tuple[str, ...]) -> list[str]:
    """A command without `OWN_OPTIONS`, and without those that say whether to go on or to write over."""
    kept, skip = [], False
    for word in command:
        name, given, _ = word.partition("=")
        if name in OWN_OPTIONS:
            skip = not given
        elif name in ("--resume", "--overwrite") or skip:
            skip = False
        else:
            kept.append(word)
    return kept
