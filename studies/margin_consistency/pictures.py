"""The pictures of the study: margins, tau, detection by epsilon, robust accuracy from a few points."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import pandas as pd

from studies.drawing import svg
from studies.groups import GROUPS
from studies.margin_consistency.facts import NORMS
from studies.margin_consistency.words import STRONG, frame_of
from studies.markdown import data_name, decimals
from studies.study import Tables
from studies.tables import Frame

COLOURS = alt.Scale(domain=[*GROUPS], scheme="category10")


def pictures(tables: Tables) -> Mapping[str, str]:
    """SVG by name."""
    networks = frame_of(tables, "networks")
    linf = ordered(networks[networks["norm"] == NORMS[0]])
    bins, epsilons, from_few = (frame_of(tables, name) for name in ("bins", "epsilons", "few"))
    drawn: dict[str, alt.TopLevelMixin] = {"margin_consistency_tau": taus(linf)}
    if len(bins):
        drawn["margin_consistency"] = margins(bins, linf)
    if len(epsilons):
        drawn["margin_consistency_epsilon"] = by_epsilon(epsilons)
    if len(from_few):
        drawn["margin_consistency_few"] = few(from_few)
    if len(learned := frame_of(tables, "pseudo")):
        drawn["margin_consistency_pseudo"] = pseudo(learned)
    return {name: svg(chart) for name, chart in drawn.items()}


def _group(legend: bool = True) -> alt.Color:
    return alt.Color("group:N", scale=COLOURS, title="training", legend=alt.Legend() if legend else None)


def margins(bins: Frame, linf: Frame) -> alt.FacetChart:
    """Mean input margin and its standard error against the logit margin, a panel a network (figure 2)."""
    titles = {one.network: f"{one.network}, tau {decimals(one.tau, 2)}" for one in linf.itertuples()}
    columns = bins.assign(
        panel=bins["network"].map(titles), low=bins["margin"] - bins["error"], high=bins["margin"] + bins["error"]
    )[["panel", "group", "logit_margin", "margin", "low", "high"]].astype(
        {"logit_margin": "float64", "margin": "float64"}
    )
    x = alt.X("logit_margin:Q", title=None, axis=alt.Axis(tickCount=3))
    scale = alt.Scale(zero=True)
    points = alt.Chart(columns).mark_line(point=alt.OverlayMarkDef(size=14), strokeWidth=1)
    drawn = points.encode(x=x, y=alt.Y("margin:Q", title=None, scale=scale, axis=alt.Axis(tickCount=3)), color=_group())
    bars = alt.Chart(columns).mark_rule().encode(x=x, y=alt.Y("low:Q", title=None), y2="high:Q", color=_group())
    both = alt.layer(drawn, bars, data=columns).properties(width=150, height=95)
    title = "input margin in Linf (upwards) against logit margin (to the right)"
    order = [titles[name] for name in linf["network"]]
    header = alt.Header(labelFontSize=8, labelLimit=170)
    return (
        both.facet(facet=alt.Facet("panel:N", sort=order, title=title, header=header), columns=4)
        .resolve_scale(x="independent", y="independent")
        .configure_legend(orient="top")
    )


def ordered(frame: Frame) -> Frame:
    """By group, the most consistent networks first."""
    places = frame["group"].map({group: place for place, group in enumerate(GROUPS)})
    return frame.assign(place=places).sort_values(["place", "tau"], ascending=[True, False], kind="stable")


def taus(linf: Frame) -> alt.FacetChart:
    """Tau of each network with its interval over points, a panel a data set, the paper's limit as a line."""
    columns = linf[["network", "dataset", "group", "tau", "tau_low", "tau_high"]]
    columns = columns.assign(panel=columns["dataset"].map(data_name), strong=STRONG)
    y = alt.Y("network:N", sort=[*columns["network"]], title=None, axis=alt.Axis(labelLimit=230))
    scale = alt.Scale(domain=(0, 1), clamp=True)
    points = alt.Chart(columns).mark_point(filled=True, size=50, opacity=1)
    points = points.encode(x=alt.X("tau:Q", scale=scale, title="tau"), y=y, color=_group())
    bars = alt.Chart(columns).mark_rule(opacity=0.6).encode(
        x=alt.X("tau_low:Q", scale=scale, title="tau"), x2="tau_high:Q", y=y, color=_group()
    )  # fmt: skip
    limit = alt.Chart(columns).mark_rule(color="gray", strokeDash=[4, 3]).encode(x="strong:Q")
    both = alt.layer(limit, bars, points, data=columns).properties(width=330, height=alt.Step(15))
    return both.facet(row=alt.Row("panel:N", title=None)).resolve_scale(y="independent")


def by_epsilon(epsilons: Frame) -> alt.FacetChart:
    """AUROC against the share of points that are not robust, a line a network, a panel a group (figure 9)."""
    columns = epsilons[epsilons["norm"] == NORMS[0]][["network", "group", "level", "auroc"]].dropna()
    lines = (
        alt.Chart(columns)
        .mark_line(point=True, opacity=0.8)
        .encode(
            x=alt.X("level:Q", axis=alt.Axis(format="%"), title="not robust at this epsilon"),
            y=alt.Y("auroc:Q", scale=alt.Scale(domain=(0.5, 1), clamp=True), title="AUROC of the logit margin"),
            color=_group(legend=False),
            detail="network:N",
        )
        .properties(width=190, height=200)
    )
    return lines.facet(column=alt.Column("group:N", title="training", sort=[*GROUPS]))


def few(frame: Frame) -> alt.TopLevelMixin:
    """The robust accuracy from half of the margins against that from all (figure 5)."""
    columns = frame[frame["share"] == 0.5][["group", "truth", "estimate"]]
    axis = alt.Axis(format="%")
    scale = alt.Scale(domain=(0, 1))
    points = (
        alt.Chart(columns)
        .mark_point(filled=True, opacity=0.8)
        .encode(
            x=alt.X("truth:Q", scale=scale, axis=axis, title="robust accuracy by the margins of all points"),
            y=alt.Y("estimate:Q", scale=scale, axis=axis, title="estimated from half of the margins, mean"),
            color=_group(),
        )
    )
    line = pd.DataFrame({"truth": [0.0, 1.0], "estimate": [0.0, 1.0]})
    equal = alt.Chart(line).mark_line(color="gray", strokeDash=[3, 3]).encode(x="truth:Q", y="estimate:Q")
    return alt.layer(equal, points).properties(width=260, height=260)


def pseudo(frame: Frame) -> alt.Chart:
    """Tau of the logit margin and of pseudo-margins on the networks where it was learned (table 2)."""
    columns = frame[["network", "score", "tau"]].assign(score=frame["score"].str.replace("_", " "))
    points = alt.Chart(columns).mark_point(filled=True, size=60, opacity=0.8)
    return points.encode(
        x=alt.X("tau:Q", scale=alt.Scale(domain=(0, 1)), title="tau"),
        y=alt.Y("network:N", title=None, sort=[*columns["network"]], axis=alt.Axis(labelLimit=230)),
        color=alt.Color("score:N", scale=alt.Scale(scheme="category10"), title=None, sort=[*columns["score"]]),
    ).properties(width=330, height=alt.Step(24))
