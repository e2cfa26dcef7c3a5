"""This run beside other runs over the same points: other models, or corrupted copies of the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from brittle.report.chapter import Chapter, Text, files_beside
from brittle.report.chapters.other_runs.charts import difference_chart, series_chart, spread_chart
from brittle.report.chapters.other_runs.names import distinct, flips_setting
from brittle.report.chapters.other_runs.pair import summarize_pair
from brittle.report.chapters.other_runs.result import OtherRuns
from brittle.report.chapters.other_runs.series import series_grid, series_note, summarize_series
from brittle.report.contents import Contents
from brittle.report.figure import Figure
from brittle.report.wording import show

MAX_DRAWN = 2
"""Other runs that get figures of their own; of more, the series is drawn and each has a table."""

FILES = files_beside(__name__)


class OtherRunsChapter(Chapter[OtherRuns]):
    """This run beside other runs."""

    name: ClassVar[str] = "other-runs"
    title: ClassVar[str] = "Compared with other runs"
    template: ClassVar[Text] = FILES / "chapter.html.jinja"

    def summarize(self, contents: Contents) -> OtherRuns | None:
        """The comparison with each run, and the series of several; None without any.

        Raises:
            DataError: the points of a run cannot be paired with those of this one.
        """
        if not contents.others:
            return None
        names = distinct([show(name, 40) for name in contents.others])
        others = dict(zip(names, contents.others.values(), strict=True))
        flips, drawn = flips_setting(contents), len(others) <= MAX_DRAWN
        runs = tuple(summarize_pair(contents, name, other, flips, drawn) for name, other in others.items())
        series = summarize_series(contents, others, flips) if len(others) > 1 else ()
        return OtherRuns(runs, series, series_grid(runs, series), series_note(len(others), series))

    def figures(self, result: OtherRuns) -> Mapping[str, Figure]:
        """Those of the series, and for each run its differences and spreads."""
        series = {f"series-{place}": Figure(series_chart, panel.frame) for place, panel in enumerate(result.series)}
        differences = {
            f"difference-{place}": Figure(difference_chart, run.differences, narrow=True)
            for place, run in enumerate(result.runs)
        }
        spreads = {
            f"spread-{place}-{number}": Figure(spread_chart, panel.frame)
            for place, run in enumerate(result.runs)
            for number, panel in enumerate(run.spreads)
        }
        return series | differences | spreads
