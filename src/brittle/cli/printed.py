"""What the report's command prints beside the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brittle.store.table import Table


def named(folders: Sequence[Path]) -> dict[str, Table]:
    """The runs in `folders` by the names of these; by their paths where several have one name."""
    from brittle.store.reading import read_table

    times = Counter(folder.resolve().name for folder in set(folders))
    names = {folder: folder.resolve().name for folder in folders}
    return {name if times[name] == 1 else str(folder): read_table(folder) for folder, name in names.items()}


def change_texts(table: Table) -> list[str]:
    """How well the Laplacian predicts the sampled change and the flips; empty where it is compared with nothing."""
    from brittle.analysis import expected_change_table, format_expected_change, label_flips

    frames = expected_change_table(table), label_flips(table)
    return [format_expected_change(*frames)] if any(len(frame) for frame in frames) else []


def comparison_texts(table: Table, others: Mapping[str, Table]) -> list[str]:
    """The comparison with each of `others`, under its name."""
    from brittle.analysis import columns, compare, format_comparison
    from brittle.report.comparison import most_drawn
    from brittle.report.wording import shown

    frames = {name: most_drawn(compare(table, other), columns(table)) for name, other in others.items()}
    return [f"Against {shown(name)}: {format_comparison(frame)}" for name, frame in frames.items()]
