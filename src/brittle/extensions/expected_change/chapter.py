"""The expected change: which way noise moves the predicted probability, and whether the Laplacian tells."""

import math
from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from brittle.analysis.mean_interval import MeanInterval, ranged_interval
from brittle.extensions.expected_change import predicted_change
from brittle.extensions.expected_change.predicted_change import label_flips
from brittle.extensions.report import charts, wording
from brittle.extensions.report.chapter import Chapter, Grid, Number
from brittle.extensions.report.contents import Contents, decided_signs
from brittle.extensions.report.figure import Figure
from brittle.extensions.report.wording import MISSING, fixed, interval, plural, reach, signed, small_percent, with_reach
from brittle.store.columns import Column, Row
from brittle.store.settings import Setting

SURE = 0.01  # a p-value below which chance alone hardly explains a difference
GOOD = 0.8  # share of equal signs from which on the Laplacian has the sign
NEAR = (0.8, 1.25)  # ratios of the sampled change to the predicted one that count as the same size

SAME, UNDECIDED, OTHER, KINK = "same sign", "sign not decided by sampling", "other sign", "kink of the network"

KINDS = {
    SAME: (charts.ACCENT, "circle"),
    UNDECIDED: (charts.OPEN, "circle"),
    OTHER: (charts.FRAGILE, "triangle-up"),
    KINK: ("#af3b8f", "diamond"),
}
"""Colour and shape of each kind of point, in the order of the legend."""

GROUPS = ("lowest", "highest")  # the groups of `label_flips`, by their Laplacian


def summarize(contents: Contents) -> dict[str, Any] | None:
    """Whether the Laplacian predicts the sampled changes and the flips; None where neither of the first has a value."""
    if contents.laplacian is None and not contents.changes:
        return None
    setting = contents.change_setting
    numbers = [] if setting is None else [_mean_number(contents, setting)]
    numbers += [] if contents.laplacian is None else [_laplacian_number(contents, contents.laplacian)]
    level = "" if setting is None else _setting_text(contents, setting)
    return {"setting": level, "numbers": numbers, "prediction": _prediction(contents), "flips": _flips(contents)}


CHAPTER = Chapter("expected-change", "Expected change", summarize, "part")


def _setting_text(contents: Contents, setting: Setting) -> str:
    """Return the noise setting that the chapter speaks of, and why that one."""
    column = contents.changes[setting]
    name = f"{contents.noise_text(setting)}{contents.radius_text(setting)}"
    if len(contents.changes) == 1:
        return f"The change was sampled at {name}, with {plural(column.draws or 0, 'draw')} per point."
    count = f"{sum(decided_signs(column)):,} of {column.value.count():,}"
    return (
        f"Where one noise level is needed, it is {name}: there sampling decides for most points ({count}) whether "
        "their probability rises or falls; of levels that tie, the noisiest."
    )


def _mean_change(column: Column, confidence: float) -> MeanInterval:
    """Mean over points with its interval; a change of a probability lies between -1 and 1."""
    values = column.value.to_numpy(dtype=np.float64).clip(-1.0, 1.0)  # a table may come from anybody
    return ranged_interval(values, -1.0, 1.0, confidence)


def _mean_number(contents: Contents, setting: Setting) -> Number:
    column = contents.changes[setting]
    mean, low, high = _mean_change(column, contents.confidence)
    points = column.value.count()
    falls, rises = (small_percent(count / points) for count in decided_signs(column))
    note = f"{reach(low, high)}. Sampling finds a fall at {falls} of {plural(points, 'point')}, a rise at {rises}."
    return Number(f"Mean change of the predicted probability, {contents.noise_text(setting)}", signed(mean), note)


def _laplacian_number(contents: Contents, laplacian: Column) -> Number:
    values = laplacian.value.dropna()
    if infinite := int(np.isinf(values).sum()):
        return Number("Mean |Laplacian|", "∞", f"{plural(infinite, 'point')} without a finite one.")
    mean, low, high = predicted_change.mean_absolute(contents, laplacian)
    note = (
        f"{reach(low, high, 3)}, per squared pixel unit. It is negative for "
        f"{small_percent(float((values < 0.0).mean()))} of {plural(len(values), 'point')}."
    )
    return Number("Mean |Laplacian|", wording.short(mean, 3), note)


def _prediction(contents: Contents) -> dict[str, Any]:
    frame = predicted_change.expected_change_table(contents)
    rows = {Setting(row["sigma"], row["noise"]): row for row in frame.to_dict("records")}
    if contents.laplacian is None or not rows:
        gap = "Laplacian" if contents.laplacian is None else "sampled change (probability_change)"
        return {"conclusion": f"This run holds no {gap}, so there is nothing to compare.", "figure": None, "grid": None}
    chosen_setting = contents.change_setting or next(iter(rows))
    conclusion = f"Under noise of {contents.noise_text(chosen_setting)}, {_reading(rows[chosen_setting])}"
    header = ("Noise", "Points", "Same sign", "Spearman", "Slope", "Median ratio", "Mean sampled change")
    words = f"Sampled mean change against the change that the Laplacian predicts, at one noise level. {conclusion}"
    return {
        "conclusion": conclusion,
        "figure": Figure(change_chart, _points(contents, chosen_setting), words),
        "grid": Grid(header, [_prediction_row(contents, setting, row) for setting, row in rows.items()]),
        "kinks": max(row["kinks"] for row in rows.values()),
        "dropped": max(row["dropped"] for row in rows.values()),
        "clipped": any(row["clipped"] for row in rows.values()),
    }


def _points(contents: Contents, setting: Setting) -> pd.DataFrame:
    """Both changes of the points at one setting, with the interval of the sampled one and the kind of the point."""
    points = predicted_change.expected_change_points(contents, setting)
    decided = (points["sampled_low"] > 0.0) | (points["sampled_high"] < 0.0)
    same = np.sign(points["predicted_change"]) == np.sign(points["sampled_change"])
    frame = pd.DataFrame(
        {
            "predicted": points["predicted_change"],
            "sampled": points["sampled_change"],
            "low": points["sampled_low"],
            "high": points["sampled_high"],
            "kind": np.select([points["kink"], ~decided, same], [KINK, UNDECIDED, SAME], OTHER),
        }
    )
    is_finite = np.isfinite(frame[["predicted", "sampled"]]).all(axis=1)
    frame = frame.loc[is_finite].reset_index(drop=True)
    return frame.iloc[:: max(-(-len(frame) // charts.MAX_DOTS), 1)]


def change_chart(frame: pd.DataFrame, width: int = charts.NARROW) -> Any:
    """Return sampled change against the predicted one at one noise setting; the dashed line is the theory."""
    side = min(width - 66, 420)
    kinds = [kind for kind in KINDS if kind in set(frame["kind"])]
    scale, ticks = charts.symlog([*frame["predicted"], *frame["sampled"]])
    x = alt.X("predicted:Q", title="predicted change", scale=scale, axis=charts.symlog_axis(ticks))
    axis = charts.symlog_axis(ticks, minExtent=44)
    y = {"title": "sampled mean change, higher is safer", "scale": scale, "axis": axis}
    rank = {kind: place for place, kind in enumerate((UNDECIDED, *KINDS))}
    sorted_rows = frame.assign(rank=[rank[kind] for kind in frame["kind"]]).sort_values("rank", kind="stable")
    key = charts.legend(1, labelLimit=220)
    colours, shapes = (alt.Scale(domain=kinds, range=[KINDS[kind][part] for kind in kinds]) for part in (0, 1))
    place = alt.Chart(sorted_rows).encode(x=x, color=alt.Color("kind:N", scale=colours, legend=key, sort=None))
    ends = alt.Chart(pd.DataFrame({"predicted": scale["domain"], "sampled": scale["domain"]}))
    line = ends.mark_line(stroke=charts.MUTED, strokeDash=[4, 3], strokeWidth=1).encode(x=x, y=alt.Y("sampled:Q", **y))
    thin = place.mark_rule(strokeWidth=0.75, opacity=0.6).encode(y=alt.Y("low:Q", **y), y2="high:Q")
    marks = place.mark_point(filled=True, size=16, opacity=1).encode(
        y=alt.Y("sampled:Q", **y), shape=alt.Shape("kind:N", scale=shapes, legend=key, sort=None)
    )
    return alt.layer(line, thin, marks).properties(width=side, height=side)


def _prediction_row(contents: Contents, setting: Setting, row: Row) -> tuple[str, ...]:
    under = contents.radius_text(setting).strip(" ()")
    share = wording.percent_interval(row["agreement_low"], row["agreement_high"])
    order = f"{fixed(row['spearman'])}\n{interval(row['spearman_low'], row['spearman_high'])}".replace("-", "−")
    return (
        f"{contents.noise_text(setting)}{' *' if row['clipped'] else ''}" + (f"\n{under}" if under else ""),
        f"{row['points']:,}",
        f"{small_percent(row['agreement'])}\n{share} of {row['decided']:,}" if row["decided"] else MISSING,
        MISSING if math.isnan(row["spearman"]) else order,
        with_reach(row["slope"], row["slope_low"], row["slope_high"], 3),
        with_reach(row["ratio"], row["ratio_low"], row["ratio_high"], 3),
        with_reach(*_mean_change(contents.changes[setting], contents.confidence)),
    )


def _reading(row: Row) -> str:
    """One noise setting in words: how often the Laplacian has the sign, the size of the changes, and what to trust."""
    if isinstance(row["reason"], str):
        return row["reason"]
    if not row["decided"]:
        return (
            "sampling decides the sign of the change at no point. More draws or more noise would tell whether the "
            "Laplacian predicts it."
        )
    size = "" if math.isnan(row["ratio"]) else f"; the typical change is {signed(row['ratio'])} times the predicted"
    return (
        f"the Laplacian has the sign of the sampled change for {small_percent(row['agreement'])} of the "
        f"{plural(row['decided'], 'point')} where sampling decides it{size}. {_advice(row)}"
    )


def _advice(row: Row) -> str:
    sign = _within(row, "agreement", (GOOD, math.inf))
    sizes = [_within(row, name, NEAR) for name in ("ratio", "slope")]
    if sign is False:
        return "Trust the sampled change here, not the Laplacian."
    if sign is None:
        return "These points do not decide whether the Laplacian can be trusted here."
    if False in sizes:
        return "Read the direction from the Laplacian, the size from sampling."
    if sizes[0] is None:
        return "The direction can be read from the Laplacian; these points do not decide whether the size can."
    return "Here the Laplacian can stand in for sampling."


def _within(row: Row, name: str, good: tuple[float, float]) -> bool | None:
    """Whether the interval of `name` lies within `good`, outside of it, or neither."""
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    if low >= good[0] and high <= good[1]:
        return True
    return False if high < good[0] or low > good[1] else None


def _flips(contents: Contents) -> dict[str, Any]:
    """Flips of the confident predictions with the lowest and with the highest Laplacian."""
    rows = {Setting(row["sigma"], row["noise"]): row for row in label_flips(contents).to_dict("records")}
    if not rows:
        conclusion = "This run lacks a Laplacian or a p_robust by as many copies of each point (monte_carlo)."
        return {"conclusion": conclusion, "grid": None}
    chosen = contents.change_setting
    # The chosen setting speaks if either group flips there, else the noisiest.
    setting = next(reversed(rows))
    if chosen is not None and chosen in rows and max(rows[chosen]["lowest"], rows[chosen]["highest"]) > 0.0:
        setting = chosen
    name, row = contents.noise_text(setting), _complement(rows[setting])
    dropped = max(row["dropped"] for row in rows.values())
    return {"conclusion": _flips_conclusion(name, row), "grid": _by_laplacian(contents, rows), "dropped": dropped}


def _flips_conclusion(name: str, row: Row) -> str:
    if isinstance(row["reason"], str):
        return row["reason"]
    if row["lowest"] == row["highest"] == 1.0:
        verdict = "all copies of either kind keep it there, so no difference can be found"
    else:
        open_ = "" if row["p_flips"] < SURE else "these points do not show that "
        verdict = f"{open_}a low Laplacian tells which confident predictions noise unsettles"
    return (
        f"Under noise of {name}, the mean p_robust of the {row['group']:,} confident predictions with the lowest "
        f"Laplacian is {fixed(row['lowest'])}, that of the {row['group']:,} with the highest {fixed(row['highest'])}: "
        f"{verdict}."
    )


def _complement(row: Row) -> Row:
    """Return a row of `label_flips` with shares of noisy copies that keep the prediction, not flip it."""
    ends = (("", ""), ("_low", "_high"), ("_high", "_low"))
    return row | {f"{group}{end}": 1.0 - row[f"{group}{opposite}"] for group in GROUPS for end, opposite in ends}


def _by_laplacian(contents: Contents, rows: Mapping[Setting, Row]) -> Grid:
    cells = [
        (
            contents.noise_text(setting),
            f"{row['points']:,}",
            f"{row['group']:,}",
            *(f"{fixed(row[group])}\n{interval(row[f'{group}_low'], row[f'{group}_high'])}" for group in GROUPS),
            wording.p_value(row["p_flips"]),
        )
        for setting, row in ((setting, _complement(row)) for setting, row in rows.items())
        if row["group"]
    ]
    header = ("Noise", "Confident points", "In either group", "p_robust, lowest Laplacian", "p_robust, highest", "p")
    return Grid(header, cells)
