"""What the rows say: Markdown tables, and a figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd
from nearest_rows import EFFORTS, OURS, RIVALS

NEARER = 0.01
ROUNDING = 1e-4
"""`thorough` counts as farther than `standard` beyond this share."""

KEYS = ["network", "norm", "effort", "method"]


def read_rows(out: Path) -> pd.DataFrame:
    """All rows that were kept, with the nearest distance known by any of them, `known`."""
    frame = pd.concat([pd.read_parquet(path) for path in sorted(out.glob("*.parquet"))], ignore_index=True)
    return frame.assign(known=frame.groupby(["network", "norm", "point"])["distance"].transform("min"))


def optimality(distance: np.ndarray, known: np.ndarray) -> float:
    """The area above the curve of robust accuracy against epsilon, as a share of that of the nearest known inputs.

    Both areas end at the greatest known distance `e`, where the best curve reaches zero:
    `mean(e - min(d, e)) / mean(e - known)`, which is 1 exactly where every distance is the nearest known.
    """
    end = known.max()
    best = (end - known).mean()
    return float((end - np.minimum(distance, end)).mean() / best) if best > 0 else float(np.mean(distance <= known))


def share_nearer(rival: np.ndarray, ours: np.ndarray) -> float:
    """The share of points where the rival is nearer by more than `NEARER`."""
    return float(np.mean(rival < ours * (1 - NEARER)))


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """One row for each network, norm and effort of ours."""
    table = {key: group.set_index("point").sort_index() for key, group in frame.groupby(KEYS)}
    lines = []
    for (network, norm, effort, method), ours in table.items():
        if method != OURS:
            continue
        found, known = ours["distance"].to_numpy(), ours["known"].to_numpy()
        rivals = {
            name: table[network, norm, effort, name]["distance"].to_numpy()
            for name in RIVALS
            if (network, norm, effort, name) in table
        }
        nearer = {name: share_nearer(distance, found) for name, distance in rivals.items()}
        worst = max(nearer, key=lambda name: nearer[name]) if nearer else "-"
        together = np.min(list(rivals.values()), axis=0) if rivals else np.full(len(found), np.inf)
        line = {
            "network": network,
            "norm": norm,
            "effort": effort,
            "points": len(found),
            "passes": ours["passes"].mean(),
            "mean distance": found.mean(),
            "rival nearer": nearer.get(worst, np.nan),
            "which": worst,
            "any rival nearer": share_nearer(together, found),
            "optimality": optimality(found, known),
            "known / found": float(np.mean(known / found)),
            "within 1%": float(np.mean(known >= found * (1 - NEARER))),
            "worst": float((found / known).max() - 1),
            "farther than standard": farther(table, network, norm, effort, found),
            "masked": int(ours["masked"].sum()),
            "seconds": float(ours["seconds"].iloc[0]),
        }
        lines.append(line)
    order = {effort: place for place, effort in enumerate(EFFORTS)}
    return pd.DataFrame(lines).sort_values(
        ["norm", "effort", "network"],
        key=lambda column: column.map(order).fillna(column) if column.name == "effort" else column,
    )


def farther(table: dict[tuple[str, ...], pd.DataFrame], network: str, norm: str, effort: str, found: np.ndarray) -> str:
    """At how many points `thorough` ends farther away than `standard`."""
    standard = table.get((network, norm, "standard", OURS))
    if effort != "thorough" or standard is None:
        return "-"
    return str(int((found > standard["distance"].to_numpy() * (1 + ROUNDING)).sum()))


def by_method(frame: pd.DataFrame) -> pd.DataFrame:
    """Means over the networks on which a method ran at an effort: passes, optimality, what is within 1%."""
    lines = [
        {
            **dict(zip(KEYS, key, strict=True)),
            "passes": group["passes"].mean(),
            "optimality": optimality(group["distance"].to_numpy(), group["known"].to_numpy()),
            "known / found": float((group["known"] / group["distance"]).mean()),
            "within 1%": float((group["known"] >= group["distance"] * (1 - NEARER)).mean()),
            "found": float(np.isfinite(group["distance"]).mean()),
            "seconds": group["seconds"].iloc[0],
        }
        for key, group in frame.groupby(KEYS)
    ]
    means = pd.DataFrame(lines).groupby(["norm", "effort", "method"], as_index=False)
    joined = means.mean(numeric_only=True).assign(networks=means.size()["size"])
    rank = joined["effort"].map({effort: place for place, effort in enumerate(EFFORTS)})
    return (
        joined.assign(rank=rank)
        .sort_values(["norm", "rank", "optimality"], ascending=[True, True, False])
        .drop(columns="rank")
    )


def markdown(frame: pd.DataFrame, shares: Sequence[str]) -> str:
    """A table of Markdown; the columns `shares` in percent."""
    lines = [list(frame.columns), ["---"] * len(frame.columns)]
    for _, row in frame.iterrows():
        lines.append([cell(row[name], name in shares) for name in frame.columns])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(value: object, share: bool) -> str:
    """Numbers to four digits."""
    if not isinstance(value, float):
        return str(value)
    if share:
        return f"{100 * value:.3g}%"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def figure(frame: pd.DataFrame) -> alt.FacetChart:
    """Optimality against passes, one panel a norm."""
    shown = by_method(frame).query("norm in @NORMS")
    lines = (
        alt.Chart(shown)
        .mark_line(point=True)
        .encode(
            x=alt.X("passes:Q", scale=alt.Scale(type="log"), title="passes per point"),
            y=alt.Y("optimality:Q", scale=alt.Scale(zero=False), title="optimality, mean over networks"),
            color=alt.Color("method:N", scale=alt.Scale(scheme="category10")),
        )
    )
    return lines.properties(width=330, height=240).facet(column=alt.Column("norm:N", title=None))
