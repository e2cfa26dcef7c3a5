"""Claims of the papers on points, classes and images, with findings.

Figures of the papers stand in the claims; every other number is read from the results.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from studies.agreement import MILD, judged
from studies.average_case.estimating import MMSE_, NORMAL, SOFTMAX
from studies.average_case.images import READERS
from studies.average_case.read import Results, whole
from studies.markdown import data_name, decimals, percent
from studies.study import Agreement, Finding
from studies.tables import Frame

ALIKE = 0.9
"""Rank correlation of class means from which MMSE shows the bias that counting shows."""

GAP = 0.17
"""Half of the gap between the papers' two accuracies."""

READS = 0.55
"""Smallest accuracy of a classifier that reads images at all."""

DATASET = "cifar10"
"""Data set of the papers' images."""


def of_points(results: Results, parts: Mapping[str, Results]) -> list[Finding]:
    """Every finding of this kind."""
    return [
        *(related(part, on) for on, part in parts.items()), rising(results),
        *(classes(part, on) for on, part in parts.items()), classes_by_mmse(results), apart(results),
    ]  # fmt: skip


def related(results: Results, on: str) -> Finding:
    """Figures 5 to 7."""
    correlations = results.frames["softmax"][[f"pearson_{MMSE_}", f"spearman_{MMSE_}"]]
    mild = correlations.max(axis=1) < MILD
    means = [decimals(float(value), 2) for value in correlations.mean()]
    return Finding(
        "softmax and robustness are not strongly correlated (in the mean)",
        "workshop 4.3, figures 5 to 7",
        f"Pearson's {means[0]}, Spearman's {means[1]}",
        judged([*map(bool, mild)]),
        on=data_name(on),
    )


def rising(results: Results) -> Finding:
    """Figure 6."""
    frame, holds = results.frames["softmax"].set_index("network"), []
    for family in results.families():
        rows = frame.loc[family["network"]]
        for kind in ("pearson", "spearman"):
            holds += [*map(bool, np.diff(rows[f"{kind}_{MMSE_}"].to_numpy()) > 0)]
    return Finding(
        "the stronger the gradient-norm regularisation, the more softmax and robustness are correlated",
        "workshop 4.3, figure 6",
        f"the correlation rises at {sum(holds)} of {len(holds)} steps of the strength",
        judged(holds),
    )


def classes(results: Results, on: str) -> Finding:
    """Figures 4, 8 and 16."""
    frame = results.frames["bias"]
    return Finding(
        "a network is significantly more robust for some classes than for others (by a corrected test)",
        "UAI 4.3, figure 4; workshop, figures 8, 16",
        f"on {int(frame['differ'].sum())} of {len(frame)} networks",
        judged([*map(bool, frame["differ"])]),
        on=data_name(on),
    )


def classes_by_mmse(results: Results) -> Finding:
    """Figure 4: MMSE beside counting."""
    frame = results.frames["bias"].dropna(subset="mmse_rank")
    alike = frame["mmse_rank"] >= ALIKE
    return Finding(
        "MMSE captures the class bias as counting does",
        "UAI 4.3, figure 4",
        f"their rank correlation over classes is {decimals(ALIKE, 1)} or more on {int(alike.sum())} of "
        f"{len(frame)} networks",
        judged([*map(bool, alike)]),
    )


def accuracies(results: Results, reader: str, dataset: str) -> Frame:
    """Mean accuracy of one classifier of images by robustness, by softmax, and their `gap`, with intervals."""
    frame = results.frames["separability"]
    chosen = frame[(frame["reader"] == reader) & (frame["dataset"] == dataset)]
    table = chosen.pivot(index="network", columns="by", values="accuracy").reset_index()
    return whole(table.assign(gap=table[NORMAL] - table[SOFTMAX]), [NORMAL, SOFTMAX, "gap"])


def apart(results: Results) -> Finding:
    """Section 4.3: a classifier of images."""
    claim = "a CNN tells the most from the least robust images in 92%, high from low softmax in 58% of the cases"
    if DATASET not in set(results.frames["separability"]["dataset"]):
        return Finding(claim, "UAI 4.3", "no such images", Agreement.UNMEASURED)
    row = accuracies(results, READERS[-1], DATASET)
    return Finding(
        claim,
        "UAI 4.3",
        f"in {percent(row[NORMAL])} and {percent(row[SOFTMAX])}: it has too few images to read any",
        _reads_better(row),
        on=data_name(DATASET),
    )


def _reads_better(row: Frame) -> Agreement:
    """Return the verdict on the CNN."""
    if not row[f"{NORMAL}_low"] > READS:
        return Agreement.UNMEASURED
    if row["gap"] >= GAP:
        return Agreement.AGREES
    return Agreement.IN_PART if row["gap_low"] > 0 else Agreement.DIFFERS
