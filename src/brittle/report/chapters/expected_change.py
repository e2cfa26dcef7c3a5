"""The expected change: which way noise moves the predicted probability, and whether the Laplacian tells."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from brittle.analysis.expected_change import expected_change_points, expected_change_table
from brittle.analysis.label_flips import CONFIDENCE, label_flips, mean_absolute
from brittle.analysis.mean_interval import MeanInterval, ranged_interval
from brittle.report import charts
from brittle.report.chapter import Chapter, Grid, Number
from brittle.report.contents import Contents, decided_signs, spread
from brittle.report.figure import Figure, panels
from brittle.report.images import embedded
from brittle.report.wording import (
    MISSING,
    fixed,
    interval,
    p_value,
    percent_interval,
    plural,
    reach,
    short,
    signed,
    small_percent,
    with_reach,
)
from brittle.store.columns import Column, Row
from brittle.store.settings import Setting

CONFIDENT, GROUP = 0.8, 50
"""The smallest probability of a confident prediction, and the points in each of the two groups at most."""

SURE = 0.01
"""A p-value below which chance alone hardly explains a difference."""

GOOD = 0.8
"""Share of equal signs from which on the Laplacian has the sign."""

NEAR = (0.8, 1.25)
"""Ratios of the sampled change to the predicted one that count as the same size."""

DROPS_SHOWN = 12
"""Points in the gallery of the largest drops."""

SAME, UNDECIDED, OTHER, KINK = "same sign", "sign not decided by sampling", "other sign", "kink of the network"

KINDS = {
    SAME: (charts.ACCENT, "circle"),
    UNDECIDED: (charts.OPEN, "circle"),
    OTHER: (charts.FRAGILE, "triangle-up"),
    KINK: ("#af3b8f", "diamond"),
}
"""Colour and shape of each kind of point, in the order of the legend."""

GROUPS = {"lowest": ("lowest Laplacian", charts.FRAGILE), "highest": ("highest Laplacian", charts.ACCENT)}
"""Name and colour of the groups of `label_flips`; what is expected to flip has the colour of what breaks."""


def summarize(contents: Contents) -> dict[str, Any] | None:
    """Whether the Laplacian predicts the sampled changes and the flips; None where neither of the first has a value."""
    if contents.laplacian is None and not contents.changes:
        return None
    flips = _flips(contents)
    numbers = (_mean_number(contents), _laplacian_number(contents), flips["number"])
    return {
        "setting": _setting_text(contents),
        "numbers": [number for number in numbers if number is not None],
        "prediction": _prediction(contents),
        "flips": flips,
        "drops": _drops(contents),
    }


CHAPTER = Chapter("expected-change", "Expected change", summarize, "part")


def _setting_text(contents: Contents) -> str:
    """The noise setting that the chapter speaks of, and why that one; empty where nothing was sampled."""
    if contents.change_setting is None:
        return ""
    column = contents.changes[contents.change_setting]
    name = f"{contents.noise_text(contents.change_setting)}{contents.radius_text(contents.change_setting)}"
    if len(contents.changes) == 1:
        return f"The change was sampled at {name}, with {plural(column.draws or 0, 'draw')} per point."
    count = f"{sum(decided_signs(column)):,} of {int(column.value.notna().sum()):,}"
    return (
        f"Where one noise level is needed, it is {name}: there sampling decides for most points ({count}) whether "
        "their probability rises or falls; of levels that tie, the noisiest."
    )


def _mean_change(column: Column, confidence: float) -> MeanInterval:
    """Mean over points with its interval; a change of a probability lies between -1 and 1."""
    values = column.value.to_numpy(dtype=np.float64).clip(-1.0, 1.0)  # a table may come from anybody
    return ranged_interval(values, -1.0, 1.0, confidence)


def _mean_number(contents: Contents) -> Number | None:
    if contents.change_setting is None:
        return None
    column = contents.changes[contents.change_setting]
    mean, low, high = _mean_change(column, contents.confidence)
    points = int(column.value.notna().sum())
    falls, rises = (small_percent(count / points) for count in decided_signs(column))
    return Number(
        f"Mean change of the predicted probability, {contents.noise_text(contents.change_setting)}",
        signed(mean),
        f"{reach(low, high)}. Sampling finds a fall at {falls} of {plural(points, 'point')}, a rise at {rises}.",
    )


def _laplacian_number(contents: Contents) -> Number | None:
    if contents.laplacian is None:
        return None
    values = contents.laplacian.value.dropna()
    count = plural(len(values), "point")
    if infinite := int(np.isinf(values).sum()):
        return Number("Mean |Laplacian|", "∞", f"{plural(infinite, 'point')} without a finite one.")
    mean = mean_absolute(contents, contents.laplacian)
    note = (
        f"{reach(mean.low, mean.high, 3)}, per squared pixel unit. It is negative for "
        f"{small_percent(float((values < 0.0).mean()))} of {count}."
    )
    return Number("Mean |Laplacian|", short(mean.mean, 3), note)


def _prediction(contents: Contents) -> dict[str, Any]:
    """The Laplacian against the sampled change."""
    frame = expected_change_table(contents)
    rows = {Setting(row["sigma"], row["noise"]): row for row in frame.to_dict("records")}
    if contents.laplacian is None or not rows:
        lacking = "Laplacian" if contents.laplacian is None else "sampled change (probability_change)"
        return {
            "conclusion": f"This run holds no {lacking}, so there is nothing to compare.",
            "figure": None,
            "grid": None,
        }
    drawn = spread(tuple(rows), contents.change_setting)
    points = pd.concat([_points(contents, setting, order) for order, setting in enumerate(drawn)], ignore_index=True)
    spoken = contents.change_setting or drawn[0]
    conclusion = f"At {contents.noise_text(spoken)}: {_reading(rows[spoken])}"
    header = ("Noise", "Points", "Same sign", "Spearman", "Slope", "Median ratio", "Mean sampled change")
    words = f"Sampled mean change against the change that the Laplacian predicts, by noise level. {conclusion}"
    return {
        "conclusion": conclusion,
        "figure": panels(change_chart, points, words),
        "grid": Grid(header, [_prediction_row(contents, setting, row) for setting, row in rows.items()]),
        "kinks": max(row["kinks"] for row in rows.values()),
        "dropped": max(row["dropped"] for row in rows.values()),
        "left": len(rows) - len(drawn),
        "clipped": any(row["clipped"] for row in rows.values()),
    }


def _points(contents: Contents, setting: Setting, order: int) -> pd.DataFrame:
    """Both changes of the points at one setting, with the interval of the sampled one and the kind of the point."""
    points = expected_change_points(contents, setting)
    decided = (points["sampled_low"] > 0.0) | (points["sampled_high"] < 0.0)
    same = np.sign(points["predicted_change"]) == np.sign(points["sampled_change"])
    frame = pd.DataFrame(
        {
            "setting": contents.noise_text(setting),
            "order": order,
            "predicted": points["predicted_change"],
            "sampled": points["sampled_change"],
            "low": points["sampled_low"],
            "high": points["sampled_high"],
            "kind": np.select([points["kink"], ~decided, same], [KINK, UNDECIDED, SAME], OTHER),
        }
    )
    known = np.isfinite(frame[["predicted", "sampled"]]).all(axis=1)
    return charts.thinned(frame.loc[known].reset_index(drop=True))


def change_chart(frame: pd.DataFrame, width: int = charts.NARROW) -> Any:
    """Sampled change against the predicted one at one noise setting; the dashed line is the theory."""
    side = min(width - 66, 420)
    kinds = [kind for kind in KINDS if kind in set(frame["kind"])]
    both = charts.symlog([*frame["predicted"], *frame["sampled"]])
    x = alt.X("predicted:Q", title="predicted change", scale=both.scale, axis=both.axis())
    y = {"title": "sampled mean change, higher is safer", "scale": both.scale, "axis": both.axis(minExtent=44)}
    rank = {kind: place for place, kind in enumerate((UNDECIDED, *KINDS))}
    sorted_rows = frame.assign(rank=[rank[kind] for kind in frame["kind"]]).sort_values("rank", kind="stable")
    key = charts.legend(1, labelLimit=220)
    colours, shapes = (alt.Scale(domain=kinds, range=[KINDS[kind][part] for kind in kinds]) for part in (0, 1))
    place = alt.Chart(both.inside(sorted_rows)).encode(
        x=x, color=alt.Color("kind:N", scale=colours, legend=key, sort=None)
    )
    ends = alt.Chart(pd.DataFrame({"predicted": both.domain, "sampled": both.domain}))
    theory = ends.mark_line(stroke=charts.MUTED, strokeDash=[4, 3], strokeWidth=1).encode(
        x=x, y=alt.Y("sampled:Q", **y)
    )
    thin = place.mark_rule(strokeWidth=0.75, opacity=0.6).encode(y=alt.Y("low:Q", **y), y2="high:Q")
    marks = place.mark_point(filled=True, size=16, opacity=1).encode(
        y=alt.Y("sampled:Q", **y), shape=alt.Shape("kind:N", scale=shapes, legend=key, sort=None)
    )
    return alt.layer(theory, thin, marks).properties(width=side, height=side, title=charts.heading(frame))


def _prediction_row(contents: Contents, setting: Setting, row: Row) -> tuple[str, ...]:
    under = contents.radius_text(setting).strip(" ()")
    share = percent_interval(row["agreement_low"], row["agreement_high"])
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
    frame = label_flips(contents, CONFIDENT, GROUP)
    rows = {Setting(row["sigma"], row["noise"]): row for row in frame.to_dict("records")}
    if not rows:
        conclusion = "This run lacks a Laplacian or flips (monte_carlo) to compare."
        return {"number": None, "conclusion": conclusion, "shares": None}
    setting = _spoken_setting(rows, contents.change_setting)
    name, row = contents.noise_text(setting), rows[setting]
    shown = spread(tuple(rows), contents.change_setting)
    drawn = [(order, contents.noise_text(one), rows[one]) for order, one in enumerate(shown)]
    shares = pd.DataFrame(
        [
            (setting, order, name_of, one[group], one[f"{group}_low"], one[f"{group}_high"])
            for order, setting, one in drawn
            for group, (name_of, _) in GROUPS.items()
            if not math.isnan(one[group])
        ],
        columns=["setting", "order", "group", "value", "low", "high"],
    )
    conclusion = _flips_conclusion(name, row)
    return {
        "number": _flips_number(name, row) if row["group"] else None,
        "conclusion": conclusion,
        "shares": Figure(
            shares_chart, shares, f"Flips of predictions with the lowest and highest Laplacian. {conclusion}"
        ),
        "by_laplacian": _by_laplacian(contents, rows),
        "dropped": max(one["dropped"] for one in rows.values()),
        "left": len(rows) - len(drawn),
    }


def _spoken_setting(rows: dict[Setting, Row], chosen: Setting | None) -> Setting:
    """The setting to speak of: the chosen one if either group flips there, else the noisiest."""
    if chosen is not None and chosen in rows and max(rows[chosen]["lowest"], rows[chosen]["highest"]) > 0.0:
        return chosen
    return next(reversed(rows))


def _flips_number(name: str, row: Row) -> Number:
    lowest, highest = (small_percent(row[group]) for group in ("lowest", "highest"))
    ends = [percent_interval(row[f"{group}_low"], row[f"{group}_high"]) for group in ("lowest", "highest")]
    note = f"{row['group']:,} predictions each, all made with a probability of at least {CONFIDENT:g}."
    title = f"Flips by Laplacian, lowest against highest, {name}"
    return Number(title, f"{lowest} vs {highest}", f"{ends[0]} against {ends[1]}. {note}")


def _flips_conclusion(name: str, row: Row) -> str:
    if isinstance(row["reason"], str):
        return row["reason"]
    if row["lowest"] == row["highest"] == 0.0:
        verdict = "confident predictions of either kind do not flip there, so no difference can be found"
    elif row["p_flips"] < SURE:
        verdict = "a low Laplacian tells which confident predictions noise unsettles"
    else:
        verdict = "these points do not show that a low Laplacian tells which confident predictions noise unsettles"
    return (
        f"At {name}, the {row['group']:,} confident predictions with the lowest Laplacian flip in "
        f"{small_percent(row['lowest'])} of their noisy copies, the {row['group']:,} with the highest in "
        f"{small_percent(row['highest'])}: {verdict}."
    )


def _by_laplacian(contents: Contents, rows: Mapping[Setting, Row]) -> Grid:
    cells = [
        (
            contents.noise_text(setting),
            f"{row['points']:,}",
            f"{row['group']:,}",
            *(
                f"{small_percent(row[group])}\n{percent_interval(row[f'{group}_low'], row[f'{group}_high'])}"
                for group in GROUPS
            ),
            p_value(row["p_flips"]),
        )
        for setting, row in rows.items()
        if row["group"]
    ]
    return Grid(("Noise", "Confident points", "In either group", "Lowest Laplacian flips", "Highest flips", "p"), cells)


def shares_chart(frame: pd.DataFrame, width: int = charts.NARROW) -> Any:
    """Shares of flips of two groups, one row per noise setting."""
    scale = alt.Scale(domain=[0.0, min(1.0, max([0.01, *frame["high"].tolist()]))], nice=True)
    x = {"title": "flips, further left is safer", "scale": scale, "axis": charts.few_ticks(format="%")}
    groups = dict(GROUPS.values())
    colours = alt.Scale(domain=list(groups), range=list(groups.values()))
    place = alt.Chart(frame).encode(
        y=alt.Y("setting:N", sort=charts.ordered(), title=None, axis=charts.names_axis()),
        yOffset=alt.YOffset("group:N", sort=list(groups)),
        color=alt.Color("group:N", scale=colours, legend=charts.legend(1), sort=list(groups)),
    )
    layers = alt.layer(*charts.interval_dots(place, "x", **x))
    return layers.properties(width=charts.width_beside(width, frame["setting"].tolist()), height=alt.Step(20))


def _drops(contents: Contents) -> dict[str, Any]:
    """The confident predictions whose probability drops most."""
    rows = _falling(contents)
    points = [_drop(contents, row) for row in rows.head(DROPS_SHOWN).to_dict("records")]
    return {
        "points": points,
        "count": plural(len(rows), "prediction"),
        "sure": "" if _confidence(contents) is None else f" made with a probability of at least {CONFIDENT:g}",
        "level": contents.noise_text(contents.change_setting) if contents.change_setting is not None else "",
        "with_images": any(point["image"] for point in points),
    }


def _confidence(contents: Contents) -> Column | None:
    """The column of the largest probability; None where the run has none."""
    return next((one for one in contents.columns if one.score == CONFIDENCE and one.value.notna().any()), None)


def _falling(contents: Contents) -> pd.DataFrame:
    """The confident points, or all where no confidence is known, that lose probability, the largest loss first."""
    names = ["point", "row", "name", "label", "predicted", "image"]
    frame = contents.points.select(names).to_pandas().set_index("point", drop=False)
    column = contents.laplacian if contents.change_setting is None else contents.changes[contents.change_setting]
    confidence = _confidence(contents)
    frame["before"] = math.nan if confidence is None else confidence.value
    frame["by"] = math.nan if column is None else column.value
    sure = frame if confidence is None else frame[frame["before"] >= CONFIDENT]
    falling = sure[np.isfinite(sure["by"]) & (sure["by"] < 0.0)]
    return falling.sort_values(["by", "row"], ignore_index=True)


def _drop(contents: Contents, row: Row) -> dict[str, Any]:
    change = signed(row["by"]) if contents.change_setting is not None else f"L {signed(row['by'])}"
    before = "" if math.isnan(row["before"]) else f"from {fixed(row['before'])}"
    predicted = contents.class_text(row["predicted"])
    wrong = bool(pd.notna(row["label"]) and row["label"] != row["predicted"])
    return {
        "name": contents.point_name(row),
        "image": embedded(row["image"]),
        "change": change,
        "before": before,
        "predicted": predicted,
        "wrong": wrong,
        "text": f"{'wrongly ' if wrong else ''}predicted as {predicted}, change {change}{before and f' {before}'}",
    }
