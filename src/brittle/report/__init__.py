"""A table as one HTML page that opens without a network and runs no code."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from brittle.errors import StorageError
from brittle.report import charts
from brittle.report.summarize import summarize
from brittle.report.summary import Summary
from brittle.table import Table

__all__ = ["Summary", "render", "summarize", "write_report"]


def write_report(table: Table, path: str | os.PathLike[str]) -> Path:
    """Write the report of `table` to the file `path`: one page, with its figures and images inside.

    The page names no address and holds no script, and its policy allows neither. The same table gives the same bytes.

    Args:
        table: a run.
        path: the file to write; its folder must exist.

    Returns:
        The path written.

    Raises:
        StorageError: `path` cannot be written.
    """
    path = Path(path)
    page = render(summarize(table))
    try:
        path.write_text(page, encoding="utf-8", newline="\n")
    except OSError as error:
        raise StorageError("unwritable", f"{path} cannot be written ({error.strerror}); choose another") from error
    return path


def render(summary: Summary) -> str:
    """The page of `summary` as text."""
    environment = Environment(
        loader=PackageLoader("brittle.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    figures = {name: Markup(charts.draw(name, getattr(summary, name).frame)) for name in charts.FIGURES}
    style = Markup(resources.files("brittle.report").joinpath("style.css").read_text(encoding="utf-8"))
    template = environment.get_template("page.html.jinja")
    return template.render(summary=summary, figures=figures, style=style, colours=charts.COLOURS, other=charts.OTHER)
