"""The first screen: how brittle, where, how sure, and what to do next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from brittle.analysis.overview import FROM_SAFE, Overview
from brittle.analysis.overview_text import how_brittle, how_sure, next_steps, where, where_to_run
from brittle.extensions.report.chapter import Chapter
from brittle.extensions.report.contents import Contents
from brittle.extensions.report.wording import plural, show, small_percent

MAX_CLASSES = 12
"""Classes shown; of more, those of which the largest and the smallest share breaks."""


def summarize(contents: Contents) -> dict[str, Any] | None:
    """The first screen; None for a run that speaks of expected changes alone.

    `groups` has the points of each kind and state, `bars` of each class the parts of its bar: state, points, and in per
    cent the start and the width. `left_out` says which classes are not drawn, after the first `gap` bars.
    """
    overview = contents.overview
    if not (contents.tells_robustness or overview.margins):
        return None
    bars = _bars(contents, overview)
    hidden = len(overview.classes) - len(bars) if bars else 0
    return {
        "brittle": show(how_brittle(overview)),
        "where": show(where(overview)),
        "sure": show(how_sure(overview)),
        "near": [show(one) for one in overview.margins],
        "groups": _groups(overview),
        "bars": bars,
        "left_out": f"{plural(hidden, 'class')} between these not drawn." if hidden else "",
        "gap": MAX_CLASSES // 2 if hidden else 0,
        "steps": [replace(step, command=show(step.command)) for step in next_steps(overview)],
        "folder": show(where_to_run(overview)),
    }


CHAPTER = Chapter("overview", "In short", summarize, "first")


def _groups(overview: Overview) -> list[dict[str, str]]:
    """Of the kinds that the run holds, every state."""
    rated = max(overview.points - overview.without_number, 1)
    kinds = [kind for kind in overview.groups.index if sum(overview.groups.loc[kind].tolist())]
    counts = [(kind, state, overview.count(state, kind)) for kind in kinds for state in FROM_SAFE]
    return [
        {"kind": kind, "state": state, "share": small_percent(count / rated), "points": f"{count:,}"}
        for kind, state, count in counts
    ]


def _bars(contents: Contents, overview: Overview) -> list[dict[str, Any]]:
    rows = {int(row["class"]): row for row in overview.classes.to_dict("records")}
    if len(rows) < 2:
        return []
    half = MAX_CLASSES // 2
    shown = [*rows] if len(rows) <= MAX_CLASSES else [*[*rows][:half], *[*rows][-half:]]
    names = contents.class_labels(shown)
    bars = []
    for number in shown:
        start, parts = 0.0, []
        for state in FROM_SAFE:
            points = int(rows[number][state])
            width = 100.0 * points / rows[number]["points"]
            parts.append((state, points, round(start, 2), round(width, 2)))
            start += width
        spoken = ", ".join(f"{state} {points}" for state, points, _, _ in parts)
        bars.append({"name": names[number], "parts": parts, "spoken": f"{names[number]}: {spoken}"})
    return bars
