"""What was scored."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from helpers.pages import result_of
from helpers.tables import make_table

from brittle.report.chapters.scored import ScoredChapter
from brittle.store.schemas import SCORES


def test_points_without_a_number_are_listed_apart_from_those_with_a_remark() -> None:
    """A status that came with a number at one point and without one at another stands in both tables."""
    table = make_table(points=4, scores=("taylor",), sigmas=(0.1,))
    rows = table.long()
    rows["status"] = ["ok", "ill_conditioned", "ill_conditioned", "tie"]
    rows.loc[2, "value"] = None
    result = result_of(
        ScoredChapter(), replace(table, scores=pa.Table.from_pandas(rows, schema=SCORES, preserve_index=False))
    )
    assert [(row[1], row[3]) for row in result.lost.rows] == [("ill_conditioned", "1")]
    assert sorted((row[1], row[3]) for row in result.outcomes.rows) == [("ill_conditioned", "1"), ("tie", "1")]
    assert "row 2" in result.lost.rows[0][4] or "(row 2)" in result.lost.rows[0][4]
