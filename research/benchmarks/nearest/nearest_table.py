"""Markdown tables of the rows, and a figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from nearest_rows import EFFORTS, OURS, RIVALS

NEARER = 0.01
MANY = 0.02
"""Share of points: a network counts where one rival is nearer at more."""

ROUNDING = 1e-4
"""Share beyond which `thorough` counts as farther than `standard`."""

KEYS = ["network", "norm", "effort", "method"]

Groups = dict[tuple[str, ...], Any]
"""Rows of each network, norm, effort and method, in the order of the points."""


def read_rows(out: Path) -> pd.DataFrame:
    """Read all stored rows, with the smallest distance of any of them as `known`."""
    frame = pd.concat([pd.read_parquet(path) for path in sorted(out.glob("*.parquet"))], ignore_index=True)
    counts: Any = frame.groupby(KEYS).size()
    for (network, norm), several in counts.groupby(level=["network", "norm"]):
        if several.min() < several.max():
            raise SystemExit(
                f"{network} in {norm} has rows for {several.min()} and for {several.max()} points, which cannot be "
                f"compared: run all with one --points, into an empty folder"
            )
    return frame.assign(known=frame.groupby(["network", "norm", "point"])["distance"].transform("min"))


def optimality(distance: np.ndarray, nearest: np.ndarray) -> float:
    """Return the area above the curve of robust accuracy against epsilon, as a share of that of the nearest inputs.

    Both areas end at the greatest distance `e` in `nearest`, where the best curve reaches zero:
    `mean(e - min(d, e)) / mean(e - nearest)`, which is 1 exactly where every distance is the nearest.
    """
    end = nearest.max()
    best = (end - nearest).mean()
    return float((end - np.minimum(distance, end)).mean() / best) if best > 0 else float(np.mean(distance <= nearest))


def share_nearer(rival: np.ndarray, ours: np.ndarray) -> float:
    """Return the share of points where the rival is nearer by more than `NEARER`."""
    return float(np.mean(rival < ours * (1 - NEARER)))


def grouped(frame: pd.DataFrame) -> Groups:
    """Group the rows by network, norm, effort and method, sorted by norm and effort."""
    groups: Any = frame.sort_values("point").groupby(KEYS)
    return dict(sorted(groups, key=lambda item: (item[0][1], EFFORTS.index(item[0][2]), item[0][0])))


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each network, norm and effort of ours."""
    groups = grouped(frame)
    return pd.DataFrame([line(groups, *key[:3]) for key in groups if key[3] == OURS])


def line(groups: Groups, network: str, norm: str, effort: str) -> dict[str, object]:
    """Compare our search with every rival on equal passes, and with the nearest distance of all."""
    ours = groups[network, norm, effort, OURS]
    our_distance, nearest = distances(ours), ours["known"].to_numpy()
    keys = {name: (network, norm, effort, name) for name in RIVALS}
    rivals = {name: distances(groups[key]) for name, key in keys.items() if key in groups}
    nearer = {name: share_nearer(distance, our_distance) for name, distance in rivals.items()}
    worst = max(nearer, key=lambda name: nearer[name], default="")
    together = np.min([np.full(len(our_distance), np.inf), *rivals.values()], axis=0)
    return {
        "network": network,
        "norm": norm,
        "effort": effort,
        "points": len(our_distance),
        "passes": float(ours["passes"].mean()),
        "mean distance": float(our_distance.mean()),
        "rival nearer": nearer.get(worst, np.nan),
        "which": worst if nearer.get(worst) else "",
        "any rival nearer": share_nearer(together, our_distance),
        "farthest from rivals": float((our_distance / together).max()) if rivals else np.nan,
        "optimality": optimality(our_distance, nearest),
        "known / found": float(np.mean(nearest / our_distance)),
        "within 1%": float(np.mean(nearest >= our_distance * (1 - NEARER))),
        "worst": float((our_distance / nearest).max() - 1),
        "farther than standard": farther(groups, network, norm, effort),
        "masked": int(ours["masked"].sum()),
        "seconds": seconds_of(groups, (network, norm, effort, OURS)),
        **{f"seconds of {name}": seconds_of(groups, key) for name, key in keys.items() if key in groups},
    }


def against_rivals(table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of a `summary` that compare rivals on equal passes, with the seconds of each."""
    columns = [
        "network",
        "norm",
        "effort",
        "points",
        "passes",
        "rival nearer",
        "which",
        "farthest from rivals",
        "seconds",
    ]
    return pd.DataFrame(table[[*columns, *(name for name in table.columns if name.startswith("seconds of "))]])


def overall(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each norm and effort, over the networks of a `summary`."""
    groups: Any = table.groupby(["norm", "effort"], sort=False)
    lines = []
    for (norm, effort), rows in groups:
        weights = rows["points"] / rows["points"].sum()
        counted = [int(count) for count in rows["farther than standard"] if count]
        lines.append(
            {
                "norm": norm,
                "effort": effort,
                "networks": len(rows),
                "points": int(rows["points"].sum()),
                "passes": float((weights * rows["passes"]).sum()),
                "best rival nearer, mean": float(rows["rival nearer"].mean()),
                "most": float(rows["rival nearer"].max()),
                "on": rows["network"].iloc[int(rows["rival nearer"].fillna(0).argmax())],
                "networks above 2%": int((rows["rival nearer"] > MANY).sum()),
                "optimality": float(rows["optimality"].mean()),
                "least": float(rows["optimality"].min()),
                "within 1%": float((weights * rows["within 1%"]).sum()),
                "farther than standard": sum(counted) if counted else "",
                "masked": int(rows["masked"].sum()),
            }
        )
    return pd.DataFrame(lines)


def seconds_of(groups: Groups, key: tuple[str, ...]) -> float:
    """Return the seconds of the processor for all points together."""
    return float(groups[key]["seconds"].iloc[0])


def distances(rows: Any) -> np.ndarray:
    """Return the distance of every point."""
    return rows["distance"].to_numpy()


def farther(groups: Groups, network: str, norm: str, effort: str) -> str:
    """Count the points where `thorough` ends farther away than `standard`."""
    standard = groups.get((network, norm, "standard", OURS))
    if effort != "thorough" or standard is None:
        return ""
    return str(int(np.sum(distances(groups[network, norm, effort, OURS]) > distances(standard) * (1 + ROUNDING))))


def by_method(frame: pd.DataFrame) -> pd.DataFrame:
    """Return means over the networks on which a method ran at an effort, best first."""
    cases: dict[tuple[str, str, str], list[Any]] = {}
    for (_, norm, effort, method), rows in grouped(frame).items():
        cases.setdefault((norm, effort, method), []).append(rows)
    lines = [
        {
            "norm": norm,
            "effort": effort,
            "method": method,
            "networks": len(cases_of),
            "passes": mean_of(cases_of, lambda rows: rows["passes"].mean()),
            "optimality": mean_of(cases_of, lambda rows: optimality(distances(rows), rows["known"].to_numpy())),
            "known / found": mean_of(cases_of, lambda rows: (rows["known"] / rows["distance"]).mean()),
            "within 1%": mean_of(cases_of, lambda rows: (rows["known"] >= rows["distance"] * (1 - NEARER)).mean()),
            "found": mean_of(cases_of, lambda rows: np.isfinite(rows["distance"]).mean()),
            "seconds": mean_of(cases_of, lambda rows: rows["seconds"].iloc[0]),
        }
        for (norm, effort, method), cases_of in cases.items()
    ]
    lines.sort(key=lambda line: (line["norm"], EFFORTS.index(line["effort"]), -line["optimality"]))
    return pd.DataFrame(lines)


def mean_of(cases: Sequence[Any], value: Any) -> float:
    """Return the mean of a number over the cases."""
    return float(np.mean([value(rows) for rows in cases]))


def markdown(frame: pd.DataFrame, shares: Sequence[str]) -> str:
    """Return a table of Markdown, with the columns `shares` in percent."""
    names = list(frame.columns)
    lines = [names, ["---"] * len(names)]
    lines += [[cell(value, name in shares) for name, value in zip(names, row, strict=True)] for row in frame.to_numpy()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(value: object, share: bool) -> str:
    """Format a number to four digits."""
    if not isinstance(value, float):
        return str(value)
    if np.isnan(value):
        return ""
    if share:
        return f"{100 * value:.3g}%"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def figure(frame: pd.DataFrame) -> alt.FacetChart:
    """Draw optimality against passes, one panel per norm."""
    lines = (
        alt.Chart(by_method(frame))
        .mark_line(point=True)
        .encode(
            x=alt.X("passes:Q", scale=alt.Scale(type="log"), title="passes per point"),
            y=alt.Y("optimality:Q", scale=alt.Scale(zero=False), title="optimality, mean over networks"),
            color=alt.Color("method:N", scale=alt.Scale(scheme="category10")),
        )
    )
    return lines.properties(width=330, height=240).facet(column=alt.Column("norm:N", title=None))
