"""What the page of the study reads: tables and numbers in words, all of them from the results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from studies.average_case.estimating import COUNTED, MMSE_, SHARE, SOFTMAX, TAYLOR
from studies.average_case.read import SHOWN, Results
from studies.average_case.sigmoid import SCALE
from studies.average_case.timing import BATCHED, PAPER_COPIES, SERIAL, timed
from studies.markdown import NOTHING, between, decimals, in_words, interval, percent, significant, table
from studies.study import Tables
from studies.tables import Frame, minutes_of


def content(tables: Tables) -> Mapping[str, Any]:
    """The values of the template's names."""
    results = Results(tables)
    first = results.networks.iloc[0]
    return {
        "networks": len(results.networks),
        "datasets": in_words(results.networks["dataset"]),
        "points": int(first["points"]),
        "reference": f"{int(first['reference']):,}",
        "many": int(first["many"]),
        "own_noise": results.own_noise,
        "share": percent(SHARE),
        "most": results.budgets[-1],
        "printed_draws": results.printed_draws,
        "printed_points": int(first["printed_points"]),
        "copies": f"{PAPER_COPIES:,}",
        "scale": decimals(SCALE, 3),
        "formula": "1 / (1 + sum_i exp(-u_i))",
        "regularised": bool(results.families()),
        "shown": sorted(set(results.frames["images"]["dataset"])),
        "error_table": error_table(results),
        "problem_table": problem_table(results.frames["problems"]),
        "time_table": time_table(results),
        "network_table": network_table(results),
        "minutes": decimals(minutes_of(tables), 0),
    }


def error_table(results: Results) -> str:
    """The error of each estimator at each sigma, and what the count itself is off."""
    rows = []
    for name in SHOWN:
        found = results.by_sigma(name)
        rows.append([f"`{name}`", *(interval(row, "error", 3) for row in found.to_dict("records"))])
    found = results.by_sigma(TAYLOR)
    rows.append(["the count of a perfect estimator", *(decimals(one, 4) for one in found["floor"])])
    rows.append(["mean `p_robust`", *(interval(row, "kept", 3) for row in found.to_dict("records"))])
    return table(["estimator", *(f"sigma {significant(one)}" for one in results.sigmas)], rows)


def problem_table(frame: Frame) -> str:
    """The sigmoid on the random problems."""
    rows = [
        (
            one.kind, str(one.dimension), decimals(one.sigmoid, 3), decimals(one.sigmoid_bias, 3),
            decimals(one.scaled, 3), decimals(one.scaled_bias, 3),
        )
        for one in frame.itertuples()
    ]  # fmt: skip
    head = (
        "correlation",
        "dimensions",
        "as printed",
        "mean difference",
        f"with {decimals(SCALE, 3)}",
        "mean difference",
    )
    return table(head, rows)


def time_table(results: Results) -> str:
    """Processor time of each estimator, in units of one network pass of its own, and against counting."""
    errors, lines = results.at_own_sigma("errors"), []
    for name, draws in timed(1.0):
        own = errors[(errors["estimator"] == name) & (errors["draws"] == draws)].set_index("network")["copies"]
        ratios = {way: results.times_as_long(name, draws, way) for way in (SERIAL, BATCHED)}
        same = (ratios[BATCHED] * own / PAPER_COPIES).dropna()
        with np.errstate(invalid="ignore"):  # between two that the reference cannot tell from none there is no number
            low, middle, high = same.quantile([0.25, 0.5, 0.75])
        lines.append((
            f"`{name}`" + (f", {draws} draws" if draws else ""),
            *(decimals(float(ratio.median()), 0) for ratio in ratios.values()),
            between(middle, low, high, 2) if len(same) else NOTHING,
        ))  # fmt: skip
    head = ("estimator", f"{PAPER_COPIES:,} copies, one at a time", f"{PAPER_COPIES:,} copies, together",
            "copies for the same error, together (middle half of the networks)")  # fmt: skip
    return table(head, lines)


def network_table(results: Results) -> str:
    """Each network at its own sigma."""
    softmax, bias = (results.frames[name].set_index("network") for name in ("softmax", "bias"))
    errors = results.at_own_sigma("errors").query("draws in [0, @results.budgets[-1]]")
    errors = errors.pivot(index="network", columns="estimator", values="error")
    rows = []
    for one in results.networks.itertuples():
        related, classes, error = softmax.loc[one.network], bias.loc[one.network], errors.loc[one.network]
        rows.append((
            f"`{one.network}`", percent(one.accuracy), significant(one.sigma),
            *(decimals(error[name], 3) for name in (TAYLOR, MMSE_, SOFTMAX)),
            *(f"{decimals(related[f'pearson_{of}'], 2)} / {decimals(related[f'spearman_{of}'], 2)}"
              for of in (COUNTED, MMSE_)),
            decimals(classes["spread"], 2), "yes" if classes["differ"] else "no",
        ))  # fmt: skip
    head = (
        "network", "accuracy", "sigma", "`taylor`", "`mmse`", "`softmax`", "softmax and count", "softmax and MMSE",
        "classes span", "classes differ",
    )  # fmt: skip
    return table(head, rows)
