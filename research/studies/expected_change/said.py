"""Findings of the study, a line each; figures of the paper are in the claims, ours come from the results."""

from __future__ import annotations

from studies.agreement import judged_by_share
from studies.expected_change.measures import CONFIDENT, LONG, RADII
from studies.expected_change.rules import IMAGES, TOLERANCE, Frames, holds, papers, read
from studies.expected_change.summary import ALL, RANKING, SURELY, noise_of
from studies.groups import ATTACKED
from studies.markdown import data_name, decimals, percent
from studies.study import Agreement, Finding, Tables
from studies.tables import Frame

NAMED = {"bends": "networks that bend", "piecewise linear": "piecewise linear networks"}
"""Groups of networks in words."""

PAPERS_DATA = ("mnist", "cifar10")
"""Data sets whose corruptions the paper looks at."""

NETWORKS = 3
"""Networks below which no mean over them is given."""

LEVEL = 0.05
"""Level of the tests; the paper prints p-values and names no level."""


def findings(tables: Tables) -> list[Finding]:
    """Return every finding, from the results."""
    frames = read(tables)
    changes, corrupted = papers(frames["changes"]), frames["corrupted"]
    return [
        *(theorem(rows, str(group)) for group, rows in changes.groupby("group")),
        *(sign(rows, str(group)) for group, rows in changes.groupby("group")),
        table_1(frames),
        *(figure_4(rows, str(group)) for group, rows in papers(frames["flips"]).groupby("group")),
        beside_confidence(frames), *among_confident(frames),
        *(corrupted_larger(rows, str(dataset)) for dataset, rows in corrupted.groupby("dataset")),
        *(grows(rows, str(dataset)) for dataset, rows in corrupted.groupby("dataset")),
        *models(frames), bound(changes), moments(changes), cost(frames["networks"]),
    ]  # fmt: skip


def theorem(frame: Frame, group: str) -> Finding:
    """Judge the theorem, on the networks of one group."""
    holding = holds(frame)
    return Finding(
        "the expected change is r^2 / (2n) times the Laplacian",
        "theorem 1",
        f"the prediction holds in {int(holding.sum())} of {len(holding)} cases",
        judged_by_share(holding),
        on=NAMED[group],
    )


def signs(frame: Frame) -> tuple[str, int, int]:
    """Return the share of points with the Laplacian's sign, and on how many networks and lengths it is high."""
    shares = frame.dropna(subset="sign")["sign"]
    return percent(float(shares.mean())), int((shares >= TOLERANCE).sum()), len(shares)


def sign(frame: Frame, group: str) -> Finding:
    """Which way the probability moves."""
    share, high, cases = signs(frame)
    return Finding(
        "where the Laplacian is below zero the probability is expected to fall, where it is above zero to rise",
        "section 3",
        f"at {share} of the points, and at nearly all of them in {high} of {cases} cases",
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
        f"they flip more in {int(more.sum())} of {len(flipping)} cases with any flip, on "
        f"{flipping['network'].nunique()} networks",
        judged_by_share(more),
    )


def figure_4(frame: Frame, group: str) -> Finding:
    """Judge the Laplacian of points that flipped at least once."""
    surely = frame[frame["p"] < LEVEL]
    lower = surely["laplacian_ever"] < surely["laplacian_never"]
    return Finding(
        "points that flipped at least once have a lower Laplacian than those that never did",
        "figure 4",
        f"in {int(lower.sum())} of the {len(lower)} cases with a significant difference",
        judged_by_share(lower),
        on=NAMED[group],
    )


BESIDE = "does the Laplacian tell the points that lose their class better than confidence?"


def aucs(frames: Frames, length: float, among: str) -> Frame:
    """How well each score finds the points that lose their class under noise of a length: a row for each network."""
    frame = frames["ranking"]
    chosen = (frame["outcome"] == noise_of(length)) & (frame["among"] == among)
    wide = frame[chosen].pivot_table(index="network", columns="score", values="auc", sort=False)
    return wide.reindex(columns=[*RANKING]).dropna(how="all")


def ranked(frames: Frames, length: float, among: str) -> list[float]:
    """Return the mean AUC over networks of the Laplacian, its size alone, and confidence; NaN for none."""
    means = aucs(frames, length, among).mean()
    return [float(means[name]) for name in ("laplacian", "laplacian size", "max_probability")]


def better(area: float, reference: float) -> str:
    """Which of two AUC is larger, to two digits."""
    return "yes" if round(area, 2) > round(reference, 2) else "no"


def beside_confidence(frames: Frames) -> Finding:
    """Judge the Laplacian as a ranking, beside what one pass gives."""
    laplacian, _, confidence = ranked(frames, RADII[-1], ALL)
    return Finding(
        BESIDE,
        "",
        f"{better(laplacian, confidence)}: AUC {decimals(laplacian, 2)}, confidence {decimals(confidence, 2)}",
        Agreement.UNSAID,
        on=f"all points, length {RADII[-1]:g}",
    )


def lengths_among_confident(frames: Frames) -> list[float]:
    """Return the lengths at which confident points of enough networks lose their class."""
    return [length for length in LONG if len(aucs(frames, length, SURELY)) >= NETWORKS]


def among_confident(frames: Frames) -> list[Finding]:
    """Judge the same as the paper asks it: of points whose prediction is not uncertain (section 3.1.1)."""
    lines = []
    for length in lengths_among_confident(frames):
        laplacian, size, confidence = ranked(frames, length, SURELY)
        lines.append(Finding(
            BESIDE,
            "",
            f"{better(laplacian, confidence)}: AUC {decimals(laplacian, 2)}, its size {decimals(size, 2)}, confidence "
            f"{decimals(confidence, 2)}",
            Agreement.UNSAID,
            on=f"p of {CONFIDENT:g} or more, length {length:g}, networks: {len(aucs(frames, length, SURELY))}",
        ))  # fmt: skip
    return lines


def on_enough(frame: Frame) -> tuple[Frame, bool]:
    """Return the networks with enough corrupted images where there are several, or else all; and whether there are."""
    enough = frame[frame["images"] >= IMAGES]
    return (enough, True) if enough["network"].nunique() >= NETWORKS else (frame, False)


def images_of(frame: Frame, dataset: str) -> str:
    """Name the data set and the numbers of images and networks of a mean."""
    images, networks = int(frame["images"].min()), frame["network"].nunique()
    return f"{data_name(dataset)}, {images} images, networks: {networks}"


def judged_on(dataset: str, enough: bool, holding: Frame) -> Agreement:
    """Return the judgement of what the paper says of two data sets; on others, and of a few images, there is none."""
    if dataset.split("_")[0] not in PAPERS_DATA:
        return Agreement.UNSAID
    return judged_by_share(holding) if enough else Agreement.UNMEASURED


def corrupted_larger(frame: Frame, dataset: str) -> Finding:
    """Judge the size of the Laplacian on corrupted images and on the same images clean."""
    frame, enough = on_enough(frame)
    larger = frame["corrupted"] > frame["clean"]
    return Finding(
        "the mean size of the Laplacian is larger on corrupted images: for 83 of 95 kinds and levels on CIFAR-10-C, "
        "for all on MNIST-C",
        "figures 5, 8",
        f"for {int(larger.sum())} of {len(larger)} networks, kinds and severities",
        judged_on(dataset, enough, larger),
        on=images_of(frame, dataset),
    )


def grows(frame: Frame, dataset: str) -> Finding:
    """Check that the size grows with the severity."""
    frame, enough = on_enough(frame)
    weakest, strongest = (
        frame[frame["severity"] == severity].set_index(["network", "kind"])["corrupted"]
        for severity in (frame["severity"].min(), frame["severity"].max())
    )
    rises = strongest.reindex(weakest.index) > weakest
    return Finding(
        "the size of the Laplacian grows with the severity, for most kinds",
        "figure 8",
        f"larger at the highest than at the lowest for {int(rises.sum())} of {len(rises)} networks and kinds",
        judged_on(dataset, enough, rises),
        on=data_name(dataset),
    )


def models(frames: Frames) -> list[Finding]:
    """Adversarial training beside plain training."""
    if "models" not in frames:
        return []
    frame = frames["models"]
    lines = []
    for group, rows in frame[frame["way"].isin(ATTACKED)].groupby("group"):
        surely = rows["p"] < LEVEL
        lines.append(Finding(
            "adversarial training makes the mean size of the Laplacian smaller",
            "figure 6",
            f"on {int((rows['ratio'] < 1).sum())} of {len(rows)} networks, significantly on "
            f"{int((surely & (rows['ratio'] < 1)).sum())}",
            judged_by_share(rows["ratio"][surely] < 1),
            on=NAMED[str(group)],
        ))  # fmt: skip
    return lines


def bound(frame: Frame) -> Finding:
    """Judge the bound on the mean size of the change."""
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
    """Judge the cost of a Laplacian."""
    passes = [decimals(float(rows["passes"].mean()), 0) for _, rows in frame.groupby("group")]
    return Finding(
        "does the Laplacian take the whole, expensive Hessian?",
        "section 5",
        f"no: in the mean {' passes on networks that bend and '.join(passes)} on the others",
        Agreement.UNSAID,
    )
