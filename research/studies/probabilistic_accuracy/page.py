"""Content of the study's page besides its verdicts, with all numbers of ours from the results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from studies.glance import Glance, Row
from studies.markdown import NOTHING, data_name, in_words, percent, table
from studies.probabilistic_accuracy.blocks import COPIES
from studies.probabilistic_accuracy.measures import RHOS
from studies.probabilistic_accuracy.said import STRICT, missed, results, strict_of, too_low
from studies.study import Headline, Tables


def content(tables: Tables) -> Mapping[str, Any]:
    """Return the values of the template's names."""
    frame = results(tables)
    example = frame.iloc[0]
    repeats = int(example["draws"]) // COPIES
    return {
        "question": (
            "Probabilistic robust accuracy is the share of points that are predicted right and keep that under noise "
            "with probability `rho` or more. A benchmark of training methods gives it as the share of points without a "
            "flip in a hundred noisy copies. Is that the same?"
        ),
        "answer": answer(tables),
        "figure": "probabilistic_accuracy",
        "seen": (
            "Dots beside a diagonal on which no flip is the truth, a panel for each `rho`. Below it lie "
            + ", ".join(
                f"{(missed(rows_of_rho) > 0).sum()} of {len(rows_of_rho)} ({rho:g})"
                for rho, rows_of_rho in frame.groupby("rho")
            )
        ),
        "caption": (
            "A dot for each network and level of noise: the share without a flip against the truth, a panel for each "
            "`rho`; on the line both are equal."
        ),
        "rule": (
            "A claim *agrees* where it holds on every network and level of its line, *does not agree* where on none, "
            "else *in part*. A point *surely* flips more often than the limit where an exact interval over all copies "
            "lies above it; points whose interval holds the limit make the truth a range."
        ),
        "uses": (
            "Use the share of flips against the limit that matters, with an interval, not no flip in a fixed number of "
            "copies, when the limit is not the one that the number of copies was chosen for.",
            "Use `brittle.score(..., [MonteCarlo(sigma, limit=rho)])` and `brittle.analysis.probabilistic_accuracy` "
            "when verdicts on single points count: undecided points stand on both sides of its range.",
            "Use a hundred copies without a flip when only the accuracy at the strict limit counts, and say how far "
            "another run with other draws differs.",
        ),
        "differs": table(
            ("", "benchmark", "here"),
            [
                ("data", "CIFAR-10 and others", in_words(map(data_name, frame["dataset"]))),
                ("networks", "ResNet-18 among them, many ways of training", f"{frame['network'].nunique()} small ones"),
                ("points", NOTHING, f"{int(example['points'])}"),
                ("copies", f"{COPIES}, once", f"{COPIES}, {repeats} times; the truth is the count over all of them"),
                ("noise", NOTHING, "normal, of a size chosen for each network"),
                ("seeds", NOTHING, "one training seed for each network"),
            ],
        ),
        "files": {"probabilistic_accuracy/accuracy.csv": "the truth, no flip, and the library, by network and limit"},
    }


def answer(tables: Tables) -> str:
    """Return the answer in one sentence."""
    frame = results(tables)
    return (
        f"As an accuracy nearly, for `rho` of {STRICT:g} alone (at most {worst(tables)} of the points off); it is too "
        f"low by {' and '.join(too_low(frame))} for other limits, and wrong about single points."
    )


def worst(tables: Tables) -> str:
    """Return the largest miss of the usual estimate for the probability that it is meant for."""
    return percent(float(missed(strict_of(results(tables))).abs().max()), 1)


def headlines(tables: Tables) -> list[Headline]:
    """Return the headlines of the front page."""
    frame = results(tables)
    rows = {}
    for rho, rows_of_rho in frame.groupby("rho"):
        miss = missed(rows_of_rho)
        text = f"at most {worst(tables)}" if rho == STRICT else f"mean {percent(float(miss.mean()))}"
        rows[f"rho {rho:g}"] = Row(miss, text)
    return [
        Headline(
            f"The share of points of which no copy of {COPIES} flips is within {worst(tables)} of the share that holds "
            f"with probability {STRICT:g}, and lies {too_low(frame)[0]} below that in the mean for "
            f"probability {min(RHOS):g}.",
            "probabilistic_accuracy",
            Glance("no flip lies below the truth by", rows, "dots: networks and noises", ".0%"),
        )
    ]
