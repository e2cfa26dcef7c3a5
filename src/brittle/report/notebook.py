"""Tables and estimates in a notebook and in a terminal, and the report in a frame; all of it inert.

The HTML runs nothing, and takes colours and fonts from what is around it.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from markupsafe import Markup, escape

from brittle.analysis.decisions import column_if_any, unjudged_text
from brittle.analysis.overview import FROM_SAFE, LIMIT, Overview, overview
from brittle.analysis.overview_text import how_brittle, how_sure, where
from brittle.errors import ParameterError
from brittle.estimate import Estimate, Status
from brittle.report import wording
from brittle.report.render import open_contents, render
from brittle.report.wording import MISSING, plural, reach, signed
from brittle.store.columns import BREAKS, HOLDS, UNDECIDED
from brittle.store.reading import read_table
from brittle.store.table import Table
from brittle.store.writing import check_target, write
from brittle.text import by_number

HEIGHT = 640
"""Pixels of the frame of a report."""

POINTS = 10
"""Points of an estimate that a notebook shows."""

DIGITS = 3
"""Digits of a number of an estimate."""

COLUMNS_IN_TERMINAL, COLUMNS_IN_NOTEBOOK = 3, 12
"""Columns of a table that are named."""

LONGEST_NAME, LONGEST_LABEL, LONGEST_SENTENCE = 40, 80, 120
"""Characters of a name, of the label of a column in a notebook, and of a sentence that is not ours."""

_STATUSES = {int(status): status for status in Status}

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
        html: the page, as `brittle.write_report` writes it.
        height: pixels of its frame in a notebook.
    """

    html: str
    height: int = HEIGHT

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
        """A frame with the page: it has an origin of its own, so it reaches neither the notebook nor its files."""
        # Links within a framed page lead to the notebook's address, unless they name that of the frame.
        page = _WITHIN.sub(lambda link: f"{link[2]}about:srcdoc#" if link[2] else link[0], self.html)
        return str(_FRAME.format(height=self.height, page=page))


def show(
    table: Table | str | os.PathLike[str],
    *,
    height: int = HEIGHT,
    epsilon: float | str | None = None,
    against: Mapping[str, Table | str | os.PathLike[str]] | None = None,
) -> ReportPage:
    """The report of `table`, which a notebook shows where a cell ends with it.

    The page is that of `brittle.write_report`, in a frame without rights to the notebook around it. Elsewhere nothing
    is shown or written; `brittle.show(table).save("report.html")` writes the page.

    Args:
        table: a run, or its folder.
        height: of the frame, in pixels.
        epsilon: perturbation size of the worst-case chapter, in pixel units, such as `"8/255"`; by default one that
            suits the margins.
        against: other runs over the same points, or their folders, by the names that the page gives them.

    Raises:
        ParameterError: `table` is neither a table nor a path, `height` is no positive whole number, or `epsilon` is
            neither a positive number nor a fraction of two.
        DataError: the points of another run cannot be paired with those of `table`.
        StorageError: a folder holds no run, or a run that is damaged.
        ArtefactError: a file of a run leads out of its folder, or could run code.
    """
    if isinstance(height, bool) or not isinstance(height, int) or height < 1:
        raise ParameterError(f"height must be a whole number of pixels, 1 or more; found {height!r:.40}")
    others = {name: _opened(other) for name, other in (against or {}).items()}
    return ReportPage(render(open_contents(_opened(table), epsilon, others)), height)


def _opened(table: object) -> Table:
    """A table, or the one in a run folder."""
    if isinstance(table, Table):
        return table
    if isinstance(table, str | os.PathLike):
        return read_table(table)
    raise ParameterError(f"expected a table or the folder of a run; found {type(table).__name__}")


def table_text(table: Table) -> str:
    """`table` in at most three lines: what was scored, how many predictions hold, the first columns.

    A table whose parts do not fit together is said to be one, and nothing is raised.
    """
    try:
        return "\n".join([_title(table), *(f"  {line}" for line in (_states(table), _columns(table)) if line)])
    except Exception as error:  # noqa: BLE001 - whoever looks for what is wrong with a table prints it
        return _unreadable("Table", error)


def table_html(table: Table) -> str:
    """`table` as inert HTML: what was scored, the sentences and the groups of its overview, and its columns.

    A table whose parts do not fit together is said to be one, and nothing is raised.
    """
    try:
        return _block(_table_parts(table))
    except Exception as error:  # noqa: BLE001 - as in a terminal
        return str(_paragraph(_text(_unreadable("Table", error))))


def estimate_html(estimate: Estimate) -> str:
    """`estimate` as inert HTML: the first points with value, interval and status in words, and how many have which.

    One whose fields do not fit together is said to be one, and nothing is raised.
    """
    try:
        return _block(_estimate_parts(estimate))
    except Exception as error:  # noqa: BLE001 - as in a terminal
        return str(_paragraph(_text(_unreadable("Estimate", error))))


def _unreadable(what: str, error: Exception) -> str:
    """Stands for a thing whose parts do not fit together."""
    return f"{what} that cannot be read: {wording.show(error, LONGEST_SENTENCE)} ({type(error).__name__})"


def _title(table: Table) -> str:
    model, data = table.record.model, table.record.data
    source = "data in memory"
    if data.path:
        source = wording.show(PurePath(data.path).name or data.path, LONGEST_NAME)
        source += f" ({wording.show(data.split, LONGEST_NAME)})" if data.split else ""
    name = wording.show(model.spec.rpartition("/")[2] or model.spec or "a model", LONGEST_NAME)
    state = "" if table.record.finished else "; the run had not finished"
    size = f"{plural(len(table.points), 'point')} and {plural(len(table.record.scores), 'column')}"
    return f"Table of {size}: {name} on {source}{state}"


def _states(table: Table) -> str:
    """How many points hold, at the limit of the overview; empty for an empty table."""
    column = column_if_any(table)
    if column is None:
        return "none has a flip probability, so it is not known how many hold" if len(table.points) else ""
    if not column.judges:
        return wording.show(unjudged_text(column))
    limit = column.limit or LIMIT
    states = column.states(limit).tolist()
    held, broken, undecided = (states.count(state) for state in (HOLDS, BREAKS, UNDECIDED))
    counts = f"{held:,} {by_number(held, 'holds', 'hold')}, {broken:,} {by_number(broken, 'breaks', 'break')}"
    lost = f", {states.count(None):,} without a number" if None in states else ""
    by = wording.show(column.shown, LONGEST_NAME)
    return f"{counts}, {undecided:,} undecided{lost}: kept with probability {limit:g} or more, by {by}"


def _columns(table: Table) -> str:
    """The first columns, and how many more there are."""
    labels = [wording.show(column.shown, LONGEST_NAME) for column in table.columns]
    left = len(labels) - COLUMNS_IN_TERMINAL
    more = f" and {left:,} more" if left > 0 else ""
    return f"columns: {', '.join(labels[:COLUMNS_IN_TERMINAL])}{more}" if labels else ""


def _table_parts(table: Table) -> list[Markup]:
    said = overview(table)
    sentences = [one for one in (how_brittle(said), where(said), how_sure(said), *said.margins) if one]
    return [
        _paragraph(Markup("<b>{}</b>").format(_text(_title(table)))),
        *(_paragraph(_text(one)) for one in sentences),
        *_groups(said),
        *_numbers(table),
        _paragraph(Markup("<code>brittle.show(table)</code> opens the report.")),
    ]


def _groups(said: Overview) -> list[Markup]:
    """How many predictions of each kind hold, are undecided and break; nothing where no point has a number."""
    kinds = [kind for kind in said.groups.index if sum(said.groups.loc[kind].tolist())]
    rows = [[_text(kind), *(_text(f"{said.count(state, kind):,}") for state in FROM_SAFE)] for kind in kinds]
    return [_grid(["predictions", *FROM_SAFE], rows)] if rows else []


def _numbers(table: Table) -> list[Markup]:
    """The columns, and how many points each has a number for."""
    columns = table.columns[:COLUMNS_IN_NOTEBOOK]
    rows = [[_text(one.shown, LONGEST_LABEL), _text(f"{one.value.notna().sum():,} of {len(one):,}")] for one in columns]
    left = len(table.columns) - len(columns)
    more = [_paragraph(_text(f"and {plural(left, 'column')} more"))] if left else []
    return [_grid(["column", "points with a number"], rows), *more] if rows else []


def _estimate_parts(estimate: Estimate) -> list[Markup]:
    codes = estimate.status.tolist()
    details = estimate.detail or (None,) * len(codes)
    numbers = (one[:POINTS].tolist() for one in (estimate.value, estimate.low, estimate.high))
    rows = [_point(place, *row) for place, row in enumerate(zip(*numbers, codes, details, strict=False))]
    left = len(codes) - len(rows)
    counts = [
        [_text(_status(code)[0]), _text(f"{count:,}"), _text(_status(code)[1])]
        for code, count in sorted(Counter(codes).items())
    ]
    return [
        _paragraph(Markup("<b>{}</b>").format(_text(f"Estimate of {plural(len(codes), 'point')}"))),
        *([_grid(["point", "value", "interval", "status"], rows, frozenset({3}))] if rows else []),
        *([_paragraph(_text(f"and {plural(left, 'point')} more"))] if left else []),
        *([_grid(["status", "points", "what it says"], counts, frozenset({0, 2}))] if counts else []),
    ]


def _point(place: int, value: float, low: float, high: float, code: int, detail: str | None) -> list[Markup]:
    interval = MISSING if low != low else reach(low, high, DIGITS)
    _, sentence = _status(code)
    status = f"{sentence} Found: {detail}." if detail else sentence
    numbers = [_text(place), _text(signed(value, DIGITS)), _text(interval)]
    return [*numbers, _text(status, LONGEST_SENTENCE + len(sentence))]


def _status(code: int) -> tuple[str, str]:
    """The name of a status and its sentence."""
    if code in _STATUSES:
        return _STATUSES[code].slug, _STATUSES[code].sentence
    return f"status {code}", f"Status {code}, which this version does not know."


def _text(value: Any, limit: int | None = None) -> Markup:
    """`value` as text and nothing else, cut where it is longer than `limit`: every piece from a user goes this way."""
    return escape(wording.show(value, limit))


def _block(parts: Iterable[Markup]) -> str:
    """Parts below each other."""
    return str(Markup("<div>{}</div>").format(Markup("\n").join(parts)))


def _paragraph(content: Markup) -> Markup:
    return Markup('<p style="margin:0.4em 0;max-width:60em">{}</p>').format(content)


def _grid(header: Sequence[str], rows: Iterable[Sequence[Markup]], words: frozenset[int] = frozenset({0})) -> Markup:
    """A table; the columns at the places `words` are flush left, the others flush right."""
    sides = ["left" if place in words else "right" for place in range(len(header))]
    head = _cells("th", map(_text, header), sides)
    body = Markup("\n").join(_cells("td", row, sides) for row in rows)
    return Markup('<table style="margin:0.6em 0"><thead>{}</thead><tbody>\n{}\n</tbody></table>').format(head, body)


def _cells(tag: str, cells: Iterable[Markup], sides: Sequence[str]) -> Markup:
    cell = Markup('<{tag} style="text-align:{side}">{content}</{tag}>')
    row = (cell.format(tag=tag, side=side, content=one) for one, side in zip(cells, sides, strict=True))
    return Markup("<tr>{}</tr>").format(Markup("").join(row))
