"""The pictures of the study: margins, tau, detection by epsilon, robust accuracy from a few points."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt

from brittle.extensions.report.charts import dashed
from studies.drawing import by_data, coloured, equal, marked, named, panels, svg
from studies.groups import GROUPS
from studies.margin_consistency.facts import NORMS
from studies.margin_consistency.words import STRONG, frame_of
from studies.markdown import decimals
from studies.study import Tables
from studies.tables import Frame

NAMES = alt.Axis(labelLimit=180, labelFontSize=11)
"""An axis of names of networks."""


def pictures(tables: Tables) -> Mapping[str, str]:
    """Return the pictures as SVG by name."""
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


def margins(bins: Frame, linf: Frame) -> alt.FacetChart:
    """Mean input margin and its standard error against the logit margin, a panel a network (figure 2)."""
    headings = [
        f"{network.dataset}, {network.network}, tau {decimals(network.tau, 2)}" for network in named(linf).itertuples()
    ]
    titles = dict(zip(linf["network"], headings, strict=True))
    columns = named(bins.assign(
        panel=bins["network"].map(titles), low=bins["margin"] - bins["error"], high=bins["margin"] + bins["error"]
    ))[["panel", "dataset", "group", "logit_margin", "margin", "low", "high"]].astype(
        {"logit_margin": "float64", "margin": "float64"}
    )  # fmt: skip
    x = alt.X("logit_margin:Q", title=None, axis=alt.Axis(tickCount=3))
    y = alt.Y("margin:Q", title=None, scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=3))
    encoding = marked(columns)
    lines = alt.Chart(columns).mark_line(strokeWidth=1).encode(x=x, y=y, color=encoding["color"])
    points = alt.Chart(columns).mark_point().encode(x=x, y=y, **encoding)
    bars = (
        alt.Chart(columns).mark_rule().encode(x=x, y=alt.Y("low:Q", title=None), y2="high:Q", color=encoding["color"])
    )
    layers = alt.layer(lines, points, bars, data=columns)
    header = {"labelExpr": "split(datum.label, ', ')", "labelFontWeight": 400, "labelLimit": 170}
    drawn = panels(layers, "panel", headings, 135, 80, columns=2, **header)
    title = ["input margin in Linf (upwards)", "by logit margin (to the right)"]
    return drawn.resolve_scale(x="independent", y="independent").properties(title=title)


def ordered(frame: Frame) -> Frame:
    """By group, the most consistent networks first."""
    places = frame["group"].map({group: place for place, group in enumerate(GROUPS)})
    return frame.assign(place=places).sort_values(["place", "tau"], ascending=[True, False], kind="stable")


def taus(linf: Frame) -> alt.FacetChart:
    """Tau of each network with its interval over points, a panel a data set, the paper's limit as a line."""
    columns = named(linf)[["network", "dataset", "group", "tau", "tau_low", "tau_high"]].assign(strong=STRONG)
    y = alt.Y("network:N", sort=[*columns["network"]], title=None, axis=NAMES)
    scale = alt.Scale(domain=(0, 1), clamp=True)
    points = alt.Chart(columns).mark_point(size=50)
    points = points.encode(x=alt.X("tau:Q", scale=scale, title="tau"), y=y, **marked(columns))
    bars = alt.Chart(columns).mark_rule().encode(
        x=alt.X("tau_low:Q", scale=scale, title="tau"), x2="tau_high:Q", y=y, color=by_data(columns)
    )  # fmt: skip
    layers = alt.layer(dashed(alt.Chart(columns), x="strong:Q"), bars, points, data=columns)
    return panels(layers, "dataset", None, 180, alt.Step(17)).resolve_scale(y="independent")


def by_epsilon(epsilons: Frame) -> alt.FacetChart:
    """AUROC against the share of points that are not robust, a line a network, a panel a group (figure 9)."""
    linf = epsilons[epsilons["norm"] == NORMS[0]]
    columns = named(linf.assign(line=linf["network"]))[["line", "dataset", "group", "level", "auroc"]].dropna()
    lines = alt.Chart(columns).mark_line(point=alt.OverlayMarkDef(size=14), strokeWidth=1).encode(
        x=alt.X("level:Q", axis=alt.Axis(format="%"), title="not robust at this epsilon"),
        y=alt.Y("auroc:Q", scale=alt.Scale(domain=(0.5, 1), clamp=True), title="AUROC of the logit margin"),
        color=by_data(columns), detail="line:N",
    )  # fmt: skip
    return panels(lines, "group", [*GROUPS], 330, 150)


def few(frame: Frame) -> alt.TopLevelMixin:
    """Return the robust accuracy from half of the margins against that from all (figure 5)."""
    columns = named(frame[frame["share"] == 0.5])[["dataset", "group", "truth", "estimate"]]
    axis, scale = alt.Axis(format="%"), alt.Scale(domain=(0, 1))
    points = alt.Chart(columns).mark_point(filled=False, size=50).encode(
        x=alt.X("truth:Q", scale=scale, axis=axis, title="robust accuracy by the margins of all points"),
        y=alt.Y("estimate:Q", scale=scale, axis=axis, title="mean estimate from half of the margins"),
        **marked(columns),
    )  # fmt: skip
    return alt.layer(equal("truth", "estimate"), points).properties(width=300, height=300)


def pseudo(frame: Frame) -> alt.FacetChart:
    """Tau of the logit margin and of pseudo-margins on the networks where it was learned (table 2)."""
    columns = named(frame).assign(score=frame["score"].str.replace("_", " ").str.replace("pseudo-margin,", "pseudo:"))[
        ["network", "dataset", "score", "tau"]
    ]
    points = alt.Chart(columns).mark_point(size=60, opacity=0.9)
    drawn = points.encode(
        x=alt.X("tau:Q", scale=alt.Scale(domain=(0, 1)), title="tau"),
        y=alt.Y("network:N", title=None, sort=[*columns["network"]], axis=NAMES),
        **coloured("score", [*dict.fromkeys(columns["score"])]),
    )
    return panels(drawn, "dataset", None, 180, alt.Step(24)).resolve_scale(y="independent")
