"""How many certificates counterexamples contradict, and what that says of the others."""

from __future__ import annotations

from collections.abc import Iterable

from brittle.analysis.text import by_number
from brittle.estimate import Status
from brittle.store.columns import Column


def refuted_points(columns: Iterable[Column]) -> int:
    """Points with a score whose certificate was refuted.

    Args:
        columns: of a run.
    """
    return len(
        {
            point
            for one in columns
            for point, status in zip(one.rows.index.tolist(), one.rows["status"].tolist(), strict=True)
            if status == Status.REFUTED.slug
        }
    )


def refuted_text(points: int) -> str:
    """What it means that the certificates of so many points were refuted; empty where none was."""
    if not points:
        return ""
    return (
        f"{by_number(points, 'The certificate of 1 point is', f'The certificates of {points:,} points are')} "
        "contradicted by what the attack found: another prediction, nearer than the radius that was certified. So the "
        "model computes something else than its layers say, or the proof is wrong. Nothing counts as certified at "
        f"{by_number(points, 'this point', 'these points')}, and no other certificate of the run should be relied on."
    )
