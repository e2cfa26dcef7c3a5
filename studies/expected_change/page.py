"""What the page of the study says beside its verdicts, all numbers of ours from the results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from studies.agreement import HALF, MOST
from studies.expected_change.rules import TOLERANCE, Frames, papers, read
from studies.expected_change.said import LEVEL, NAMED, ranked, signs
from studies.expected_change.scored import PROBES
from studies.expected_change.summary import RADII
from studies.glance import Glance, Row
from studies.markdown import data_name, decimals, in_words, percent, significant, table
from studies.study import Headline, Tables
from studies.tables import Frame

FILES = {
    "changes": "true by predicted change, sign, variance and bound, by network and length",
    "flips": "flips of confident predictions by their Laplacian",
    "corrupted": "size of the Laplacian by kind and severity of corruption, with JPEG compression of JPEG copies",
    "models": "each network beside the plain one of its architecture",
    "networks": "the Laplacian over the points of each network",
}
"""What each table holds."""


def content(tables: Tables) -> Mapping[str, Any]:
    """The values of the template's names."""
    frames = read(tables)
    networks, size = frames["networks"], frames["size"].iloc[0]
    lengths = in_words(f"{one:g}" for one in set(papers(frames["changes"])["radius"]))
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
            "True by predicted change against the length of the noise, a line for each network; on the dashed line the "
            "prediction is right."
        ),
        "rule": (
            f"A *case* is a network at one of the paper's lengths ({lengths}). A claim *agrees* from {percent(MOST)} "
            f"of "
            f"the cases on, *does not agree* up to {percent(HALF)}, else *in part*. The prediction *holds* where the "
            f"median of true by predicted change lies between {decimals(TOLERANCE, 1)} and "
            f"{decimals(1 / TOLERANCE, 2)}, and sign and order are right. Signs are those of points whose mean change "
            f"is surely not zero, *nearly all* means {percent(TOLERANCE)}. *Significant*: Welch's p below "
            f"{decimals(LEVEL, 2)}. A network *bends* where its class scores have second derivatives, as with tanh or "
            f"attention; with ReLU it is piecewise linear, and the Laplacian sees none of its kinks. JPEG compression "
            f"of the JPEG copies of CIFAR-10 stands in no line and in no figure; it takes part in the AUC for "
            f"corruption in the results."
        ),
        "uses": (
            "Use the Laplacian on networks that bend, for noise shorter than the length to which it holds; on "
            "piecewise linear ones use `ProbabilityChange` at the noise that you mean.",
            "Use confidence or a margin to find predictions that flip: they cost one pass.",
            "Use counted changes, not the Laplacian, when you compare models with kinks.",
            "Use `FirstOrderChange` or `ProbabilityChange` to say how large the change is; the bound is far above it.",
        ),
        "differs": table(
            ("", "paper", "here"),
            [
                ("data", "MNIST, CIFAR-10, SVHN, cells", in_words(map(data_name, networks["dataset"]))),
                ("networks", "LeNet with tanh; ResNet with PReLU", f"{len(networks)}, of which {bending} bend"),
                ("points", "a sample of 1,000", f"{int(size['points'])}"),
                ("copies", "10,000", f"{int(size['pairs'])} pairs of opposite ones"),
                ("groups of table 1", "50 of 903 confident points on MNIST", "quarters of the confident points"),
                ("corruptions", "the files of MNIST-C and CIFAR-10-C", f"{int(size['corrupted'])} images, "
                 f"{frames['corrupted']['kind'].nunique()} kinds (no frost), by the same "
                 f"strengths (of stripes, lines and edges the weaker are ours)"),
                ("unit of length", "normalised pixels", "pixels from black (0) to white (1)"),
                ("Laplacian", "whole Hessian", f"{PROBES} random directions where the network bends"),
                ("seeds", "one network each", "one training seed each"),
            ],
        ),
        "files": {f"expected_change/{one}.csv": said for one, said in FILES.items() if one in tables}
        | {"../images/studies/expected_change_corrupted.svg": "size of the Laplacian on corrupted images"},
    }  # fmt: skip


def answer(tables: Tables) -> str:
    """The answer in one sentence."""
    own, confidence = ranked(read(tables))
    return (
        f"On networks that bend it mostly does, on piecewise linear ones it does not; and confidence, which is free, "
        f"finds the predictions that flip better (AUC {confidence} against {own})."
    )


def aucs(frames: Frames, score: str) -> Frame:
    """How well a score finds the points that lose their class at the longest noise, on each network."""
    frame = frames["ranking"]
    asked = (frame["outcome"] == f"noise of length {RADII[-1]:g}") & (frame["among"] == "all")
    return frame[asked & (frame["score"] == score)]["auc"]


def headlines(tables: Tables) -> list[Headline]:
    """What the front page says."""
    frames = read(tables)
    shares = [
        f"{signs(own)[0]} of the points on {NAMED[str(group)]}"
        for group, own in papers(frames["changes"]).groupby("group")
    ]
    own, confidence = ranked(frames)
    right = papers(frames["changes"]).dropna(subset="sign").groupby(["group", "network"])["sign"].mean()
    signed = {NAMED[str(group)]: Row(part, percent(float(part.mean())), 0.5) for group, part in right.groupby("group")}
    found = {
        "Laplacian": Row(aucs(frames, "laplacian"), own, 0.5),
        "confidence": Row(aucs(frames, "max_probability"), confidence, 0.5),
    }
    return [
        Headline(
            f"The sign of the Laplacian says which way the probability moves at {' and '.join(shares)}, "
            f"where chance is half of them: networks bend with tanh or attention, not with ReLU.",
            "expected_change",
            Glance("points with the Laplacian's sign", signed, "dots: networks, ticks: chance", format="%"),
        ),
        Headline(
            f"The Laplacian does not find the points that lose their class under noise: its AUC is {own}, that of "
            f"plain confidence {confidence}.",
            "expected_change",
            Glance("AUC for points that lose their class", found, "dots: networks, ticks: chance"),
        ),
    ]
