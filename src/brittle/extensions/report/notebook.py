"""The report in a frame of a notebook, which is inert, and a table in words."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup, escape

from brittle.analysis.decisions import column_for, numbers_beside
from brittle.analysis.overview import overview
from brittle.analysis.overview_text import how_brittle
from brittle.analysis.point_list import point_list
from brittle.errors import ParameterError
from brittle.extensions.report.render import open_contents, render
from brittle.extensions.report.wording import plural
from brittle.extensions.report.wording import show as show_text
from brittle.store.columns import Key, distinct_names
from brittle.store.export import filled_columns
from brittle.store.table import Table
from brittle.store.writing import check_target, write
from brittle.text import clipped

HEIGHT = 640  # pixels of the frame of a report
COLUMNS = 3  # columns of a table that are named
LONGEST_NAME, LONGEST_SENTENCE = 40, 120  # characters of a name, and of a sentence that is not ours

_WITHIN = re.compile(r'<(script|style)\b.*?</\1>|(<a\b[^>]*?\shref=")#', re.DOTALL)
"""A link to another place of the page; or a style or a script, which the policy of the page knows to the byte."""

_FRAME = Markup(
    '<iframe title="Report" width="100%" height="{height}" style="border:0" sandbox="allow-scripts allow-downloads" '
    'srcdoc="{page}"></iframe>'
)


@dataclass(frozen=True, repr=False)
class ReportPage:
    """The report of a run, which a notebook shows and `save` writes.

    Attributes:
        html: the page.
        height: pixels of its frame in a notebook.
    """

    html: str
    height: int = HEIGHT

    @staticmethod
    def of(table: Table, height: int, epsilon: float | str | None, against: Mapping[str, Table] | None) -> ReportPage:
        """Return the page of `table`, as `Table.report` takes it."""
        if isinstance(height, bool) or not isinstance(height, int) or height < 1:
            raise ParameterError(f"height must be a whole number of pixels, 1 or more; found {height!r:.40}")
        for rival in (against or {}).values():
            if not isinstance(rival, Table):
                raise ParameterError(f"another run is a table, such as brittle.read_table('RUN'); found {rival!r:.60}")
        return ReportPage(render(open_contents(table, epsilon, against)), height)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to the file `path`, and return the path.

        Raises:
            StorageError: `path` cannot be written, or is a link, a pipe, a device or a folder.
        """
        path = Path(path)
        check_target(path)
        write(path, self.html.encode("utf-8"))
        return path

    def __repr__(self) -> str:
        size = len(self.html.encode("utf-8")) / 1e6
        return f'Report, {size:.1f} MB: a notebook shows it here; .save("report.html") writes it'

    def _repr_html_(self) -> str:
        """Return a frame with the page, whose own origin keeps it from the notebook and its files."""
        # Links within a framed page lead to the notebook's address, unless they name that of the frame.
        page = _WITHIN.sub(lambda link: f"{link[2]}about:srcdoc#" if link[2] else link[0], self.html)
        return str(_FRAME.format(height=self.height, page=page))


class PointFrame(pd.DataFrame):
    """A frame with one row per point, which a notebook shows with the thumbnails of the points. `attrs["thumbnails"]`
    holds their PNG bytes in base64, by the id of the point."""

    @staticmethod
    def of(frame: pd.DataFrame, table: Table) -> pd.DataFrame:
        """Make the frame of some points of `table`, or return `frame` where they have no thumbnails."""
        rows = table.points.filter(pc.field("point").isin(pa.array(frame["point"].tolist(), pa.string())))
        images = dict(zip(rows["point"].to_pylist(), rows["image"].to_pylist(), strict=True))
        encoded_by_point = {point: base64.b64encode(image).decode("ascii") for point, image in images.items() if image}
        frame = table.label_points(frame)
        shown = PointFrame(frame)
        shown.attrs["thumbnails"] = encoded_by_point
        return shown if encoded_by_point else frame

    @property
    def _constructor(self) -> type[PointFrame]:
        return PointFrame

    def _repr_html_(self) -> str | None:
        """Return the columns that hold something, the image first; text that is not ours is escaped."""
        if "point" not in self.columns or "image" in self.columns or not self.columns.is_unique:
            return super()._repr_html_()  # pyright: ignore[reportCallIssue]
        shown = pd.DataFrame(self).dropna(axis="columns", how="all").reset_index(drop=True)
        shown = shown.map(lambda value: show_text(value) if isinstance(value, str) else value)
        shown.insert(0, "image", [self.attrs.get("thumbnails", {}).get(str(point).strip()) for point in self["point"]])
        shown.columns = [str(escape(show_text(str(name)))) for name in shown.columns]
        picture = '<img src="data:image/png;base64,{}" style="image-rendering:pixelated;min-width:48px">'
        styled: Any = shown.style.hide(axis="index").format(precision=3, escape="html")
        return styled.format(picture.format, na_rep="", subset=["image"]).to_html()


def list_points(table: Table, count: int, by: Key | None) -> pd.DataFrame:
    """List the points that are the least safe, as `Table.top` does."""
    judge = column_for(table) if by is None else table[by]
    column = numbers_beside(table, judge) if by is None else judge
    frame = table.name_classes(point_list(table, column, judge=judge))
    frame = frame.rename(columns={"value": "p_robust" if column.is_probability else column.score})
    frame.attrs["ends"] = [] if column.is_probability else [("low", "high")]
    return PointFrame.of(frame.filter(filled_columns([frame])).head(count), table)


def table_text(table: Table) -> str:
    """`table` in a few lines: what was scored, how many predictions hold and how near others are, the first columns.

    A table whose parts do not fit together is said to be one, and nothing is raised.
    """
    try:
        run_overview = overview(table) if len(table.points) else None
        sentences = () if run_overview is None else (how_brittle(run_overview), *run_overview.margins)
        return "\n".join([_title(table), *(f"  {show_text(line)}" for line in (*sentences, _columns(table)) if line)])
    except Exception as error:  # noqa: BLE001 - whoever looks for what is wrong with a table prints it
        return f"Table that cannot be read: {show_text(error, LONGEST_SENTENCE)} ({type(error).__name__})"


def _title(table: Table) -> str:
    model, data = table.record.model, table.record.data
    source = "data in memory"
    if data.path:
        source = show_text(PurePath(data.path).name or data.path, LONGEST_NAME)
        source += f" ({show_text(data.split, LONGEST_NAME)})" if data.split else ""
    name = show_text(model.spec.rpartition("/")[2] or model.spec or "a model", LONGEST_NAME)
    state = "" if table.record.finished else "; the run had not finished"
    size = f"{plural(len(table.points), 'point')} and {plural(len(table.record.scores), 'column')}"
    return f"Table of {size}: {name} on {source}{state}"


def _columns(table: Table) -> str:
    labels = [show_text(clipped(name, LONGEST_NAME)) for name in distinct_names(table.columns)]
    hidden_count = len(labels) - COLUMNS
    more = f" and {hidden_count:,} more" if hidden_count > 0 else ""
    return f"columns: {', '.join(labels[:COLUMNS])}{more}" if labels else ""
