"""The first screen: how brittle, where, how sure, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from brittle.analysis.overview import FROM_SAFE, Overview
from brittle.analysis.overview_text import NextStep, how_brittle, how_sure, next_steps, where, where_to_run
from brittle.intervals import clopper_pearson
from brittle.report.chapter import Chapter, Text, files_beside
from brittle.report.contents import Contents
from brittle.report.wording import plural, show, small_percent
from brittle.store.columns import BREAKS, HOLDS, Row

MAX_CLASSES = 12
"""Classes shown; of more, those of which the smallest and the largest share holds."""

FILES = files_beside(__name__)


@dataclass(frozen=True)
class Group:
    """Points of one kind and state, such as those that are right and hold.

    Attributes:
        kind: `right`, `wrong` or `no label`.
        state: `holds`, `undecided` or `breaks`.
        share: of all points with a number, as text.
        points: how many, as text.
    """

    kind: str
    state: str
    share: str
    points: str


@dataclass(frozen=True)
class Bar:
    """One class: its name; of each state the name, the points, and in percent the start and the width of its part."""

    name: str
    parts: tuple[tuple[str, int, float, float], ...]

    @property
    def spoken(self) -> str:
        """The bar in words."""
        return f"{self.name}: " + ", ".join(f"{state} {points}" for state, points, _, _ in self.parts)


@dataclass(frozen=True)
class FirstScreen:
    """What the first screen says.

    Attributes:
        brittle: how many predictions hold and break, and how many are right.
        where: whether one class is less robust than the others; empty with fewer than two classes.
        sure: how sure that is.
        near: how near the nearest other predictions are, in a text for each input margin.
        groups: the kinds of points, each with its share.
        bars: the classes, that of which the smallest share holds first; empty with fewer than two.
        left_out: classes between those that are shown, in words; empty for none.
        gap: after how many bars these would stand; 0 for none.
        steps: what to do next.
        folder: where their commands run.
    """

    brittle: str
    where: str
    sure: str
    near: tuple[str, ...]
    groups: tuple[Group, ...]
    bars: tuple[Bar, ...]
    left_out: str
    gap: int
    steps: tuple[NextStep, ...]
    folder: str


class OverviewChapter(Chapter[FirstScreen]):
    """How brittle, where, how sure, and what to do next."""

    name: ClassVar[str] = "overview"
    title: ClassVar[str] = "In short"
    template: ClassVar[Text] = FILES / "chapter.html.jinja"
    style: ClassVar[Text] = FILES / "style.css"
    begins_part: ClassVar[bool] = False
    leads: ClassVar[bool] = True

    def summarize(self, contents: Contents) -> FirstScreen | None:
        """The first screen; None for a run that speaks of expected changes alone."""
        found = contents.overview
        if not (contents.tells_robustness or found.margins):
            return None
        bars = _bars(contents, found)
        hidden = len(found.classes) - len(bars) if bars else 0
        return FirstScreen(
            brittle=show(how_brittle(found)),
            where=show(where(found)),
            sure=show(how_sure(found)),
            near=tuple(map(show, found.margins)),
            groups=_groups(found),
            bars=bars,
            left_out=f"{plural(hidden, 'class')} between these not drawn." if hidden else "",
            gap=MAX_CLASSES // 2 if hidden else 0,
            steps=tuple(replace(step, command=show(step.command)) for step in next_steps(found)),
            folder=show(where_to_run(found)),
        )


def _groups(found: Overview) -> tuple[Group, ...]:
    """Of the kinds that the run holds, every state."""
    rated = max(found.points - found.without_number, 1)
    kinds = [kind for kind in found.groups.index if sum(found.groups.loc[kind].tolist())]
    counts = [(kind, state, found.count(state, kind)) for kind in kinds for state in FROM_SAFE]
    return tuple(Group(kind, state, small_percent(one / rated), f"{one:,}") for kind, state, one in counts)


def _kept(rows: Mapping[int, Row], confidence: float) -> list[int]:
    """The classes that are shown: all, or of many those that surely break most, and those that surely hold most.

    Their shares are judged by the lower ends of their intervals, so that a class of few points is not shown by luck.
    """
    if len(rows) <= MAX_CLASSES:
        return list(rows)

    def surely(state: str, number: int) -> float:
        return float(clopper_pearson(int(rows[number][state]), int(rows[number]["points"]), confidence)[0])

    worst = sorted(rows, key=lambda number: -surely(BREAKS, number))[: MAX_CLASSES // 2]
    others = [number for number in rows if number not in worst]
    best = sorted(others, key=lambda number: -surely(HOLDS, number))[: MAX_CLASSES - len(worst)]
    return [*(number for number in rows if number in worst), *(number for number in rows if number in best)]


def _bars(contents: Contents, found: Overview) -> tuple[Bar, ...]:
    rows = {int(row["class"]): row for row in found.classes.to_dict("records")}
    if len(rows) < 2:
        return ()
    kept = _kept(rows, contents.confidence)
    names = contents.class_labels(kept)
    bars = []
    for number in kept:
        row, start, parts = rows[number], 0.0, []
        for state in FROM_SAFE:
            width = 100.0 * row[state] / row["points"]
            parts.append((state, int(row[state]), round(start, 2), round(width, 2)))
            start += width
        bars.append(Bar(names[number], tuple(parts)))
    return tuple(bars)
