"""The pictures of the study, from its results."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape

import altair as alt
import pandas as pd

from brittle.extensions.report.charts import FONT, INK, MUTED, dashed
from studies.average_case.estimating import MMSE_, NORMAL, SOFTMAX, TAYLOR
from studies.average_case.images import SIDES
from studies.average_case.read import SHOWN, Results, means
from studies.average_case.said import CODES
from studies.average_case.timing import FASTER, PAPER_DRAWS
from studies.drawing import (
    GROUND,
    TEXT,
    by_data,
    by_passes,
    coloured,
    equal,
    in_the_dark,
    logarithmic,
    named,
    panels,
    svg,
)
from studies.markdown import data_name
from studies.study import Tables
from studies.tables import Frame

Chart = alt.Chart | alt.LayerChart | alt.FacetChart

NAME = "average_case"


def by_sigma(columns: Frame, panel: str, key: dict[str, Any], y: alt.Y) -> alt.FacetChart:
    """Lines by sigma, a panel for each value of a column."""
    lines = alt.Chart(columns).mark_line(point=True)
    x = logarithmic(alt.X("sigma:Q", title="sigma"), columns["sigma"])
    return panels(lines.encode(x=x, y=y, **key), panel, None, 320, 150)


ERROR = alt.Y("error:Q", title="mean error of p_robust")


def pictures(tables: Tables) -> Mapping[str, str]:
    """Return the pictures as SVG by name."""
    results = Results(tables)
    charts = {"errors": errors(results), "robustness": robustness(results), "sigmoid": sigmoid(results.frames["pairs"]),
              "counting": counting(results), "classes": classes(results), "times": times(results)}  # fmt: skip
    if results.families():
        charts["regularised"] = regularised(results)
    svg_by_name = {f"{NAME}_{name}": svg(chart) for name, chart in charts.items()}
    for dataset, frame in results.frames["images"].groupby("dataset"):
        svg_by_name[f"{NAME}_images_{dataset}"] = image_rows(frame)
    return svg_by_name


def errors(results: Results) -> alt.FacetChart:
    """Figure 2a: error by sigma, one panel a data set."""
    parts = [means(results.errors(name), ["dataset", "sigma"], ["error"]).assign(estimator=name) for name in SHOWN]
    columns = named(pd.concat(parts))[["dataset", "sigma", "estimator", "error"]]
    return by_sigma(columns, "dataset", coloured("estimator", SHOWN), ERROR)


def regularised(results: Results) -> alt.FacetChart:
    """Figure 2b: error by sigma and strength of the regularisation."""
    networks = pd.concat(results.families())["network"]
    parts = [results.errors(name)[lambda rows: rows["network"].isin(set(networks))] for name in (MMSE_, TAYLOR)]
    columns = pd.concat(parts)
    columns = columns.assign(
        panel=columns["dataset"].map(data_name) + " " + columns["architecture"] + ", " + columns["estimator"],
        strength=[f"{strength:g}" for strength in columns["strength"]],
    )[["panel", "sigma", "strength", "error"]]
    strengths = sorted(set(columns["strength"]), key=float)
    return by_sigma(columns, "panel", coloured("strength", strengths, "strength of the regularisation"), ERROR)


def robustness(results: Results) -> alt.FacetChart:
    """Figure 12: quantiles of `p_robust` over points, in the mean over networks."""
    names = {"q95": "95%", "q75": "75%", "q50": "half", "q25": "25%", "q05": "5%"}
    rows = named(means(results.frames["robustness"], ["dataset", "sigma"], [*names])).rename(columns=names)
    long = rows.melt(["dataset", "sigma"], [*names.values()], "quantile", "kept")
    y = alt.Y("kept:Q", scale=alt.Scale(domain=(0, 1)), title="p_robust")
    return by_sigma(long, "dataset", coloured("quantile", [*names.values()], "points below"), y)


def sigmoid(frame: Frame) -> Chart:
    """Figures 10 and 15: sigmoid against integral, a point for each point of a network and sigma."""
    names = {"sigmoid": "as printed", "scaled": "with the factor"}
    long = frame.rename(columns=names).melt(["integral"], [*names.values()], "form", "value").round(4)
    share = alt.Scale(domain=(0, 1))
    x = alt.X("integral:Q", scale=share, title="normal integral")
    points = alt.Chart(long).mark_point(filled=False, size=18).encode(
        x=x, y=alt.Y("value:Q", scale=share, title="multivariate sigmoid"), **coloured("form", [*names.values()])
    )  # fmt: skip
    return alt.layer(equal("integral", "value"), points).properties(width=320, height=300)


def counting(results: Results) -> Chart:
    """Figures 4, 10 and 11: error of counting, MMSE and Taylor by passes, at the sigma of each network."""
    counted = means(results.frames["counting"], ["copies"], ["error"]).rename(columns={"copies": "passes"})
    at_sigma = results.at_own_sigma("errors")
    parts = [counted.assign(estimator="counting")]
    for name in (MMSE_, TAYLOR):
        parts.append(
            means(at_sigma[at_sigma["estimator"] == name], ["draws"], ["error", "passes"]).assign(estimator=name)
        )
    columns = pd.concat(parts)[["passes", "error", "estimator"]]
    return by_passes(columns, ["counting", MMSE_, TAYLOR]).properties(width=330, height=230)


def classes(results: Results) -> alt.FacetChart:
    """Figures 4, 8 and 16: class means of each network, counted."""
    frame = results.frames["classes"]
    labels = [str(int(number)) for number in sorted(set(frame["class"]))]
    columns = named(frame.assign(label=[str(int(number)) for number in frame["class"]]))[["dataset", "label", "mean"]]
    points = alt.Chart(columns).mark_point(filled=False).encode(
        x=alt.X("label:N", title="class", sort=labels, axis=alt.Axis(labelAngle=0)),
        y=alt.Y("mean:Q", scale=alt.Scale(zero=False), title="mean p_robust"),
        color=by_data(columns),
    )  # fmt: skip
    return panels(points, "dataset", None, 320, 150)


def times(results: Results) -> alt.FacetChart:
    """Table 3 of the workshop paper: counting by each estimator on a processor, by architecture; the paper's a line."""
    names = {"Taylor": TAYLOR, f"MMSE, {PAPER_DRAWS} draws": MMSE_}
    parts = [
        results.times_as_long(name, code).rename("ratio").reset_index().assign(panel=title, paper=FASTER[name], code=by)
        for title, name in names.items()
        for code, by in CODES.items()
    ]
    columns = pd.concat(parts, ignore_index=True)
    x = alt.X("ratio:Q", title="time of counting by that of the estimator")
    x = logarithmic(x, [*columns["ratio"], *columns["paper"]])
    y = alt.Y("architecture:N", title=None, sort=[*columns["architecture"].unique()])
    points = alt.Chart(columns).mark_point(filled=False).encode(x=x, y=y, **coloured("code", [*CODES.values()]))
    layers = alt.layer(dashed(alt.Chart(columns), x="paper:Q"), points, data=columns)
    return panels(layers, "panel", [*names], 320, 60)


CELL, GAP, LINE = 34, 6, 16
"""Sizes of the rows of images, in pixels."""

FEWEST = 4
"""Images that the titles of rows take the place of."""

ROWS = {(NORMAL, SIDES[1]): "most robust", (NORMAL, SIDES[0]): "least robust", (SOFTMAX, SIDES[1]): "highest softmax",
        (SOFTMAX, SIDES[0]): "lowest softmax"}  # fmt: skip


def image_rows(frame: Frame) -> str:
    """Figures 3 and 9: the first image of each class and side, with `p_robust` or softmax below."""
    labels = sorted(set(frame["class"]))
    examples = {(example["by"], example["side"], example["class"]): example for example in frame.to_dict("records")}
    parts, height = [], CELL + 2 * LINE + GAP
    for row, (key, title) in enumerate(ROWS.items()):
        top = row * height + LINE
        parts.append(f'<text x="{GAP}" y="{top - 4}" fill="{MUTED}">{escape(title)}</text>')
        for column, label in enumerate(labels):
            if example := examples.get((*key, label)):
                x = GAP + column * (CELL + GAP)
                kind = "png" if example["picture"].startswith(b"\x89PNG") else "jpeg"
                data = f"data:image/{kind};base64,{base64.b64encode(example['picture']).decode()}"
                parts.append(f'<image x="{x}" y="{top}" width="{CELL}" height="{CELL}" href="{data}"/>')
                parts.append(f'<text x="{x}" y="{top + CELL + LINE - 4}" fill="{INK}">{example["value"]:.2f}</text>')
    size = f"{GAP + max(len(labels), FEWEST) * (CELL + GAP)} {len(ROWS) * height}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size.split()[0]}" viewBox="0 0 {size}" font-family="{FONT}" '
        f'font-size="{TEXT}"><style>{in_the_dark()}</style><rect width="100%" height="100%" fill="{GROUND}"/>'
        f"{''.join(parts)}</svg>"
    )
