"""Whether the Laplacian tells which predictions flip."""

from __future__ import annotations

import math

import pandas as pd

from brittle.analysis.label_flips import label_flips
from brittle.report.chapters.expected_change.result import LabelFlips
from brittle.report.contents import Contents, spread
from brittle.report.parts import Grid, Number
from brittle.report.wording import MISSING, p_value, percent_interval, plural, reach, signed, small_percent
from brittle.store.columns import Row
from brittle.store.settings import Setting

CONFIDENT, GROUP = 0.8, 50
"""The smallest probability of a confident prediction, and the points in each of the two groups at most."""

SURE = 0.01
"""A p-value below which chance alone hardly explains a difference."""

NAMES = {
    "lowest": "lowest Laplacian",
    "highest": "highest Laplacian",
    "laplacian_flipped": "flipped at least once",
    "laplacian_never": "never flipped",
}
"""The groups of `brittle.analysis.label_flips` as the figures name them."""

_GROUPS = ["setting", "order", "group", "value", "low", "high"]
_BY_LAPLACIAN = ("Noise", "Confident points", "In either group", "Lowest Laplacian flips", "Highest flips", "p")
_BY_FLIPS = ("Noise", "Flipped at least once", "Never flipped", "Mean L if flipped", "Mean L if never", "p")


def flips_number(contents: Contents, chosen: Setting | None) -> Number | None:
    """The flips of the two groups, to be set large; None without groups."""
    rows = _rows(contents)
    row = rows.get(_main(rows, chosen))
    if row is None or not row["group"]:
        return None
    lowest, highest = (f"{small_percent(row[name])}" for name in ("lowest", "highest"))
    return Number(
        f"Flips by Laplacian, lowest against highest, {contents.noise_text(_main(rows, chosen))}",
        f"{lowest} vs {highest}",
        f"{_shares(row, 'lowest')} against {_shares(row, 'highest')}. {row['group']:,} predictions each, all made with "
        f"a probability of at least {CONFIDENT:g}.",
    )


def summarize_flips(contents: Contents, chosen: Setting | None) -> LabelFlips:
    """The section on flips; `chosen` is the noise setting that the chapter speaks of."""
    rows = _rows(contents)
    grids = _grids(contents, rows)
    if not rows:
        none = pd.DataFrame(columns=_GROUPS)
        return LabelFlips(none, none, *grids, "This run lacks a Laplacian or flips (monte_carlo) to compare.", "")
    drawn = spread(tuple(rows), chosen)
    shares, means = (
        [row for order, setting in enumerate(drawn) for row in _pair(contents, setting, rows[setting], order, names)]
        for names in (("lowest", "highest"), ("laplacian_flipped", "laplacian_never"))
    )
    return LabelFlips(
        shares=pd.DataFrame(shares, columns=_GROUPS),
        means=pd.DataFrame(means, columns=_GROUPS),
        by_laplacian=grids[0],
        by_flips=grids[1],
        conclusion=_conclusion(contents, rows, chosen),
        note=_note(rows, len(drawn)),
    )


def _rows(contents: Contents) -> dict[Setting, Row]:
    frame = label_flips(contents, CONFIDENT, GROUP)
    return {Setting(row["sigma"], row["noise"]): row for row in frame.to_dict("records")}


def _main(rows: dict[Setting, Row], chosen: Setting | None) -> Setting:
    """The setting to speak of: the chosen one if either group flips there, else the noisiest."""
    noisiest = next(reversed(rows), None) or Setting(None, "")
    if chosen is None or chosen not in rows:
        return noisiest
    return chosen if max(rows[chosen]["lowest"], rows[chosen]["highest"]) > 0.0 else noisiest


def _pair(contents: Contents, setting: Setting, row: Row, order: int, names: tuple[str, str]) -> list[Row]:
    """The two groups of one setting that have a number."""
    return [
        {"setting": contents.noise_text(setting), "order": order, "group": NAMES[name]}
        | {"value": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"]}
        for name in names
        if not math.isnan(row[name])
    ]


def _grids(contents: Contents, rows: dict[Setting, Row]) -> tuple[Grid, Grid]:
    numeric = (False, *[True] * 5)
    by_laplacian = tuple(
        (
            contents.noise_text(setting),
            f"{row['points']:,}",
            f"{row['group']:,}",
            _share_cell(row, "lowest"),
            _share_cell(row, "highest"),
            p_value(row["p_flips"]),
        )
        for setting, row in rows.items()
        if row["group"]
    )
    by_flips = tuple(
        (
            contents.noise_text(setting),
            f"{row['flipped']:,}",
            f"{row['never_flipped']:,}",
            _mean_cell(row, "laplacian_flipped"),
            _mean_cell(row, "laplacian_never"),
            p_value(row["p_laplacian"]),
        )
        for setting, row in rows.items()
    )
    return Grid(_BY_LAPLACIAN, numeric, by_laplacian), Grid(_BY_FLIPS, numeric, by_flips)


def _share_cell(row: Row, name: str) -> str:
    return f"{small_percent(row[name])}\n{_shares(row, name)}"


def _shares(row: Row, name: str) -> str:
    return percent_interval(row[f"{name}_low"], row[f"{name}_high"])


def _mean_cell(row: Row, name: str) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return MISSING if math.isnan(row[name]) else f"{signed(row[name], 3)}\n{reach(low, high, 3)}"


def _conclusion(contents: Contents, rows: dict[Setting, Row], chosen: Setting | None) -> str:
    main = _main(rows, chosen)
    row = rows[main]
    if isinstance(row["reason"], str):
        return row["reason"]
    return (
        f"At {contents.noise_text(main)}, the {row['group']:,} confident predictions with the lowest Laplacian flip in "
        f"{small_percent(row['lowest'])} of their noisy copies, the {row['group']:,} with the highest in "
        f"{small_percent(row['highest'])}: {_verdict(row)}."
    )


def _verdict(row: Row) -> str:
    if row["lowest"] == row["highest"] == 0.0:
        return "confident predictions of either kind do not flip there, so no difference can be found"
    if row["p_flips"] < SURE:
        return "a low Laplacian tells which confident predictions noise unsettles"
    return "these points do not show that a low Laplacian tells which confident predictions noise unsettles"


def _note(rows: dict[Setting, Row], drawn: int) -> str:
    dropped, left = max(row["dropped"] for row in rows.values()), len(rows) - drawn
    grouped = any(row["group"] for row in rows.values())
    return " ".join(
        part
        for part in (
            "First, the mean share of noisy copies that lose the predicted class, of confident predictions by their "
            "Laplacian; then, the mean Laplacian of all points that flipped at least once and of those that never "
            "did, on a scale that is linear around 0 and logarithmic further out."
            if grouped
            else "The mean Laplacian of points that flipped at least once and of those that never did, on a scale that "
            "is linear around 0 and logarithmic further out.",
            "Bars are intervals. Who ever flips depends on the number of draws.",
            f"{plural(dropped, 'point')} without one of the three numbers left out of the groups."
            if dropped and grouped
            else "",
            f"{plural(left, 'further noise level')} in the tables only." if left else "",
        )
        if part
    )
