"""What the study found, a line for each thing. Figures of the paper stand in the claims, ours come from the results."""

from __future__ import annotations

from studies.agreement import judged_by_share
from studies.expected_change.measures import RADII
from studies.expected_change.rules import TOLERANCE, Frames, holds, papers, read
from studies.groups import ATTACKED
from studies.markdown import data_name, decimals, percent
from studies.study import Agreement, Finding, Tables
from studies.tables import Frame

NAMED = {"bends": "networks that bend", "piecewise linear": "piecewise linear networks"}
"""Groups of networks in words."""

LEVEL = 0.05
"""Of the tests; the paper prints p-values and names no level."""


def findings(tables: Tables) -> list[Finding]:
    """Every finding, from the results."""
    frames = read(tables)
    changes, corrupted = papers(frames["changes"]), frames["corrupted"]
    return [
        *(theorem(own, str(group)) for group, own in changes.groupby("group")),
        *(sign(own, str(group)) for group, own in changes.groupby("group")),
        table_1(frames),
        *(figure_4(own, str(group)) for group, own in papers(frames["flips"]).groupby("group")),
        beside_confidence(frames),
        *(corrupted_larger(own, str(dataset)) for dataset, own in corrupted.groupby("dataset")),
        *(grows(own, str(dataset)) for dataset, own in corrupted.groupby("dataset")),
        *models(frames), bound(changes), moments(changes), cost(frames["networks"]),
    ]  # fmt: skip


def theorem(frame: Frame, group: str) -> Finding:
    """The theorem, on the networks of one group."""
    holding = holds(frame)
    return Finding(
        "the expected change is r^2 / (2n) times the Laplacian",
        "theorem 1",
        f"the prediction holds in {int(holding.sum())} of {len(holding)} cases",
        judged_by_share(holding),
        on=NAMED[group],
    )


def signs(frame: Frame) -> tuple[str, int, int]:
    """The share of the points with the sign of the Laplacian, and on how many networks and lengths it is high."""
    there = frame.dropna(subset="sign")["sign"]
    return percent(float(there.mean())), int((there >= TOLERANCE).sum()), len(there)


def sign(frame: Frame, group: str) -> Finding:
    """Which way the probability moves."""
    share, high, cases = signs(frame)
    return Finding(
        "where the Laplacian is below zero the probability is expected to fall, where it is above zero to rise",
        "section 3",
        f"it does so at {share} of the points, and at nearly all of them in {high} of {cases} cases",
        judged_by_share(frame.dropna(subset="sign")["sign"] >= TOLERANCE),
        on=NAMED[group],
    )


def table_1(frames: Frames) -> Finding:
    """Flips of confident points with the lowest and the highest Laplacian."""
    frame = papers(frames["flips"]).dropna(subset="bottom")
    flipping = frame[(frame["bottom"] > 0) | (frame["top"] > 0)]
    more = flipping["bottom"] > flipping["top"]
    return Finding(
        "of confident predictions those with the lowest Laplacian flip most: MNIST 19.4% of the copies against 3.4% at "
        "length 2",
        "table 1",
        f"they flip more in {int(more.sum())} of {len(flipping)} cases, the only ones with any flip, on "
        f"{flipping['network'].nunique()} networks",
        judged_by_share(more),
    )


def figure_4(frame: Frame, group: str) -> Finding:
    """The Laplacian of points that flipped at least once."""
    surely = frame[frame["p"] < LEVEL]
    lower = surely["laplacian_ever"] < surely["laplacian_never"]
    return Finding(
        "points that flipped at least once have a lower Laplacian than those that never did",
        "figure 4",
        f"in {int(lower.sum())} of the {len(lower)} cases with a significant difference",
        judged_by_share(lower),
        on=NAMED[group],
    )


def ranked(frames: Frames) -> list[str]:
    """AUC of the Laplacian and of confidence for the points that lose their class at the longest noise."""
    frame = frames["ranking"].dropna(subset="auc")
    there = frame[(frame["outcome"] == f"noise of length {RADII[-1]:g}") & (frame["among"] == "all")]
    means = there.groupby("score")["auc"].mean()
    return [decimals(float(means.get(name, float("nan"))), 2) for name in ("laplacian", "max_probability")]


def beside_confidence(frames: Frames) -> Finding:
    """The Laplacian as a ranking, beside what one pass gives."""
    own, confidence = ranked(frames)
    return Finding(
        "does the Laplacian tell the points that lose their class better than confidence, which costs one pass?",
        "",
        f"no: over all points its AUC is {own}, that of confidence {confidence}",
        Agreement.UNSAID,
    )


def corrupted_larger(frame: Frame, dataset: str) -> Finding:
    """The size of the Laplacian on corrupted images and on the same images clean."""
    larger = frame["corrupted"] > frame["clean"]
    return Finding(
        "the mean size of the Laplacian is larger on corrupted images: for 83 of 95 kinds and levels on CIFAR-10-C, "
        "for "
        "all on MNIST-C",
        "figures 5, 8",
        f"for {int(larger.sum())} of {len(larger)} networks, kinds and severities",
        judged_by_share(larger),
        on=data_name(dataset),
    )


def grows(frame: Frame, dataset: str) -> Finding:
    """Whether it grows with the severity."""
    least, strongest = (
        frame[frame["severity"] == one].set_index(["network", "kind"])["corrupted"]
        for one in (frame["severity"].min(), frame["severity"].max())
    )
    rises = strongest.reindex(least.index) > least
    return Finding(
        "the size of the Laplacian grows with the severity, for most kinds",
        "figure 8",
        f"it is larger at the highest severity than at the lowest for {int(rises.sum())} of {len(rises)} networks and "
        f"kinds",
        judged_by_share(rises),
        on=data_name(dataset),
    )


def models(frames: Frames) -> list[Finding]:
    """Adversarial training beside plain training."""
    if "models" not in frames:
        return []
    frame = frames["models"]
    found = []
    for group, own in frame[frame["way"].isin(ATTACKED)].groupby("group"):
        surely = own["p"] < LEVEL
        found.append(Finding(
            "adversarial training makes the mean size of the Laplacian smaller",
            "figure 6",
            f"on {int((own['ratio'] < 1).sum())} of {len(own)} networks, significantly on "
            f"{int((surely & (own['ratio'] < 1)).sum())}",
            judged_by_share(own["ratio"][surely] < 1),
            on=NAMED[str(group)],
        ))  # fmt: skip
    return found


def bound(frame: Frame) -> Finding:
    """The bound on the mean size of the change."""
    loose = frame.groupby("radius")["loose"].median()
    return Finding(
        "is the mean size of the change at most the bound of equation 7, put right?",
        "",
        f"nearly everywhere, and it is {decimals(float(loose.min()), 0)} to {decimals(float(loose.max()), 0)} times as "
        f"large in the median",
        Agreement.UNSAID,
    )


def moments(frame: Frame) -> Finding:
    """Variance and mean size, which the paper leaves for later."""
    rows = frame[["sampled_variance", "tangent_variance"]].median()
    return Finding(
        "the variance of the change is left as future work: how near is the library's?",
        "section 5",
        f"off by {percent(rows['sampled_variance'])} where sampled and by {percent(rows['tangent_variance'])} from one "
        f"gradient",
        Agreement.UNSAID,
    )


def cost(frame: Frame) -> Finding:
    """What a Laplacian costs."""
    passes = [decimals(float(own["passes"].mean()), 0) for _, own in frame.groupby("group")]
    return Finding(
        "does the Laplacian take the whole, expensive Hessian?",
        "section 5",
        f"no: in the mean {' passes on networks that bend and '.join(passes)} on the others",
        Agreement.UNSAID,
    )
