"""Findings of the study, a line each."""

from __future__ import annotations

from studies.agreement import judged
from studies.markdown import data_name, decimals, percent
from studies.study import Agreement, Finding, Tables
from studies.tables import Frame

SOURCE = "PRBench, arXiv 2511.01724, and its code"

ROUNDED = 9
"""Digits that shares of points are known to: their means are rounded."""

STRICT = 0.99
"""The `rho` that the usual estimate is given for."""


def results(tables: Tables) -> Frame:
    """Return a row for each network, level and `rho`."""
    return tables["accuracy"].to_pandas()


def findings(tables: Tables) -> list[Finding]:
    """Return every finding, from the results."""
    frame = results(tables)
    return [
        *(usual(rows, data_name(dataset)) for dataset, rows in frame.groupby("dataset")), same_for_all(frame),
        *(false_holding(rows, level) for level, rows in strict_of(frame).groupby("level", sort=False)), repeats(frame),
        library(frame), cost(frame),
    ]  # fmt: skip


def missed(frame: Frame) -> Frame:
    """How far the usual estimate is from the truth: 0 where it may be right."""
    below, above = frame["truth_low"] - frame["usual"], frame["usual"] - frame["truth_high"]
    return (below.clip(lower=0) - above.clip(lower=0)).round(ROUNDED) + 0.0


def strict_of(frame: Frame) -> Frame:
    """Return the rows for the probability that the usual estimate is meant for."""
    return frame[frame["rho"] == STRICT]


def usual(frame: Frame, on: str) -> Finding:
    """Judge the usual estimate for the probability that it is meant for."""
    miss = missed(strict_of(frame))
    inside = miss == 0
    return Finding(
        "the share of points that flip with probability 0.01 or less is the share without a flip in 100 copies",
        SOURCE,
        f"it is on {int(inside.sum())} of {len(inside)} networks and levels of noise, and off by "
        f"{percent(float(miss.abs().max()), 1)} at most",
        judged(inside),
        on=on,
    )


def too_low(frame: Frame) -> list[str]:
    """How far the usual estimate lies below the truth for the other probabilities, ascending."""
    lenient = frame[frame["rho"] != STRICT]
    return [percent(float(missed(rows).mean()), 0) for _, rows in lenient.groupby("rho")]


def same_for_all(frame: Frame) -> Finding:
    """Judge the usual estimate for other probabilities."""
    return Finding(
        "may it stand in for 0.90 and 0.95, with the same copies?",
        "",
        f"no: it is too low by {' and '.join(too_low(frame))} of the points in the mean",
        Agreement.UNSAID,
    )


def false_holding(frame: Frame, on: str) -> Finding:
    """Single points that the usual estimate is wrong about."""
    return Finding(
        "how many of the points that it calls robust are not, and how many robust ones does it miss?",
        "",
        f"{percent(float(frame['false'].mean()), 1)} surely flip more often ({percent(float(frame['false'].max()), 1)} "
        f"on the worst network), and {percent(float(frame['doubted'].mean()), 1)} of the robust ones are missed",
        Agreement.UNSAID,
        on=f"{on} noise",
    )


def repeats(frame: Frame) -> Finding:
    """From one repeat to the next."""
    strict = strict_of(frame)
    ranges = strict["usual_most"] - strict["usual_least"]
    return Finding(
        "how far apart are runs with other draws?",
        "",
        f"on {int(frame['points'].iloc[0])} points up to {percent(float(ranges.mean()), 1)} in the mean, and "
        f"{percent(float(ranges.max()), 1)} at most",
        Agreement.UNSAID,
    )


def library(frame: Frame) -> Finding:
    """Judge the library's answer."""
    sure = (frame["lower"] <= frame["truth_high"]) & (frame["truth_low"] <= frame["upper"])
    return Finding(
        "what does counting until each point is decided give?",
        "",
        f"its range overlaps the truth's at {int(sure.sum())} of {len(frame)} networks, levels and limits",
        Agreement.UNSAID,
    )


def cost(frame: Frame) -> Finding:
    """Judge the cost of the library's answer."""
    strict = strict_of(frame)
    return Finding(
        "what does it cost?",
        "",
        f"{decimals(float(strict['passes'].mean()), 0)} passes a point for {decimals(STRICT, 2)}, after which "
        f"{decimals(float(strict['undecided'].mean()), 1)} points stay undecided in the mean",
        Agreement.UNSAID,
    )
