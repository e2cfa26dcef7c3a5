"""What the study found, a line for each thing."""

from __future__ import annotations

import numpy as np

from studies.agreement import judged
from studies.markdown import decimals, percent
from studies.probabilistic_accuracy.blocks import COPIES
from studies.study import Agreement, Finding, Tables
from studies.tables import Frame

SOURCE = "PRBench, arXiv 2511.01724, and its code"

ROUNDED = 9
"""Digits that shares of points are known to: their means are rounded."""

STRICT = 0.99
"""The `rho` that the usual estimate is given for."""


def results(tables: Tables) -> Frame:
    """A row for each network, level and `rho`."""
    return tables["accuracy"].to_pandas()


def findings(tables: Tables) -> list[Finding]:
    """Every finding, from the results."""
    frame = results(tables)
    return [usual(frame), same_for_all(frame), false_holding(frame), repeats(frame), library(frame)]


def missed(frame: Frame) -> Frame:
    """How far the usual estimate is from the truth: 0 where it may be right."""
    below, above = frame["truth_low"] - frame["usual"], frame["usual"] - frame["truth_high"]
    return (below.clip(lower=0) - above.clip(lower=0)).round(ROUNDED) + 0.0


def _where(frame: Frame, level: str, rho: float = STRICT) -> Frame:
    return frame[(frame["level"] == level) & (frame["rho"] == rho)]


def _levels(frame: Frame) -> list[str]:
    return [*dict.fromkeys(frame["level"])]


def _each(numbers: list[str]) -> str:
    return " / ".join(numbers)


def usual(frame: Frame) -> Finding:
    """The usual estimate for the probability that it is meant for."""
    strict = frame[frame["rho"] == STRICT]
    inside = missed(strict) == 0
    low, high = strict.groupby("level", sort=False)[["truth_low", "truth_high"]].mean().to_numpy().T
    found = strict.groupby("level", sort=False)["usual"].mean()
    truths = [f"{percent(one, 1)} to {percent(other, 1)}" for one, other in zip(low, high, strict=True)]
    return Finding(
        "the share of points that flip with probability 0.01 or less is the share without a flip in 100 copies",
        SOURCE,
        f"at {_each(_levels(frame))} noise the truth is {_each(truths)} of the points in the mean over networks; "
        f"without a flip in {COPIES} copies are {_each([percent(one, 1) for one in found])}; that is within the "
        f"range of the truth on {int(inside.sum())} of {len(strict)} networks and levels, the largest miss is "
        f"{percent(float(missed(strict).abs().max()), 1)}",
        judged(inside),
        f"a point that flips at exactly the limit passes with a chance of {percent(STRICT**COPIES)}; points above the "
        f"limit that pass and points below that fail cancel in part",
    )


def same_for_all(frame: Frame) -> Finding:
    """The usual estimate for other probabilities."""
    others = frame[frame["rho"] != STRICT]
    parts = []
    for rho in sorted(set(others["rho"])):
        one = others[others["rho"] == rho]
        parts.append(f"{percent(float(missed(one).mean()), 1)} for {decimals(rho, 2)}")
    return Finding(
        "may it stand in for other probabilities than 0.99, with the same copies?",
        "",
        f"no flip in {COPIES} copies is one number for every limit; it is too low by {_each(parts)} in the mean over "
        f"networks and levels",
        Agreement.UNSAID,
        "to ask for a limit the share of flips has to be compared with it, with an interval",
    )


def false_holding(frame: Frame) -> Finding:
    """Single points that the usual estimate is wrong about."""
    rows = [_where(frame, level) for level in _levels(frame)]
    return Finding(
        "how many of the points that it calls robust are not, and how many robust ones does it miss?",
        "",
        f"at {_each(_levels(frame))} noise {_each([percent(float(one['false'].mean()), 1) for one in rows])} of those "
        f"without a flip surely flip more often than the limit allows (at worst "
        f"{_each([percent(float(one['false'].max()), 1) for one in rows])} on a network), and "
        f"{_each([percent(float(one['doubted'].mean()), 1) for one in rows])} of those that surely hold are missed",
        Agreement.UNSAID,
        f"the chance of no flip falls slowly with the flip probability: a point at twice the limit still has it "
        f"{percent((1 - 2 * (1 - STRICT)) ** COPIES)} of the time",
    )


def repeats(frame: Frame) -> Finding:
    """From one repeat to the next."""
    rows = [_where(frame, level) for level in _levels(frame)]
    ranges = [one["usual_most"] - one["usual_least"] for one in rows]
    points = int(frame["points"].iloc[0])
    return Finding(
        "how far apart are two runs with other draws?",
        "",
        f"on {points} points the largest and the smallest of all repeats differ by "
        f"{_each([percent(float(one.mean()), 1) for one in ranges])} in the mean over networks and by "
        f"{_each([percent(float(one.max()), 1) for one in ranges])} at most",
        Agreement.UNSAID,
        "the estimate comes without an interval that would say so; on more points the spread shrinks, and what the "
        "estimate is off by in the mean stays",
    )


def library(frame: Frame) -> Finding:
    """The library's answer."""
    held = (frame["low"] <= frame["truth_high"]) & (frame["truth_low"] <= frame["high"])
    sure = (frame["lower"] <= frame["truth_high"]) & (frame["truth_low"] <= frame["upper"])
    strict = frame[frame["rho"] == STRICT]
    easier = frame[frame["rho"] != STRICT]
    return Finding(
        "what does counting until each point is decided give, and what does it cost?",
        "",
        f"`probabilistic_accuracy` with `until='decided'`: its range for these points overlaps the truth's "
        f"at {int(sure.sum())} of {len(frame)} networks, levels and limits, its interval for the population at "
        f"{int(held.sum())}; {decimals(float(strict['undecided'].mean()), 1)} points stay undecided in the mean for "
        f"{decimals(STRICT, 2)} with {decimals(float(strict['passes'].mean()), 0)} passes a point, "
        f"{decimals(float(easier['undecided'].mean()), 1)} for the others with "
        f"{decimals(float(easier['passes'].mean()), 0)}",
        Agreement.UNSAID,
        "most points are decided early; those near the limit take all the copies that they may have",
    )


def worst(frame: Frame) -> Frame:
    """The rows for the strictest probability, those first where the usual estimate is farthest off."""
    strict = frame[frame["rho"] == STRICT]
    return strict.assign(miss=missed(strict)).sort_values("miss", key=np.abs, ascending=False, kind="stable")
