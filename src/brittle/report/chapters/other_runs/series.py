"""Means over several other runs, in the order given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from brittle.analysis.columns import laplacian_column, sampled_columns
from brittle.analysis.label_flips import FLIPS, mean_absolute
from brittle.analysis.mean_interval import MeanInterval, mean_interval
from brittle.report.chapters.other_runs.drawn import finite
from brittle.report.chapters.other_runs.names import THIS
from brittle.report.chapters.other_runs.result import OtherRun, Panel
from brittle.report.contents import Contents
from brittle.report.parts import Grid
from brittle.report.wording import MISSING, reach, signed
from brittle.store.columns import Row
from brittle.store.settings import Setting


def summarize_series(contents: Contents, others: Mapping[str, Contents], flips: Setting | None) -> tuple[Panel, ...]:
    """Mean |Laplacian| and mean p_robust of each run, each over all points that it has a value for."""
    level = f"mean p_robust, {contents.noise_text(flips)}" if flips is not None else ""
    kinds = {"mean |Laplacian|": _mean_laplacian, level: lambda run: _mean_robustness(run, flips)}
    panels = []
    for title, mean in kinds.items():
        this, found = mean(contents), {name: mean(other) for name, other in others.items()}
        known = {name: value for name, value in found.items() if value is not None}
        if title and this is not None and known:
            rows = [
                {"name": name, "order": order, "value": value, "low": low, "high": high}
                | {"this": this[0], "this_low": this[1], "this_high": this[2]}
                for order, (name, (value, low, high)) in enumerate(known.items())
            ]
            found_frame = finite(pd.DataFrame(rows)).assign(title=title, bounded=title == level)
            spoken = ", ".join(f"{row['name']} {signed(row['value'], 3)}" for row in rows)
            panels.append(Panel(title, found_frame, f"{title}: {THIS} {signed(this[0], 3)}, {spoken}"))
    return tuple(panels)


def _mean_laplacian(contents: Contents) -> tuple[float, float, float] | None:
    column = laplacian_column(contents.columns)
    if column is None or np.isinf(column.value).any():
        return None
    mean = mean_absolute(contents, column)
    return mean.mean, mean.low, mean.high


def _mean_robustness(contents: Contents, flips: Setting | None) -> MeanInterval | None:
    column = None if flips is None else sampled_columns(contents.columns, FLIPS).get(flips)
    if column is None:
        return None
    return mean_interval(column.p_robust, contents.confidence)


def series_grid(runs: Sequence[OtherRun], series: Sequence[Panel]) -> Grid:
    """The means of the series, one row per run."""
    header = ("Run", *(panel.title[0].upper() + panel.title[1:] for panel in series))
    found = [{row["name"]: row for row in panel.frame.to_dict("records")} for panel in series]
    this = (THIS, *(_cell(panel.frame.iloc[0].to_dict(), "this") for panel in series))
    rows = [(run.name, *(_cell(one.get(run.name)) for one in found)) for run in runs]
    return Grid(header, (False, *[True] * len(series)), (this, *rows) if series else ())


def _cell(row: Row | None, of: str = "") -> str:
    """The mean of another run, or `of` this one, with its interval."""
    if row is None:
        return MISSING
    low, high = (row[f"{of}_{end}" if of else end] for end in ("low", "high"))
    return f"{signed(row[of or 'value'], 3)}\n{reach(low, high, 3)}"


def series_note(count: int, series: Sequence[Panel]) -> str:
    if count < 2:
        return ""
    if not series:
        return "The runs share neither a Laplacian nor flips, so no series is drawn."
    return (
        "The other runs in the order given, each mean over all points of the run that have a value, with its interval; "
        "the dashed line is this run."
    )
