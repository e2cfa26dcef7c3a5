"""What the study found about corrupted images, about whole models and about cost, a line for each thing."""

from __future__ import annotations

from studies.expected_change.rules import SOURCE, Frames, judged_by_share, share_of
from studies.groups import ATTACKED
from studies.markdown import decimals, percent, significant, with_ends
from studies.over_networks import mean_of, over_networks
from studies.study import Agreement, Finding

LEVEL = 0.05
"""Of the tests; the paper prints p-values and names no level."""


def corrupted_larger(frames: Frames) -> Finding:
    """The size of the Laplacian on corrupted images and on the same images clean."""
    frame = frames["corrupted"]
    larger, ratio = frame["corrupted"] > frame["clean"], frame["corrupted"] / frame["clean"]
    parts = [
        f"{int(larger[own.index].sum())} of {len(own)} networks, kinds and severities of {dataset} "
        f"({significant(float(ratio[own.index].median()))} times the clean size in the median)"
        for dataset, own in frame.groupby("dataset")
    ]
    ratios = ratio.groupby(frame["kind"]).median().sort_values()
    return Finding(
        "the mean size of the Laplacian is larger on corrupted images: for all kinds on MNIST-C, for 83 of 95 kinds "
        "and levels on CIFAR-10-C",
        f"{SOURCE}, figures 5 and 8",
        f"it is larger on {'; '.join(parts)}; most with {ratios.index[-1]}, least with {ratios.index[0]}",
        judged_by_share(share_of(larger)),
        "a prediction near the ceiling hardly bends, and corruption takes it away from there; a network that is unsure "
        "of clean images, too, bends there as much as on corrupted ones",
    )


def grows(frames: Frames) -> Finding:
    """Whether it grows with the severity."""
    frame = frames["corrupted"]
    least, strongest = (
        frame[frame["severity"] == one].set_index(["network", "kind"])["corrupted"]
        for one in (frame["severity"].min(), frame["severity"].max())
    )
    rises = (strongest.reindex(least.index) > least).to_numpy()
    return Finding(
        "the size of the Laplacian grows with the severity, for most kinds",
        f"{SOURCE}, figure 8",
        f"it is larger at severity {frame['severity'].max()} than at {frame['severity'].min()} in "
        f"{int(rises.sum())} of {len(rises)} networks and kinds",
        judged_by_share(float(rises.mean())),
        "as above; strong corruption may leave a network sure of the wrong class, with a small Laplacian",
    )


def models(frames: Frames) -> Finding:
    """Adversarial training beside plain training."""
    claim, source = "adversarial training makes the mean size of the Laplacian smaller", f"{SOURCE}, figure 6"
    if "models" not in frames:
        return Finding(claim, source, "no network has a plain one beside it", Agreement.UNMEASURED, "")
    everything = frames["models"]
    frame = everything[everything["way"].isin(ATTACKED)]
    others = everything[~everything["way"].isin(ATTACKED)]
    smaller, surely = frame["ratio"] < 1, frame["p"] < LEVEL
    ratio, change = (
        over_networks(frame.assign(every="all"), ["every"], [], [name], 0).iloc[0] if len(frame) else None
        for name in ("ratio", "change")
    )
    if ratio is None or change is None:
        return Finding(claim, source, "no network is trained so", Agreement.UNMEASURED, "")
    smooth = frame[frame["group"] == "bends"]
    own = "".join(f"; `{one.network}` {significant(one.ratio)} times" for one in smooth.itertuples())
    return Finding(
        claim,
        source,
        f"it is {with_ends(ratio, 'ratio', significant)} times that of the plain network of the same architecture "
        f"over {len(frame)} networks, smaller on {int(smaller.sum())}, with Welch's p below {decimals(LEVEL, 2)} on "
        f"{int((smaller & surely).sum())}, and with such a p larger on {int((~smaller & surely).sum())}{own}; "
        f"the counted mean size of the change is {with_ends(change, 'change', significant)} times, and "
        f"smaller on {int((frame['change'] < 1).sum())}; of {len(others)} "
        f"networks trained in other ways {int((others['ratio'] < 1).sum())} have a smaller one",
        judged_by_share(share_of(smaller[surely])),
        "cases without significance are not judged, because a few large values make the means uncertain; where "
        "networks are piecewise linear the Laplacian at the point leaves out what kinks do; the counted change "
        "does not, and is set beside it for that reason; of the ways of training the paper has one, on inputs "
        "changed by the sign of the gradient (`fgsm`)",
    )


def right_and_wrong(frames: Frames) -> Finding:
    """The Laplacian of right and of wrong predictions."""
    frame = frames["networks"]
    both = frame.dropna(subset="laplacian_wrong")
    above = both["laplacian_wrong"] > both["laplacian_right"]
    return Finding(
        "is the Laplacian of wrong predictions lower than that of right ones?",
        "",
        f"its mean is {mean_of(frame['laplacian_right'], significant)} over right predictions in the mean over "
        f"{len(frame)} networks; on the {len(both)} with enough wrong ones it is "
        f"{mean_of(both['laplacian_wrong'], significant)} there, and higher than over right ones on "
        f"{int(above.sum())}; it is below zero at {mean_of(frame['negative'], percent)} of the points; its rank "
        f"correlation with confidence is {mean_of(frame['laplacian_confidence'], lambda value: decimals(value, 2))}, "
        f"that of its size with entropy {mean_of(frame['size_entropy'], lambda value: decimals(value, 2))}",
        Agreement.UNSAID,
        "it is a signed curvature: below zero near the ceiling of the probability, above zero where another class has "
        "as much",
    )


def cost(frames: Frames) -> Finding:
    """What a Laplacian costs."""
    frame = frames["networks"]
    cheap = frame["passes"] < frame["inputs"]
    by_group = "; ".join(f"{group} {decimals(float(own['passes'].mean()), 0)}" for group, own in frame.groupby("group"))
    return Finding(
        "does the Laplacian take the whole, expensive Hessian, as in the packages that the paper had (section 5)?",
        "",
        f"passes through the network for a point, in the mean: {by_group}; below the number of pixels, which the trace "
        f"of the Hessian takes, on {int(cheap.sum())} of {len(frame)} networks",
        Agreement.UNSAID,
        "the part that the softmax bends follows from one Jacobian; where the network itself bends random directions "
        "estimate the rest, with an interval",
    )
