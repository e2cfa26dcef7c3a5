"""A table as one HTML page that opens without a network and runs no code."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from brittle.norms import parse_epsilon
from brittle.report import charts
from brittle.report.case import open_cases
from brittle.report.stand_in import compare_scores
from brittle.report.subject import open_table
from brittle.report.summarize import summarize
from brittle.report.summary import ExpectedChange, OtherRuns, Panel, Summary, WorstCase
from brittle.store.files.writing import check_target, write
from brittle.store.table import Table

MARK = '<meta name="generator" content="brittle '
"""What every page holds near its start, before the version that wrote it."""


def write_report(
    table: Table,
    path: str | os.PathLike[str],
    epsilon: float | str | None = None,
    against: Mapping[str, Table] | None = None,
) -> Path:
    """Write the report of `table` to the file `path`: one page, with its figures and images inside.

    The page names no address and holds no script, and its policy allows neither. The same table gives the same bytes.

    Args:
        table: a run.
        path: the file to write; its folder must exist.
        epsilon: perturbation size of the worst-case chapter, in pixel units, such as `"8/255"`; by default one that
            suits the margins.
        against: other runs over the same points, by the names that the page gives them.

    Returns:
        The path written.

    Raises:
        StorageError: `path` cannot be written, or is a link, a pipe, a device or a folder.
        ParameterError: `epsilon` is neither a positive number nor a fraction of two.
        DataError: the points of another run cannot be paired with those of `table`.
    """
    path = Path(path)
    check_target(path)
    page = render(summarize(table, None if epsilon is None else parse_epsilon(epsilon), against))
    write(path, page.encode("utf-8"))
    return path


def worst_cases(table: Table, epsilon: float | str | None = None) -> tuple[pd.DataFrame, ...]:
    """For each norm of the worst-case chapter the frame of `brittle.analysis.worst_case_table`, at the same size.

    Args:
        table: a run.
        epsilon: perturbation size, in pixel units, as in `write_report`; by default the one that the chapter judges at.

    Raises:
        ParameterError: `epsilon` is neither a positive number nor a fraction of two.
    """
    reach = None if epsilon is None else parse_epsilon(epsilon)
    return tuple(compare_scores(case) for case in open_cases(open_table(table), reach))


def render(summary: Summary) -> str:
    """The page of `summary` as text."""
    environment = Environment(
        loader=PackageLoader("brittle.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    figures = {name: Markup(charts.draw(name, getattr(summary, name).frame)) for name in charts.AVERAGE_CASE}
    worst_case = [_worst_case_figures(case, number) for number, case in enumerate(summary.worst_case)]
    style = Markup(resources.files("brittle.report").joinpath("style.css").read_text(encoding="utf-8"))
    template = environment.get_template("page.html.jinja")
    return template.render(
        generator=Markup(f'{MARK}{version("brittle")}">'),
        summary=summary,
        figures=figures,
        worst_case_figures=worst_case,
        expected_change_figures=_expected_change_figures(summary.expected_change),
        other_runs_figures=_other_runs_figures(summary.other_runs),
        style=style,
        colours=charts.COLOURS,
        other=charts.OTHER,
    )


def _worst_case_figures(case: WorstCase, number: int) -> dict[str, Markup]:
    """The figures of the chapter on one norm, their identifiers told apart by its number."""
    frames = {"nearest": case.nearest.frame, "stand_in": case.stand_in.scatter, "detection": case.stand_in.detection}
    return {name: Markup(charts.draw(name, frame, f"{name}-{number}")) for name, frame in frames.items()}


def _expected_change_figures(change: ExpectedChange | None) -> dict[str, Markup]:
    """The figures of the chapter on the expected change."""
    if change is None:
        return {}
    frames = {"change": change.prediction.frame, "shares": change.flips.shares, "means": change.flips.means}
    return {name: Markup(charts.draw(name, frame)) for name, frame in frames.items()}


def _other_runs_figures(others: OtherRuns | None) -> dict[str, list[Any]]:
    """The figures of the chapter on other runs: those of the series, and for each run its differences and spreads."""
    if others is None:
        return {"series": [], "differences": [], "spreads": []}
    count = itertools.count()

    def drawn(name: str, panels: Iterable[Panel]) -> list[Markup]:
        return [Markup(charts.draw(name, panel.frame, f"{name}-{next(count)}")) for panel in panels]

    return {
        "series": drawn("series", others.series),
        "differences": drawn("difference", [Panel(run.name, run.differences) for run in others.runs]),
        "spreads": [drawn("spread", run.spreads) for run in others.runs],
    }
