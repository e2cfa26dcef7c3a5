"""Rates that a detector of the average case states, checked on points that it has not seen.

    python research/benchmarks/detector_rates.py [--points 1000] [--limit 0.9] [--tpr 0.9] [--splits 20]
        [--confidence 0.9] [--draws 200] [--runs FOLDER] MODEL.pt2 DATA SIGMA [MODEL.pt2 DATA SIGMA ...]

Every network scores the points once, drawing noisy copies until it is decided whether `p_robust` reaches the limit;
with --draws a fixed number, which leaves more points undecided. Printed for each network: how well each score of one
forward pass tells the points that break from those that hold (AUROC with its interval), and for two scores what comes
of random splits of the points in halves. A detector is fitted on one half. The rates of its flags on the other half
have a sampling error of their own, so they are compared with the held-out counts that the detector states by Fisher's
exact test of two samples: a split is *outside* where the two rates differ with p <= 1 - confidence however the
undecided points of both are counted. The test is exact, so that at most the nominal share of the splits is outside in
the mean. `in interval` counts without the sampling error of the other half, for comparison. Splits share their points.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.stats import fisher_exact
from timing import print_table, set_threads

import brittle
from brittle.analysis import decide
from brittle.analysis.detection import auroc
from brittle.data import open_points
from brittle.extensions.detector.detector import Detector
from brittle.extensions.detector.network import READINGS, orient
from brittle.extensions.detector.results import Rate
from brittle.model.loading.load import load_model
from brittle.scores import Entropy, FeatureMargin, LogitMargin, MaxProbability, MonteCarlo, ProbabilityMargin, Softmax
from brittle.store.table import Table

MOST_DRAWS = 10_000
SCORES = (LogitMargin(), ProbabilityMargin(), MaxProbability(), Entropy(), Softmax(), FeatureMargin())


def scored(model: str, data: str, sigma: float, arguments: argparse.Namespace) -> Table:
    """Score one network, or read its run from the folder of the runs."""
    rule = {"draws": MOST_DRAWS, "limit": arguments.limit} if arguments.draws is None else {"draws": arguments.draws}
    out = None if arguments.runs is None else arguments.runs / f"{Path(model).parent.name}-{sigma:g}-{rule['draws']}"
    if out is not None and out.exists():
        return brittle.read_table(out)
    points = open_points(data, split="test", limit=arguments.points)
    classifier = brittle.Classifier(load_model(model).module)
    return brittle.score(classifier, points, [MonteCarlo(sigma, **rule), *SCORES], out=out)


def part(table: Table, chosen: NDArray[np.bool_]) -> Table:
    """Return the run of the `chosen` points, `[N]`."""
    points = table.points.filter(pa.array(chosen))
    ids = set(points["point"].to_pylist())
    mask = pa.array([point in ids for point in table.scores["point"].to_pylist()])
    return replace(table, points=points, scores=table.scores.filter(mask))


def safety(table: Table, score: str) -> NDArray[np.float64]:
    """Return a score of the points, larger where safer, `[N]`."""
    return np.asarray(orient(READINGS[score], table[score].value.to_numpy()))


def aurocs(table: Table, limit: float) -> list[list[object]]:
    """Return a row for each score: its AUROC between points that break and points that hold."""
    states = decide(table, limit)["state"].to_numpy(object)
    rows: list[list[object]] = []
    for score in SCORES:
        values = safety(table, score.name)
        value, low, high = auroc(values[states == "breaks"], values[states == "holds"], 0.99)
        rows.append([score.name, f"{value:.3f}", f"[{low:.3f}, {high:.3f}]"])
    return rows


def differs(stated: Rate, observed: Rate, confidence: float) -> bool:
    """Return whether two rates differ by the exact test, however the undecided points of both are counted.

    They do not differ where their possible shares overlap: some way to count makes them equal.
    """
    ours, theirs = ways(stated), ways(observed)
    if (
        ours[0][0] * theirs[1][1] <= theirs[1][0] * ours[0][1]
        and theirs[0][0] * ours[1][1] <= ours[1][0] * theirs[0][1]
    ):
        return False
    pairs = ((ours[1], theirs[0]), (ours[0], theirs[1]))
    tables = [[[hits, total - hits] for hits, total in pair] for pair in pairs]
    return max(float(fisher_exact(table).pvalue) for table in tables) <= 1.0 - confidence  # type: ignore[attr-defined]


def ways(rate: Rate) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the lowest and the highest count: flagged, and points."""
    more = rate.undecided_flagged
    return (rate.flagged, rate.points + rate.undecided - more), (rate.flagged + more, rate.points + more)


def inside(stated: Rate, observed: Rate) -> bool:
    """Return whether a rate may lie in the interval that another states."""
    low, high = (hits / total if total else 0.5 for hits, total in ways(observed))
    return low <= stated.high and high >= stated.low


def splits(table: Table, score: str, arguments: argparse.Namespace) -> list[object]:
    """Return a row: stated rates of detectors of random halves, and the rates of their flags on the other halves."""
    states = decide(table, arguments.limit)["state"].to_numpy(object)
    outside, within, rates = Counter[str](), Counter[str](), []
    for seed in range(arguments.splits):
        half = np.random.default_rng(seed).permutation(len(states)) < len(states) // 2
        detector = Detector.fit(
            part(table, half),
            limit=arguments.limit,
            tpr=arguments.tpr,
            score=score,
            confidence=arguments.confidence,
            seed=seed,
        )
        flags, held_out = detector.flag(safety(table, detector.score)), ~half
        undecided = flags[held_out & (states == "undecided")]
        for name, stated, kind in (
            ("tpr", detector.true_positives, "breaks"),
            ("fpr", detector.false_positives, "holds"),
        ):
            flagged = flags[held_out & (states == kind)]
            observed = Rate(
                int(flagged.sum()), flagged.size, arguments.confidence, undecided.size, int(undecided.sum())
            )
            outside[name] += differs(stated, observed, arguments.confidence)
            within[name] += inside(stated, observed)
            rates.append((name, observed.value or 0.0))
    means = [f"{np.mean([value for kind, value in rates if kind == name]):.3f}" for name in ("tpr", "fpr")]
    counts = [f"{counter[name]} of {arguments.splits}" for counter in (outside, within) for name in ("tpr", "fpr")]
    return [score, *means, *counts]


def main(arguments: Sequence[str] | None = None) -> None:
    """Check all networks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("networks", nargs="+", metavar="MODEL.pt2 DATA SIGMA")
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--limit", type=float, default=0.9)
    parser.add_argument("--tpr", type=float, default=0.9)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--confidence", type=float, default=0.9)
    parser.add_argument("--draws", type=int, default=None, help="a fixed number of noisy copies of each point")
    parser.add_argument("--runs", type=Path, default=None, help="a folder to keep the runs in")
    options = parser.parse_args(arguments)
    if len(options.networks) % 3:
        parser.error("MODEL.pt2, DATA and SIGMA come in threes")
    set_threads()
    for model, data, sigma in zip(options.networks[::3], options.networks[1::3], options.networks[2::3], strict=True):
        table = scored(model, data, float(sigma), options)
        states = Counter(decide(table, options.limit)["state"].tolist())
        print(f"\n{Path(model).parent.name}, sigma {sigma}, limit {options.limit:g}: {dict(states)}")
        print_table(["score", "AUROC", "99%"], aurocs(table, options.limit))
        header = ["detectors of halves", "mean tpr", "mean fpr", "tpr outside", "fpr outside"]
        rows = [splits(table, score, options) for score in ("logit_margin", "feature_margin")]
        print_table([*header, "tpr in interval", "fpr in interval"], rows)
    allowed = options.splits * (1.0 - options.confidence)
    print(f"\noutside by the exact test: at most {allowed:.1f} of {options.splits} in the mean is nominal")


if __name__ == "__main__":
    main()
