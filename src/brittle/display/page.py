"""The report of a run inside a notebook."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from brittle.errors import ParameterError
from brittle.report import CHAPTERS, Chapter, open_contents, render
from brittle.store.files.writing import check_target, write
from brittle.store.reading import read_table
from brittle.store.table import Table

HEIGHT = 640
"""Pixels of the frame in a notebook, unless told."""

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
        page = _WITHIN.sub(lambda found: f"{found[2]}about:srcdoc#" if found[2] else found[0], self.html)
        return str(_FRAME.format(height=self.height, page=page))


def show(
    table: Table | str | os.PathLike[str],
    *,
    height: int = HEIGHT,
    epsilon: float | str | None = None,
    against: Mapping[str, Table | str | os.PathLike[str]] | None = None,
    chapters: Sequence[Chapter[Any]] = CHAPTERS,
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
        chapters: what the page says, in this order.

    Raises:
        ParameterError: `table` is neither a table nor a path, `height` is no positive whole number, `epsilon` is
            neither a positive number nor a fraction of two, or two chapters share a name.
        DataError: the points of another run cannot be paired with those of `table`.
        StorageError: a folder holds no run, or a run that is damaged.
        ArtefactError: a file of a run leads out of its folder, or could run code.
    """
    if isinstance(height, bool) or not isinstance(height, int) or height < 1:
        raise ParameterError(f"height must be a whole number of pixels, 1 or more; found {height!r:.40}")
    others = {name: _opened(other) for name, other in (against or {}).items()}
    return ReportPage(render(open_contents(_opened(table), epsilon, others), chapters), height)


def _opened(table: object) -> Table:
    """A table, or the one in a run folder."""
    if isinstance(table, Table):
        return table
    if isinstance(table, str | os.PathLike):
        return read_table(table)
    raise ParameterError(f"expected a table or the folder of a run; found {type(table).__name__}")
