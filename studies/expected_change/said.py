"""What the study found about single points, a line for each thing."""

from __future__ import annotations

import numpy as np

from studies.expected_change.models_said import LEVEL, corrupted_larger, cost, grows, models, right_and_wrong
from studies.expected_change.rules import (
    SOURCE,
    TOLERANCE,
    Frames,
    count,
    holds,
    judged_by_share,
    papers,
    reach,
    read,
    share_of,
)
from studies.expected_change.summary import CONFIDENT, RADII
from studies.markdown import decimals, percent, significant, slashed, with_ends
from studies.over_networks import mean_of, over_networks
from studies.study import Agreement, Finding, Tables
from studies.tables import Frame

NAMED = {"bends": "networks that bend", "piecewise linear": "piecewise linear networks"}
"""Groups of networks in words."""


def findings(tables: Tables) -> list[Finding]:
    """Every finding, from the results."""
    frames = read(tables)
    groups = [*dict.fromkeys(frames["networks"]["group"])]
    return [
        *(theorem(frames, group) for group in sorted(groups)), sign(frames), table_1(frames), figure_4(frames),
        beside_confidence(frames), corrupted_larger(frames), grows(frames), models(frames), right_and_wrong(frames),
        bound(frames), moments(frames), cost(frames),
    ]  # fmt: skip


def lengths(frame: Frame) -> str:
    """The lengths of the noise in a frame, with a stroke between them."""
    return " / ".join(f"{one:g}" for one in sorted(set(frame["radius"])))


def theorem(frames: Frames, group: str) -> Finding:
    """The theorem, on the networks of one group."""
    frame = frames["changes"].query("group == @group")
    holding = holds(papers(frame))
    reached = reach(frame)
    ratios = frame.groupby("radius")["ratio"].quantile([0.25, 0.75]).unstack()
    ends = [f"{significant(one[0.25])} to {significant(one[0.75])}" for _, one in ratios.iterrows()]
    near = frame["ratio"].between(TOLERANCE, 1 / TOLERANCE).groupby(frame["radius"]).sum()
    errors = frame.assign(error=frame[["error", "told"]].max(axis=1)).groupby("radius")["error"].median()
    up_to = [f"{int((reached >= one).sum())}" for one in RADII]
    why = {
        "bends": "the next term grows with the fourth power of the length: where the noise is long beside the distance "
        "at which the prediction changes, the second order no longer describes it; a few points that bend sharply can "
        "make the error large where the median is right",
        "piecewise linear": "between kinks the second derivatives know of the softmax alone; noise of these lengths "
        "crosses kinks, which bend the probability, too, and the Laplacian sees none of them; where the point itself "
        "lies on a kink, as with pooling over a black background, the change grows with the length, not its square; "
        "the theorem asks for derivatives that do not exist at kinks, but the paper applies it to networks with "
        "PReLU, which have kinks, too",
    }
    return Finding(
        "the expected change is r^2 / (2n) times the Laplacian, up to higher orders",
        f"{SOURCE}, theorem 1; here: {NAMED[group]}",
        f"noise of length {lengths(frame)}: the true change, in the median over points, is {' / '.join(ends)} times "
        f"the predicted one on the middle half of {count(frame)} networks, and between {decimals(TOLERANCE, 1)} and "
        f"{decimals(1 / TOLERANCE, 2)} times on {' / '.join(map(str, near))}; the root of the mean square error (or "
        f"the least that the count could show) is {' / '.join(percent(one) for one in errors)} of the change; the "
        f"prediction holds up to that length on {' / '.join(up_to)} networks; at the paper's lengths it holds in "
        f"{int(holding.sum())} of {len(holding)} cases",
        judged_by_share(share_of(holding)),
        why[group],
    )


def sign(frames: Frames) -> Finding:
    """Which way the probability moves."""
    frame = papers(frames["changes"]).dropna(subset="sign")
    right = frame["sign"] >= TOLERANCE
    parts = []
    for group, own in frame.groupby("group"):
        shares = [mean_of(there["sign"], percent) for _, there in own.groupby("radius")]
        parts.append(f"{' / '.join(shares)} on {NAMED[str(group)]}")
    return Finding(
        "where the Laplacian is below zero the probability is expected to fall, where it is above zero to rise",
        f"{SOURCE}, section 3",
        f"at lengths {lengths(frame)}, of the points whose mean change is surely not zero its sign is right at "
        f"{' and '.join(parts)}; at {decimals(TOLERANCE, 1)} of them or more on {int(right.sum())} of {len(right)} "
        f"networks and lengths; the probability falls at {percent(float(frame['falls'].mean()))} of these points",
        judged_by_share(share_of(right)),
        "where the network bends nearly every probability falls, being near its ceiling, so the sign is easily right; "
        "where pooling takes the largest of equal pixels, noise can only raise that, and the Laplacian does not see it",
    )


def table_1(frames: Frames) -> Finding:
    """Flips of confident points with the lowest and the highest Laplacian."""
    frame = papers(frames["flips"]).dropna(subset="bottom")
    flipping = frame[(frame["bottom"] > 0) | (frame["top"] > 0)]
    more = flipping["bottom"] > flipping["top"]
    means = frame.groupby("radius")[["bottom", "top"]].mean()
    return Finding(
        "of confident predictions those with the lowest Laplacian flip most: MNIST 5.1% / 9.9% / 19.4% of the copies "
        "against 0.02% / 2.0% / 3.4% at lengths 0.5 / 1 / 2",
        f"{SOURCE}, table 1",
        f"at lengths {lengths(frame)} the lowest quarter flips in "
        f"{' / '.join(percent(one, 2) for one in means['bottom'])} and the highest in "
        f"{' / '.join(percent(one, 2) for one in means['top'])} of the copies in the mean over networks; the lowest "
        f"flips more on {int(more.sum())} of the {len(flipping)} networks and lengths where any of them flips",
        judged_by_share(share_of(more)),
        f"a prediction of probability {decimals(CONFIDENT, 1)} bends more than one near its ceiling, so most of the "
        f"order is that of confidence; only the order of the two groups is judged, because lengths are in other units "
        f"than the paper's",
    )


def figure_4(frames: Frames) -> Finding:
    """The Laplacian of points that flipped at least once."""
    frame = papers(frames["flips"]).dropna(subset="p")
    lower = frame["laplacian_ever"] < frame["laplacian_never"]
    significant_ones = frame["p"] < LEVEL
    surely = lower & significant_ones
    return Finding(
        "points that flipped at least once have a lower Laplacian than those that never did",
        f"{SOURCE}, figure 4",
        f"it is lower on {int(lower.sum())} of {len(frame)} networks and lengths with enough points of both kinds, "
        f"and with Welch's p below {decimals(LEVEL, 2)} on {int(surely.sum())}; on "
        f"{int((~lower & significant_ones).sum())} it is significantly higher",
        judged_by_share(float(surely.sum()) / float(significant_ones.sum()) if significant_ones.any() else np.nan),
        "points that flip are less confident, where probabilities fall faster; at a tie between two classes the "
        "Laplacian changes its sign, so the points that flip first need not have the lowest; cases without "
        "significance are not judged, because few points flip",
    )


def beside_confidence(frames: Frames) -> Finding:
    """The Laplacian as a ranking, beside what one pass gives."""
    frame = frames["ranking"].dropna(subset="auc")
    parts, outcomes = [], ("corruption", f"noise of length {RADII[-1]:g}")
    for outcome in outcomes:
        for among in ("all", "confident"):
            there = frame[(frame["outcome"] == outcome) & (frame["among"] == among)]
            if len(there):
                means = {name: mean_of(own["auc"], lambda value: decimals(value, 2)) for name, own in
                         there.groupby("score")}  # fmt: skip
                parts.append(
                    f"{among} points, {outcome}: Laplacian {means['laplacian']}, its size {means['laplacian size']}, "
                    f"confidence {means['max_probability']}, margin {means['logit_margin']}"
                )
    return Finding(
        "does the Laplacian tell the points that lose their class better than confidence, which costs one pass?",
        "",
        f"AUC in the mean over networks; {'; '.join(parts)}",
        Agreement.UNSAID,
        "where class scores do not bend the Laplacian follows from the probabilities and the gradients; the "
        "gradients add something to confidence, but near a tie, where points are weakest, its sign turns",
    )


def bound(frames: Frames) -> Finding:
    """The bound on the mean size of the change."""
    frame = frames["changes"]
    where = papers(frame)
    held = frame.groupby("network")["violated"].max() == 0
    loose = over_networks(where, ["radius"], [], ["loose"], 0)
    texts = [with_ends(one, "loose", significant) for one in loose.to_dict("records")]
    broken = float(frame["violated"].max())
    return Finding(
        "is the mean size of the change at most the bound of equation 7, with its factor and its absolute values put "
        "right?",
        "",
        f"it holds at every point and length on {int(held.sum())} of {len(held)} networks; at worst "
        f"{percent(broken, 1)} of the points of a network are surely above it at one length; at lengths "
        f"{lengths(where)} it is {' / '.join(texts)} times the mean size, by the median over points",
        Agreement.UNSAID,
        "it adds the absolute values of all partial derivatives, so it grows with the number of pixels that matter; it "
        "bounds the second-order model, so where the network bends more within the noise the change can be larger; as "
        "printed it is not a bound for every function (see `docs/explanation/expected-change.md`)",
    )


def moments(frames: Frames) -> Finding:
    """Variance and mean size, which the paper leaves for later."""
    frame = papers(frames["changes"])
    rows = frame.groupby("radius")[
        ["sampled_mean", "sampled_variance", "tangent_variance", "sampled_absolute", "tangent_absolute"]
    ].median()
    return Finding(
        "the variance of the change is left as future work",
        f"{SOURCE}, section 5",
        f"at lengths {lengths(frame)} the median over networks of the relative error is, for the mean change sampled "
        f"by the library, {slashed(rows['sampled_mean'], 2)}; for the variance sampled "
        f"{slashed(rows['sampled_variance'], 2)} and from the gradient alone {slashed(rows['tangent_variance'], 2)}; "
        f"for the mean size sampled {slashed(rows['sampled_absolute'], 2)} and from the gradient "
        f"{slashed(rows['tangent_absolute'], 2)}",
        Agreement.UNSAID,
        "the gradient gives both in one Jacobian, for short noise; sampling gives them for every length, with an error "
        "that falls with the number of draws",
    )
