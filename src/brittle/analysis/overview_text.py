"""The overview of a run in sentences: how brittle, where, how sure, and what to do next."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace

from brittle.analysis.decisions import MORE_DRAWS
from brittle.analysis.overview import FAILED, FROM_SAFE, RIGHT, WRONG, Overview
from brittle.analysis.text import aligned, chosen_text, number, share_of
from brittle.estimate import Evidence
from brittle.store.columns import BREAKS, HOLDS, UNDECIDED

SHOWN = 10
"""Classes in the table of a terminal."""

FEWEST_FOR_DETECTOR = 47
"""Points that hold, and that break, before a detector is worth fitting: with fewer that break a true positive rate of
0.95 cannot be calibrated once a fifth of them has chosen the score."""

RESTS = {
    Evidence.MODELLED: "rest on a model of the margins that the noisy copies bear out",
    Evidence.EXTRAPOLATED: "rest on a model alone, of noise that no noisy copy drew",
    Evidence.SAMPLED: "rest on rare flips that were searched for, and do not cover flips that no search came near",
}
"""What intervals that do not count noisy copies rest on."""

OWN_OPTIONS = ("--until", "--limit", "--precision", "--most-draws", "--workers", "--cluster")
"""Options with a value that a command which draws more leaves out: it has a rule of its own, and one process."""


@dataclass(frozen=True)
class NextStep:
    """Something to do next.

    Attributes:
        points: how many points it is about.
        text: why, in a sentence.
        command: what does it, as one types it.
        state: of these points, as `brittle show --state` takes it; empty for any.
        kind: `right` or `wrong`, where it is about these alone; else empty.
    """

    points: int
    text: str
    command: str
    state: str = ""
    kind: str = ""


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
    rated = found.points - found.without_number
    if not rated:
        return f"{_right(found)} No point has a flip probability, so nothing is known of what noise does to them."
    held, broken, open_ones = (found.count(state) for state in (HOLDS, BREAKS, UNDECIDED))
    column = found.column
    noise = "" if column is None or column.setting.sigma is None else f"Under noise of {column.setting}, "
    first = (
        f"{noise}{share_of(held, rated, 'prediction')} {'holds' if rated == 1 else 'hold'}: kept with probability "
        f"{found.limit:g} or more. {broken:,} {'breaks' if broken == 1 else 'break'} and {open_ones:,} "
        f"{'is' if open_ones == 1 else 'are'} undecided."
    )
    return f"{first[0].upper()}{first[1:]} {_right(found)}"


def where(found: Overview) -> str:
    """Whether one class is less robust than the others; empty with fewer than two classes."""
    bias = found.bias
    if bias is None or len(bias.classes) < 2:
        return ""
    named = found.named
    if named is not None:
        ends = f"{number(named['low'])} to {number(named['high'])}"
        return (
            f"{named['name']} is the least robust class: its predictions are kept with probability "
            f"{number(named['mean'])} in the mean ({ends}), and those of every other class more often."
        )
    if not bias.differ:
        apart = f"The {len(bias.classes)} classes cannot be told apart by their mean robustness"
        return f"{apart} (p = {number(bias.p_value)})."
    return (
        f"The classes differ in mean robustness (p = {number(bias.p_value)}), but which is the least robust is open: "
        f"{len(bias.least)} of {len(bias.classes)} may be."
    )


def how_sure(found: Overview) -> str:
    """How sure the states are, and what they rest on."""
    rated = found.points - found.without_number
    if not rated:
        return ""
    sure = f"A point is called only where its whole {100 * found.confidence:.4g}% interval lies on one side."
    rests = [
        f"{found.evidence[kind.slug]:,} of {rated:,} intervals {words}."
        for kind, words in RESTS.items()
        if found.evidence.get(kind.slug)
    ] or ["All intervals count noisy copies and hold for every network."]
    have = "has" if found.points == 1 else "have"
    lost = (
        [f"{share_of(found.without_number, found.points, 'point')} {have} no number."] if found.without_number else []
    )
    return " ".join([sure, *rests, *lost])


def next_steps(found: Overview, run: str = "RUN") -> tuple[NextStep, ...]:
    """What to do next, the most useful first, each with the command that does it.

    Args:
        found: what `overview` gives.
        run: the folder of the run.
    """
    show = f"brittle show {shlex.quote(run)}"
    if found.column is None:
        text = f"{found.points:,} without a flip probability: see what another score says of them."
        return (NextStep(found.points, text, f"{show} --by {shlex.quote(found.order)}"),) if found.order else ()
    limit = f" --limit {found.limit:g}"
    open_ones, held, broken = (found.count(state) for state in (UNDECIDED, HOLDS, BREAKS))
    steps = (
        NextStep(open_ones, "undecided: draw more noise for these", _draw_more(found, run), UNDECIDED),
        NextStep(
            found.count(BREAKS, RIGHT),
            "right, and noise breaks them: look at them",
            f"{show} --state breaks --right{limit}",
            BREAKS,
            RIGHT,
        ),
        NextStep(
            found.count(HOLDS, WRONG),
            "wrong, and no noise shows it: check their labels",
            f"{show} --state holds --wrong{limit}",
            HOLDS,
            WRONG,
        ),
        NextStep(
            0 if found.count(HOLDS, WRONG) else found.labelled - found.right,
            "wrong, and none of them holds, so noise hints at no wrong label: look at them",
            f"{show} --wrong{limit}",
            kind=WRONG,
        ),
        NextStep(
            broken if min(broken, held) >= FEWEST_FOR_DETECTOR else 0,
            "break: calibrate a detector that flags such predictions in one pass",
            f"brittle detector fit {shlex.quote(run)}{limit}",
            BREAKS,
        ),
        NextStep(found.without_number, "without a number: see why", f"{show} --state failed", FAILED),
    )
    return tuple(replace(step, text=f"{step.points:,} {step.text}.") for step in steps if step.points)


def format_overview(found: Overview, run: str = "RUN") -> str:
    """The overview as plain text for a terminal.

    Args:
        found: what `overview` gives.
        run: the folder of the run, for the commands.
    """
    lines = [text for text in (how_brittle(found), where(found), how_sure(found)) if text]
    kinds = [kind for kind in found.groups.index if found.groups.loc[kind].sum()]
    if kinds:
        counts = [[kind, *(f"{found.count(state, kind):,}" for state in FROM_SAFE)] for kind in kinds]
        lines += ["", *aligned([["predictions", *FROM_SAFE], *counts])]
    if len(found.classes) > 1:
        rows = found.classes.head(SHOWN).to_dict("records")
        lines += [
            "",
            *aligned(
                [["class", *FROM_SAFE], *([row["name"], *(f"{row[state]:,}" for state in FROM_SAFE)] for row in rows)]
            ),
        ]
        lines += [f"  and {len(found.classes) - len(rows)} classes more"] if len(found.classes) > len(rows) else []
    steps = next_steps(found, run)
    lines += ["", "next:"] if steps else []
    for step in steps:
        lines += [f"  {step.text}", f"    {step.command}"]
    return "\n".join(lines)


def _right(found: Overview) -> str:
    if not found.labelled:
        return "No point has a label, so nothing is known of how many are right."
    return f"{share_of(found.right, found.labelled, 'label')} {'is' if found.labelled == 1 else 'are'} predicted right."


def _draw_more(found: Overview, run: str) -> str:
    """The command that goes on with the undecided points of a run, with more draws where it drew for this limit."""
    drew = found.column is not None and found.column.limit == found.limit
    most = found.column.parameters.get("draws") if found.column is not None and drew else None
    more = f" --most-draws {MORE_DRAWS * most}" if isinstance(most, int) else ""
    rule = f"--resume --until decided --limit {found.limit:g}{more}"
    if found.command is None or found.command[:2] != ("brittle", "score"):
        return f"brittle score MODEL DATA --out {shlex.quote(run)} {rule}"
    return f"{shlex.join(_without_rule(found.command))} {rule}"


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
