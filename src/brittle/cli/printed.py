"""What the report's command prints beside the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brittle.report import Contents
    from brittle.store.table import Table


def named(folders: Sequence[Path]) -> dict[str, Table]:
    """The runs in `folders` by the names of these; by their paths where several have one name."""
    from brittle.store.reading import read_table

    times = Counter(folder.resolve().name for folder in set(folders))
    names = {folder: folder.resolve().name for folder in folders}
    return {name if times[name] == 1 else str(folder): read_table(folder) for folder, name in names.items()}


def texts(contents: Contents) -> list[str]:
    """What the run says as plain text: how many predictions hold, then the comparisons that the page has."""
    own = [*_overview_texts(contents), *_decision_texts(contents), *_agreement_texts(contents)]
    return [*own, *_worst_case_texts(contents), *_change_texts(contents), *_comparison_texts(contents)]


def _overview_texts(contents: Contents) -> list[str]:
    """How many predictions hold and break; empty for a run that speaks of something else."""
    from brittle.analysis.overview_text import how_brittle

    return [how_brittle(contents.overview)] if contents.tells_robustness else []


def _decision_texts(contents: Contents) -> list[str]:
    """How many points hold and break; empty for a run that was not asked."""
    from brittle.analysis import decisions, format_decisions

    frame = decisions(contents)
    return [] if frame.empty else [format_decisions(frame)]


def _agreement_texts(contents: Contents) -> list[str]:
    """How the estimators agree with Monte Carlo; empty for a run without any that they can be compared with."""
    from brittle.analysis import agreement, format_agreement

    frame = agreement(contents)
    return [] if frame.empty else [format_agreement(frame)]


def _worst_case_texts(contents: Contents) -> list[str]:
    """How well scores tell the points within reach, at the size of the page, for each norm."""
    from brittle.analysis import format_worst_case
    from brittle.report.chapters.worst_case import open_cases

    return [format_worst_case(case.compare()) for case in open_cases(contents)]


def _change_texts(contents: Contents) -> list[str]:
    """How well the Laplacian predicts the sampled change and the flips; empty where it is compared with nothing."""
    from brittle.analysis import expected_change_table, format_expected_change, label_flips

    frames = expected_change_table(contents), label_flips(contents)
    return [format_expected_change(*frames)] if any(len(frame) for frame in frames) else []


def _comparison_texts(contents: Contents) -> list[str]:
    """The comparison with each other run, under its name."""
    from brittle.analysis import compare, format_comparison
    from brittle.analysis.comparison import most_drawn
    from brittle.report.wording import show

    frames = {name: most_drawn(compare(contents, other), contents.columns) for name, other in contents.others.items()}
    return [f"Against {show(name)}: {format_comparison(frame)}" for name, frame in frames.items()]
