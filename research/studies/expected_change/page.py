"""Content of the study's page besides its verdicts, with all numbers of ours from the results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from studies.agreement import HALF, MOST
from studies.expected_change.measures import CONFIDENT
from studies.expected_change.rules import IMAGES, TOLERANCE, Frames, papers, read
from studies.expected_change.said import LEVEL, NAMED, aucs, lengths_among_confident, ranked, signs
from studies.expected_change.scored import PROBES
from studies.expected_change.summary import ALL, RADII, SURELY
from studies.glance import Glance, Row
from studies.markdown import NOTHING, data_name, decimals, in_words, percent, significant, table
from studies.study import Headline, Tables

FILES = {
    "changes": "true by predicted change, sign, variance and bound, by network and length",
    "flips": "flips of confident predictions by their Laplacian",
    "corrupted": "size of the Laplacian by kind and severity of corruption",
    "models": "each network beside the plain one of its architecture",
    "networks": "the Laplacian over the points of each network",
}
"""Content of each table."""


def content(tables: Tables) -> Mapping[str, Any]:
    """Return the values of the template's names."""
    frames = read(tables)
    networks, size = frames["networks"], frames["size"].iloc[0]
    lengths = in_words(f"{length:g}" for length in set(papers(frames["changes"])["radius"]))
    ratios = frames["changes"].groupby("group")["ratio"].agg(["min", "max"]).T.items()
    bending = int((networks["group"] == "bends").sum())
    return {
        "question": (
            "Noise changes the probability that a network gives to its predicted class. Yang, Liu and Bilgic predict "
            "the mean of that change from the point alone: for noise of length `r` in `n` pixels it is a factor times "
            "the *Laplacian*, the sum of the second derivatives of the probability. Does it, and does it find the "
            "predictions that flip?"
        ),
        "answer": answer(tables),
        "figure": "expected_change",
        "seen": "Lines of true by predicted change, a panel a kind: "
        + "; ".join(f"{NAMED[str(kind)]} {significant(a)} to {significant(b)}" for kind, (a, b) in ratios),
        "caption": (
            "True by predicted change against the length of the noise, a line for each network; dashed: the prediction "
            "is right."
        ),
        "rule": (
            f"A *case* is a network at one of the paper's lengths ({lengths}). A claim *agrees* from {percent(MOST)} "
            f"of "
            f"the cases on, *does not agree* up to {percent(HALF)}, else *in part*. The prediction *holds* where the "
            f"median of true by predicted change lies between {decimals(TOLERANCE, 1)} and "
            f"{decimals(1 / TOLERANCE, 2)}, and sign and order are right. Signs are those of points whose mean change "
            f"is surely not zero, *nearly all* means {percent(TOLERANCE)}. *Significant*: Welch's p below "
            f"{decimals(LEVEL, 2)}. A network *bends* where its class scores have second derivatives, as with tanh or "
            f"attention; with ReLU it is piecewise linear, and the Laplacian sees none of its kinks. AUC is that of "
            f"points that flip more often than the median, in the mean over networks. Means over fewer "
            f"than {IMAGES} images are not judged, nor are data sets that the paper leaves out. JPEG compression of "
            f"JPEG copies stands in no line."
        ),
        "uses": (
            "Use the Laplacian on networks that bend, for noise shorter than the length to which it holds; on "
            "piecewise linear ones use `ProbabilityChange` at the noise that you mean.",
            "Use confidence or a margin to find predictions that flip (one pass). Among confident predictions "
            "rank by the Laplacian.",
            "Use counted changes to compare models with kinks.",
            "Use `FirstOrderChange` or `ProbabilityChange` for the size of the change; the bound is far above.",
        ),
        "differs": table(
            ("", "paper", "here"),
            [
                ("data", "MNIST, CIFAR-10, SVHN, cells", in_words(map(data_name, networks["dataset"]))),
                ("networks", "LeNet with tanh; ResNet with PReLU", f"{len(networks)}, of which {bending} bend"),
                ("points", "a sample of 1,000", f"{int(size['points'])}; the confident ones of {int(size['many'])}"),
                ("copies", "10,000", f"{int(size['pairs'])} pairs of opposite ones"),
                ("groups of table 1", "50 of 903 confident points on MNIST", "quarters of the confident points"),
                ("corruptions", "the files of MNIST-C and CIFAR-10-C", f"{frames['corrupted']['kind'].nunique()} kinds "
                 f"(no frost), by the same strengths (weaker stripes, lines and edges are ours)"),
                ("unit of length", "normalised pixels", "pixels from black (0) to white (1)"),
                ("Laplacian", "whole Hessian", f"{PROBES} random directions where the network bends"),
            ],
        ),
        "files": {f"expected_change/{name}.csv": caption for name, caption in FILES.items() if name in tables}
        | {"../images/studies/expected_change_corrupted.svg": "size of the Laplacian on corrupted images"},
    }  # fmt: skip


def answer(tables: Tables) -> str:
    """Return the answer in one sentence."""
    frames = read(tables)
    laplacian, _, confidence = ranked(frames, RADII[-1], ALL)
    return (
        f"On networks that bend it mostly does, on piecewise linear ones it does not; of all predictions that flip "
        f"confidence finds more (AUC {decimals(confidence, 2)} against {decimals(laplacian, 2)}), and of the "
        f"confident ones the Laplacian {'does' if finds_confident(frames) else 'does not'}."
    )


def finds_confident(frames: Frames) -> bool:
    """Return whether the Laplacian ranks confident points better than confidence at every length."""
    ranks = [ranked(frames, length, SURELY) for length in lengths_among_confident(frames)]
    return bool(ranks) and all(laplacian > confidence for laplacian, _, confidence in ranks)


def confident_in_words(frames: Frames) -> str:
    """Return the AUC of the Laplacian and of confidence among confident points, by length."""
    parts = []
    for length in lengths_among_confident(frames):
        laplacian, _, confidence = ranked(frames, length, SURELY)
        networks = len(aucs(frames, length, SURELY))
        parts.append(
            f"{decimals(laplacian, 2)} against {decimals(confidence, 2)} at length {length:g} ({networks} networks)"
        )
    return ", ".join(parts) or NOTHING


def headlines(tables: Tables) -> list[Headline]:
    """Return the headlines of the front page."""
    frames = read(tables)
    shares = [
        f"{signs(rows)[0]} of the points on {NAMED[str(group)]}"
        for group, rows in papers(frames["changes"]).groupby("group")
    ]
    laplacian, _, confidence = ranked(frames, RADII[-1], ALL)
    signs_by_network = papers(frames["changes"]).dropna(subset="sign").groupby(["group", "network"])["sign"].mean()
    signed = {
        NAMED[str(group)]: Row(part, percent(float(part.mean())), 0.5)
        for group, part in signs_by_network.groupby("group")
    }
    rows_by_score = {}
    for among, words in ((ALL, "all points"), (SURELY, "confident points")):
        areas = aucs(frames, RADII[-1], among)
        for name, score in (("laplacian", "Laplacian"), ("max_probability", "confidence")):
            rows_by_score[f"{score}, {words}"] = Row(areas[name], decimals(float(areas[name].mean()), 2), 0.5)
    return [
        Headline(
            f"The sign of the Laplacian says which way the probability moves at {' and '.join(shares)}, "
            f"where chance is half of them: networks bend with tanh or attention, not with ReLU.",
            "expected_change",
            Glance("points with the Laplacian's sign", signed, "dots: networks, ticks: chance", format="%"),
        ),
        Headline(
            f"Over all points the Laplacian does not find those that lose their class under noise: its AUC is "
            f"{decimals(laplacian, 2)}, that of plain confidence {decimals(confidence, 2)}. Among those with a "
            f"probability of {CONFIDENT:g} or more, which the paper asks about, it is {confident_in_words(frames)}.",
            "expected_change",
            Glance("AUC for points that lose their class", rows_by_score, "dots: networks, ticks: chance"),
        ),
    ]
