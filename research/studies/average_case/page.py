"""Content of the study's page besides its verdicts, with all numbers of ours from the results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from studies.average_case.estimating import MMSE_, TAYLOR
from studies.average_case.read import Results
from studies.average_case.said import MACHINES, enough, nearer, ratios
from studies.average_case.sigmoid import SCALE
from studies.average_case.timing import FASTER, PAPER_COPIES, PAPER_DRAWS, PAPERS, SMALL, TIMED
from studies.glance import Glance, Row
from studies.markdown import data_name, decimals, in_words, percent, table
from studies.study import Headline, Tables

FILES = {
    "networks": "accuracy and own sigma",
    "errors": "by estimator, network, sigma, draws",
    "printed": "errors with the paper's draws",
    "sigmoid": "beside the integral",
    "counting": "error by copies",
    "runtimes": "seconds by size of network",
    "softmax": "correlations",
    "bias": "whether classes differ",
    "separability": "classifiers of images",
    "curvature": "the bounds' constant",
    "counterexample": "to the first bound",
}
"""Content of each table."""

FIGURES = {
    "errors": "error by sigma",
    "regularised": "error by sigma and regularisation",
    "robustness": "quantiles of robustness by sigma",
    "sigmoid": "sigmoid against integral",
    "classes": "means of classes",
    "times": "counting by each estimator",
}


def content(tables: Tables) -> Mapping[str, Any]:
    """Return the values of the template's names."""
    results = Results(tables)
    example = results.networks.iloc[0]
    data = in_words(map(data_name, results.networks["dataset"]))
    error, copies, passes = enough(results)
    shown = sorted(set(results.frames["images"]["dataset"]))
    figures = FIGURES | {f"images_{dataset}": "examples" for dataset in shown}
    return {
        "question": (
            "`p_robust` is the probability that a network keeps its prediction under normal noise of standard "
            "deviation sigma. The papers do not count it: they make the network linear, at the point (Taylor) or "
            "averaged over noisy copies (MMSE), and take a normal integral or a multivariate sigmoid. Is that near to "
            "the truth, and cheaper?"
        ),
        "answer": answer(results),
        "figure": "average_case_counting",
        "seen": (
            f"Lines of error by passes: {copies} counted copies reach {decimals(error, 3)}, MMSE with "
            f"{decimals(passes, 0)} passes"
        ),
        "caption": "Mean error by passes, each network at its own sigma.",
        "rule": (
            f"A claim *agrees* where it holds in every case, *does not agree* where in none, else *in "
            f"part*. Errors are those at each network's own sigma, where {percent(own_share(results))} of the copies "
            f"hold. MMSE is the papers' own form. Times are of "
            f"one thread and of estimators alone; ratios *agree* within a factor of {MACHINES:g}."
        ),
        "uses": (
            "Count, with an interval, when a few hundred passes a point are affordable.",
            "Use Taylor when the noise is small and a single pass forward and backward can be spent.",
            f"Use the normal integral, or the sigmoid with the factor {decimals(SCALE, 3)}; as printed it "
            f"is off in value.",
            "Use a test over all classes to compare them: the lowest of several means is low by chance.",
        ),
        "differs": table(
            ("", "papers", "here"),
            [
                ("data", "MNIST, FashionMNIST, CIFAR-10, CIFAR-100", data),
                ("networks", "linear, CNN, ResNet-18", f"{len(results.networks)}: linear, CNN, a narrow ResNet-18, "
                 f"and others"),
                ("points", "1,000 (workshop)", f"{int(example['points'])} for the truth, {int(example['many'])} for "
                 f"classes and softmax"),
                ("copies of the truth", "10,000", f"{int(example['reference']):,}"),
                ("draws of MMSE", "500 (UAI), 1,000 (workshop)", f"up to {results.budgets[-1]}; "
                 f"{results.printed_draws} on {int(example['printed_points'])} points at one sigma"),
                ("run times", "50 points, 10,000 copies", f"medians of {TIMED[0]} rounds, {TIMED[1]} copies scaled up"),
            ],
        ),
        "files": {f"average_case/{name}.csv": caption for name, caption in FILES.items()}
        | {f"../images/studies/average_case_{name}.svg": caption for name, caption in figures.items()},
    }  # fmt: skip


def own_share(results: Results) -> float:
    """Return the share of the copies that hold at each network's own sigma, in the mean over networks."""
    return float(results.at_own_sigma("robustness")["mean"].mean())


def answer(results: Results) -> str:
    """Return the answer in one sentence."""
    error, copies, passes = enough(results)
    return (
        f"MMSE is near to the truth and Taylor only at small noise, but for as small an error as MMSE's "
        f"({decimals(error, 3)} with {decimals(passes, 0)} passes) some {copies} counted copies are enough."
    )


def headlines(tables: Tables) -> list[Headline]:
    """Return the headlines of the front page."""
    results = Results(tables)
    _, copies, passes = enough(results)
    large, little = (ratios(results, name) for name in (PAPERS, SMALL))
    needed = {
        "counting": Row([copies], f"{copies}, the papers {PAPER_COPIES:,}", PAPER_COPIES),
        "MMSE": Row([passes], decimals(passes, 0)),
    }
    times = {
        words: Row(results.times_as_long(name), f"{decimals(large[name], 0)}, the papers {FASTER[name]}", FASTER[name])
        for name, words in ((TAYLOR, "Taylor"), (MMSE_, "MMSE"))
    }
    off = results.frames["sigmoid"].groupby("sigma")[["sigmoid", "scaled"]].mean().loc[results.telling]
    printed = {
        words: Row(off[form], f"{decimals(off[form].min(), 3)} to {decimals(off[form].max(), 3)}")
        for form, words in (("sigmoid", "sigmoid as printed"), ("scaled", "sigmoid with the factor"))
    }
    return [
        Headline(
            f"Counting is cheaper than the papers say: {copies} counted copies are nearer to `p_robust` than their "
            f"MMSE with {decimals(passes, 0)} passes, and they say that counting takes 10,000.",
            "average_case_counting",
            Glance("passes a point for an error as small", needed, "tick: the papers", log=True),
        ),
        Headline(
            f"On a ResNet-18 counting {PAPER_COPIES:,} copies on a processor takes {decimals(large[TAYLOR], 0)} times "
            f"as long as Taylor and {decimals(large[MMSE_], 0)} times as long as MMSE with {PAPER_DRAWS} draws, where "
            f"the papers measured {FASTER[TAYLOR]} and {FASTER[MMSE_]}; on a CNN whose pass takes "
            f"{decimals(1000 * results.of_a_pass(SMALL), 1)} ms it is {decimals(little[TAYLOR], 0)} and "
            f"{decimals(little[MMSE_], 0)}.",
            "average_case_times",
            Glance("time of counting by that of", times, "dots: three sizes of network, ticks: the papers", log=True),
        ),
        Headline(
            f"The multivariate sigmoid of the papers is {' to '.join(nearer(results))} times nearer to the integral "
            f"with the factor {decimals(SCALE, 3)} that they leave out.",
            "average_case_sigmoid",
            Glance("distance from the integral", printed, "dots: levels of sigma"),
        ),
    ]
