"""The pictures of the study, from its results."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from xml.sax.saxutils import escape

import altair as alt
import pandas as pd

from studies.average_case.estimating import MMSE_, NORMAL, SOFTMAX, TAYLOR
from studies.average_case.images import SIDES
from studies.average_case.read import SHOWN, Results, means
from studies.average_case.timing import FASTER, PAPER_DRAWS, SERIAL
from studies.drawing import svg
from studies.markdown import data_name
from studies.study import Tables
from studies.tables import Frame

Chart = alt.Chart | alt.LayerChart | alt.FacetChart

NAME = "average_case"

SIGMA = alt.X("sigma:Q", scale=alt.Scale(type="log", nice=False), title="sigma")


def pictures(tables: Tables) -> Mapping[str, str]:
    """SVG by name."""
    results = Results(tables)
    charts = {"errors": errors(results), "robustness": robustness(results), "sigmoid": sigmoid(results.frames["pairs"]),
              "counting": counting(results), "classes": classes(results), "times": times(results)}  # fmt: skip
    if results.families():
        charts["regularised"] = regularised(results)
    found = {f"{NAME}_{name}": svg(chart) for name, chart in charts.items()}
    for dataset, frame in results.frames["images"].groupby("dataset"):
        found[f"{NAME}_images_{dataset}"] = image_rows(frame)
    return found


def _named(frame: Frame) -> Frame:
    """Data sets by the names that pages give them."""
    return frame.assign(dataset=frame["dataset"].map(data_name))


def errors(results: Results) -> alt.FacetChart:
    """Figure 2a: error by sigma, one panel a data set."""
    parts = [means(results.errors(name), ["dataset", "sigma"], ["error"]).assign(estimator=name) for name in SHOWN]
    columns = _named(pd.concat(parts))[["dataset", "sigma", "estimator", "error"]]
    lines = (
        alt.Chart(columns)
        .mark_line(point=True)
        .encode(
            x=SIGMA,
            y=alt.Y("error:Q", title="mean absolute error of p_robust"),
            color=alt.Color("estimator:N", scale=alt.Scale(scheme="category10"), title=None, sort=[*SHOWN]),
        )
    )
    return lines.properties(width=300, height=230).facet(column=alt.Column("dataset:N", title=None))


def regularised(results: Results) -> alt.FacetChart:
    """Figure 2b: error by sigma and strength of the regularisation."""
    networks = pd.concat(results.families())["network"]
    parts = [results.errors(name)[lambda rows: rows["network"].isin(set(networks))] for name in (MMSE_, TAYLOR)]
    columns = pd.concat(parts)
    columns = columns.assign(
        panel=columns["dataset"].map(data_name) + " " + columns["architecture"] + ", " + columns["estimator"],
        strength=[f"{one:g}" for one in columns["strength"]],
    )[["panel", "sigma", "strength", "error"]]
    lines = (
        alt.Chart(columns)
        .mark_line(point=True)
        .encode(
            x=SIGMA,
            y=alt.Y("error:Q", title="mean absolute error of p_robust"),
            color=alt.Color("strength:N", scale=alt.Scale(scheme="category10"), title="regularisation"),
        )
    )
    panels = lines.properties(width=260, height=200).facet(facet=alt.Facet("panel:N", title=None), columns=2)
    return panels


def robustness(results: Results) -> alt.FacetChart:
    """Figure 12: quantiles of `p_robust` over points, in the mean over networks."""
    names = {"q95": "95%", "q75": "75%", "q50": "half", "q25": "25%", "q05": "5%"}
    rows = _named(means(results.frames["robustness"], ["dataset", "sigma"], [*names])).rename(columns=names)
    long = rows.melt(["dataset", "sigma"], [*names.values()], "quantile", "kept")
    lines = (
        alt.Chart(long)
        .mark_line(point=True)
        .encode(
            x=SIGMA,
            y=alt.Y("kept:Q", scale=alt.Scale(domain=(0, 1)), title="p_robust"),
            color=alt.Color(
                "quantile:N", scale=alt.Scale(scheme="category10"), sort=[*names.values()], title="points below"
            ),
        )
    )
    return lines.properties(width=300, height=200).facet(column=alt.Column("dataset:N", title=None))


def sigmoid(frame: Frame) -> Chart:
    """Figures 10 and 15: sigmoid against integral, a point for each point of a network and sigma."""
    names = {"sigmoid": "as printed", "scaled": "with the factor"}
    long = frame.rename(columns=names).melt(["integral"], [*names.values()], "form", "value").round(4)
    places = alt.X("integral:Q", scale=alt.Scale(domain=(0, 1)), title="normal integral")
    points = (
        alt.Chart(long)
        .mark_point(filled=True, opacity=0.5, size=18)
        .encode(
            x=places,
            y=alt.Y("value:Q", scale=alt.Scale(domain=(0, 1)), title="multivariate sigmoid"),
            color=alt.Color("form:N", scale=alt.Scale(scheme="category10"), title=None, sort=[*names.values()]),
        )
    )
    ends = pd.DataFrame({"integral": [0.0, 1.0], "value": [0.0, 1.0]})
    equal = alt.Chart(ends).mark_line(color="gray", strokeDash=[3, 3]).encode(x=places, y="value:Q")
    return alt.layer(points, equal).properties(width=320, height=300)


def counting(results: Results) -> Chart:
    """Figures 4, 10 and 11: error of counting and of MMSE by passes, at the sigma of each network."""
    copies = means(results.frames["counting"], ["copies"], ["error"])
    own = results.at_own_sigma("errors")
    mmse = means(own[own["estimator"] == MMSE_], ["draws"], ["error", "passes"])
    counted = pd.DataFrame({"passes": copies["copies"], "error": copies["error"], "estimator": "counting"})
    drawn = pd.DataFrame({"passes": mmse["passes"], "error": mmse["error"], "estimator": MMSE_})
    tangent = means(own[own["estimator"] == TAYLOR], ["draws"], ["error", "passes"])
    once = pd.DataFrame({"passes": tangent["passes"], "error": tangent["error"], "estimator": TAYLOR})
    lines = (
        alt.Chart(pd.concat([counted, drawn, once]))
        .mark_line(point=True)
        .encode(
            x=alt.X("passes:Q", scale=alt.Scale(type="log"), title="passes per point"),
            y=alt.Y("error:Q", scale=alt.Scale(type="log"), title="mean absolute error of p_robust"),
            color=alt.Color("estimator:N", scale=alt.Scale(scheme="category10"), title=None),
        )
    )
    return lines.properties(width=380, height=230)


def classes(results: Results) -> alt.FacetChart:
    """Figures 4, 8 and 16: class means of each network, counted."""
    frame = results.frames["classes"]
    labels = [str(int(one)) for one in sorted(set(frame["class"]))]
    columns = _named(frame).assign(label=[str(int(one)) for one in frame["class"]])[["dataset", "label", "mean"]]
    points = (
        alt.Chart(columns)
        .mark_point(filled=True, opacity=0.6)
        .encode(
            x=alt.X("label:N", title="class", sort=labels, axis=alt.Axis(labelAngle=0)),
            y=alt.Y("mean:Q", scale=alt.Scale(zero=False), title="mean p_robust of a network"),
        )
    )
    return points.properties(width=300, height=200).facet(column=alt.Column("dataset:N", title=None))


def times(results: Results) -> alt.FacetChart:
    """Table 3 of the workshop paper: counting by each estimator on a processor, a dot a network, the paper's as a "
    "line."""
    names = {"Taylor": (TAYLOR, 0), f"MMSE, {PAPER_DRAWS} draws": (MMSE_, PAPER_DRAWS)}
    ratios = {title: results.times_as_long(*asked, SERIAL) for title, asked in names.items()}
    parts = [
        ratio.rename("ratio").reset_index().assign(panel=title, paper=FASTER[names[title][0]])
        for title, ratio in ratios.items()
    ]
    x = alt.X(
        "ratio:Q",
        scale=alt.Scale(type="log"),
        title="seconds of counting by those of the estimator, one point at a time",
    )
    points = alt.Chart().mark_point(filled=True, opacity=0.6).encode(x=x)
    limit = alt.Chart().mark_rule(color="gray", strokeDash=[4, 3]).encode(x="paper:Q")
    both = alt.layer(limit, points, data=pd.concat(parts)).properties(width=380, height=40)
    return both.facet(row=alt.Row("panel:N", title=None, sort=[*names]))


CELL, GAP, LEFT, LINE = 56, 6, 150, 16
"""Sizes of the rows of images, in pixels."""

ROWS = {(NORMAL, SIDES[1]): "most robust", (NORMAL, SIDES[0]): "least robust", (SOFTMAX, SIDES[1]): "highest softmax",
        (SOFTMAX, SIDES[0]): "lowest softmax"}  # fmt: skip


def image_rows(frame: Frame) -> str:
    """Figures 3 and 9: the first image of each class and side, with `p_robust` or softmax below."""
    labels = sorted(set(frame["class"]))
    found = {(one["by"], one["side"], one["class"]): one for one in frame.to_dict("records")}
    parts = []
    for row, (key, title) in enumerate(ROWS.items()):
        top = row * (CELL + LINE + GAP)
        parts.append(f'<text x="0" y="{top + CELL / 2}">{escape(title)}</text>')
        for column, label in enumerate(labels):
            if one := found.get((*key, label)):
                left = LEFT + column * (CELL + GAP)
                kind = "png" if one["picture"].startswith(b"\x89PNG") else "jpeg"
                data = f"data:image/{kind};base64,{base64.b64encode(one['picture']).decode()}"
                parts.append(f'<image x="{left}" y="{top}" width="{CELL}" height="{CELL}" href="{data}"/>')
                parts.append(f'<text x="{left}" y="{top + CELL + LINE - 4}">{one["value"]:.2f}</text>')
    width, height = LEFT + len(labels) * (CELL + GAP), len(ROWS) * (CELL + LINE + GAP)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>'
    )
