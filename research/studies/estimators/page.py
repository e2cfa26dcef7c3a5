"""Content of the study's page besides its verdicts, with all numbers of ours from the results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from studies.estimators.entrants import LIBRARY
from studies.estimators.ours import lost, over_budgets, shares
from studies.estimators.papers import flips_counted
from studies.estimators.read import Results
from studies.glance import Glance, Row
from studies.markdown import data_name, decimals, in_words, table
from studies.study import Headline, Tables

FILES = {
    "estimators": "error, bias, rank correlation and width of intervals of every estimator, level and number of draws",
    "levels": "the networks, their accuracy, and the sigma of each level",
    "scores": "how well each score without noisy copies finds weak points",
    "confident": "flips of confident predictions by their Laplacian",
    "absent": "scores that a network does not have",
}
"""Content of each table."""


def content(tables: Tables) -> Mapping[str, Any]:
    """Return the values of the template's names."""
    results = Results(tables)
    return {
        "question": (
            "`p_robust` is the probability that a prediction survives normal noise. Every estimator of `brittle`, and "
            "those of Han, Srinivas and Lakkaraju as they print them, are set beside a long count, at three levels of "
            f"noise: small, middle and large, at which about {flips_counted(results)} of the copies flip. Which is the "
            "nearest for its passes, and which score without noisy copies finds the points that break?"
        ),
        "answer": answer(results),
        "figure": "estimators",
        "seen": f"Lines of error by passes, a panel for each level of noise; `shrinkage` has {over_budgets(results)}",
        "caption": (
            "Mean error by passes through the network for a point, forward and backward, at each level of noise; lower "
            "and further to the left is better."
        ),
        "rule": (
            "A claim *agrees* where it holds in every case of its line, *does not agree* where in none, else *in "
            "part*; a case is a level of noise, or a network at one. An interval *surely misses* where it lies outside "
            "of an exact interval of the count. MMSE in a line on papers is as printed. By data set the claims on "
            "estimators are judged in the study of [average-case robustness](average_case.md). The corruptions of the "
            "last lines are made on the JPEG copies of CIFAR-10, and JPEG compression is one of them."
        ),
        "uses": (
            "Use the default, `shrinkage`, when you ask for `p_robust`: it draws more where it matters, and goes over "
            "to the count where the copies speak against its model.",
            "Use `monte_carlo` when a bias of some points would matter more than the spread, as for a limit that a "
            "point must keep.",
            "Use `taylor` for one linearisation at small noise only, and softmax never as a probability.",
            "Use a margin or softmax as an order of the points when no noisy copies can be afforded.",
            "Set an estimator of yours beside these with `--estimator FILE.py:NAME`: a function of `network, points, "
            "sigma, draws, generator` that returns `p_robust` of each point, or that and the ends of its intervals.",
        ),
        "differs": differs(results),
        "files": {f"estimators/{name}.csv": caption for name, caption in FILES.items()},
    }


def differs(results: Results) -> str:
    """Return the table of differences from the papers."""
    free = results.free[results.free["outcome"] == "wrong"]
    references = in_words(f"{results.reference(level):,}" for level in results.levels)
    return table(
        ("", "papers", "here"),
        [
            ("data", "MNIST, FashionMNIST, CIFAR-10, CIFAR-100", in_words(map(data_name, results.networks["dataset"]))),
            ("networks", "linear, CNN, ResNet-18", f"{len(results.names)}, of many kinds of training and of others"),
            ("points", "1,000 (workshop)", f"{int(results.networks['points'].max())}; {int(free['points'].max())} for "
             f"what takes no noise"),
            ("copies of the truth", "10,000", references),
            ("draws of MMSE", "500 (UAI), 1,000 (workshop)", f"up to {results.budgets[-1]}"),
            ("sigma", "the same for all networks", "chosen for each network"),
            ("seeds", "one network each", "one training seed each"),
        ],
    )  # fmt: skip


def answer(results: Results) -> str:
    """Return the answer in one sentence."""
    return (
        f"With as many passes the library's default has {over_budgets(results)}, by the number of draws; of what the "
        f"papers print MMSE is near and takes many passes, and Taylor is near at small noise alone."
    )


def by_counting(estimator: str, rows: Mapping[str, Row]) -> Glance:
    """Return the error of an estimator by that of counting, on each network."""
    return Glance(f"{estimator}: error by that of counting", rows, "dots: networks, ticks: equal errors", log=True)


def headlines(tables: Tables) -> list[Headline]:
    """Return the headlines of the front page."""
    results = Results(tables)
    worse, cases = lost(results)
    draws, moments, default = results.budgets[-1], {}, {}
    for budget in results.budgets:
        mean, worst, _ = shares(results, budget)
        ratios_by_level = [
            results.of_networks(level, LIBRARY, "shrinkage", budget, "ratio") for level in results.levels
        ]
        words = f"geometric mean {decimals(mean, 2)}, worst {decimals(worst, 2)}"
        default[f"{budget} draws"] = Row(pd.concat(ratios_by_level), words, 1.0)
    for level in results.levels:
        ours, counted = (results.of_networks(level, LIBRARY, name, draws) for name in ("moments", "monte_carlo"))
        ratios = ours / counted
        moments[f"{level} noise"] = Row(ratios, f"further off on {(ratios > 1).sum()} of {len(ratios)}", 1.0)
    return [
        Headline(
            f"With as many passes the library's default, `shrinkage`, has {over_budgets(results)}, by the number of "
            f"draws from {results.budgets[0]} to {draws}, over networks and levels of noise.",
            "estimators",
            by_counting("shrinkage", default),
        ),
        Headline(
            f"Our `moments` is no sure gain: it is further off than the count of the same copies in {worse} of {cases} "
            f"cases.",
            "estimators",
            by_counting("moments", moments),
        ),
    ]
