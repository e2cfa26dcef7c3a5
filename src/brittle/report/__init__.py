"""A table as one HTML page that opens without a network and runs no code."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from brittle.errors import StorageError
from brittle.report import charts
from brittle.report.case import open_cases
from brittle.report.stand_in import compare_scores
from brittle.report.subject import open_table
from brittle.report.summarize import summarize
from brittle.report.summary import Summary, WorstCase
from brittle.table import Table

__all__ = ["Summary", "render", "summarize", "worst_cases", "write_report"]


def write_report(table: Table, path: str | os.PathLike[str], epsilon: float | None = None) -> Path:
    """Write the report of `table` to the file `path`: one page, with its figures and images inside.

    The page names no address and holds no script, and its policy allows neither. The same table gives the same bytes.

    Args:
        table: a run.
        path: the file to write; its folder must exist.
        epsilon: perturbation size of the worst-case chapter, in pixel units; by default one that suits the margins.

    Returns:
        The path written.

    Raises:
        StorageError: `path` cannot be written.
        ParameterError: `epsilon` is negative.
    """
    path = Path(path)
    page = render(summarize(table, epsilon))
    try:
        path.write_text(page, encoding="utf-8", newline="\n")
    except OSError as error:
        raise StorageError("unwritable", f"{path} cannot be written ({error.strerror}); choose another") from error
    return path


def worst_cases(table: Table, epsilon: float | None = None) -> tuple[pd.DataFrame, ...]:
    """For each norm of the worst-case chapter the frame of `brittle.analysis.worst_case_table`, at the same size.

    Args:
        table: a run.
        epsilon: perturbation size, in pixel units; by default the one that the chapter judges at.
    """
    return tuple(compare_scores(case) for case in open_cases(open_table(table), epsilon))


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
        summary=summary,
        figures=figures,
        worst_case_figures=worst_case,
        style=style,
        colours=charts.COLOURS,
        other=charts.OTHER,
    )


def _worst_case_figures(case: WorstCase, number: int) -> dict[str, Markup]:
    """The figures of the chapter on one norm, their identifiers told apart by its number."""
    frames = {"nearest": case.nearest.frame, "stand_in": case.stand_in.scatter, "detection": case.stand_in.detection}
    return {name: Markup(charts.draw(name, frame, f"{name}-{number}")) for name, frame in frames.items()}
