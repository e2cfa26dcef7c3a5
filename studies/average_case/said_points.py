"""What the papers say of points, classes and images, beside what is found.

Figures of the papers stand in the claims; every other number is read from the results.
"""

from __future__ import annotations

import numpy as np

from studies.agreement import MILD, judged
from studies.average_case.estimating import COUNTED, MMSE_, NORMAL, SOFTMAX
from studies.average_case.images import READERS
from studies.average_case.read import Results, means, whole
from studies.markdown import NOTHING, decimals, interval, percent, significant, slashed, with_ends
from studies.study import Agreement, Finding
from studies.tables import Frame

UAI, WORKSHOP = "UAI paper", "workshop paper"

ALIKE = 0.9
"""Rank correlation of class means from which MMSE shows the bias that counting shows."""

GAP = 0.17
"""Half of the gap between the papers' two accuracies."""

READS = 0.55
"""Accuracy that a classifier of images surely has where it reads them at all."""

DATASET = "cifar10"
"""What the papers read."""

READER_NAMES = {"linear": "a linear classifier", "cnn": "a small CNN"}


def of_points(results: Results) -> list[Finding]:
    """Every finding of this kind."""
    return [
        by_sigma(results), related(results), rising(results), classes(results), classes_by_mmse(results),
        apart(results),
    ]  # fmt: skip


def by_sigma(results: Results) -> Finding:
    """Figure 12."""
    frame = results.frames["robustness"]
    rows = means(frame, ["sigma"], ["mean", "q05", "q95"])
    return Finding(
        "how does robustness fall with sigma?",
        f"{WORKSHOP}, figure 12",
        f"at sigma {' / '.join(significant(one) for one in rows['sigma'])} the mean of `p_robust` over points and "
        f"networks is {slashed(rows['mean'], 2)}; a point in twenty lies below {slashed(rows['q05'], 2)}, one in "
        f"twenty above {slashed(rows['q95'], 2)}",
        Agreement.UNSAID,
        "points fall one after the other, as the noise reaches the boundary nearest to each",
    )


def related(results: Results) -> Finding:
    """Figures 5 to 7."""
    frame = results.frames["softmax"]
    row = whole(frame, [f"{kind}_{of}" for kind in ("pearson", "spearman") for of in (COUNTED, MMSE_)])
    mild = frame[[f"pearson_{MMSE_}", f"spearman_{MMSE_}"]].max(axis=1) < MILD
    return Finding(
        "softmax and robustness are not strongly correlated, mildly even for robust networks",
        f"{WORKSHOP}, section 4.3, figures 5 to 7",
        f"mean over {int(row['networks'])} networks: Pearson {interval(row, f'pearson_{MMSE_}', 2)} and Spearman "
        f"{interval(row, f'spearman_{MMSE_}', 2)} with MMSE, as in the paper, {interval(row, f'pearson_{COUNTED}', 2)} "
        f"and {interval(row, f'spearman_{COUNTED}', 2)} with the count; both below {decimals(MILD, 1)} with MMSE on "
        f"{int(mild.sum())} of {len(frame)} networks",
        judged([*map(bool, mild)]),
        "confidence falls towards a boundary, so it orders points much as robustness does; its value is another "
        "matter; many points tie in a count, which lowers Spearman's; the verdict asks each network, at its own sigma; "
        "the study of estimators asks the mean over networks, at its own levels",
    )


def rising(results: Results) -> Finding:
    """Figure 6."""
    frame, parts, holds = results.frames["softmax"].set_index("network"), [], []
    for family in results.families():
        found = frame.loc[family["network"]]
        ranks, lines = found[f"spearman_{MMSE_}"].to_numpy(), found[f"pearson_{MMSE_}"].to_numpy()
        holds += [*map(bool, np.diff(ranks) > 0), *map(bool, np.diff(lines) > 0)]
        strengths = " / ".join(significant(one, 1) for one in family["strength"])
        parts.append(
            f"{family['dataset'].iloc[0]} {family['architecture'].iloc[0]}, strength {strengths}: Pearson "
            f"{slashed(lines, 2)}, Spearman {slashed(ranks, 2)}"
        )
    return Finding(
        "the stronger the gradient-norm regularisation, the more softmax and robustness are correlated",
        f"{WORKSHOP}, section 4.3, figure 6",
        "; ".join(parts) or "no such networks",
        judged(holds),
        "the rule asks for a rise at every step; each network is looked at its own sigma; one "
        "network of each strength cannot tell a trend from chance",
    )


def classes(results: Results) -> Finding:
    """Figures 4, 8 and 16."""
    frame = results.frames["bias"]
    level = 1 - float(frame["confidence"].iloc[0])
    found = results.frames["classes"]
    parts = []
    for dataset, rows in frame[frame["differ"]].groupby("dataset"):
        chosen = found[found["network"].isin(set(rows["network"]))]
        ends = chosen.sort_values("mean").groupby("network")["class"]
        least, most = (_most_often(one) for one in (ends.first(), ends.last()))
        parts.append(f"where classes differ the least robust one of {dataset} is {least}, the most robust one {most}")
    return Finding(
        "a network is significantly more robust for some classes than for others",
        f"{UAI}, section 4.3, figure 4; {WORKSHOP}, figures 8 and 16",
        f"the library's test, corrected for the number of classes, tells classes apart on {int(frame['differ'].sum())} "
        f"of {len(frame)} networks at the level {significant(level, 1)}; the class means span "
        f"{decimals(float(frame['spread'].median()), 2)} in the median, {decimals(float(frame['spread'].max()), 2)} at "
        f"most{''.join(f'; {part}' for part in parts)}",
        judged([*map(bool, frame["differ"])]),
        f"the test has {int(results.networks['many'].iloc[0])} points for all classes together; means of classes "
        f"differ by chance as well, which a picture of distributions does not show",
    )


def _most_often(classes: Frame) -> str:
    """The class or classes that most networks name, and how many do."""
    counts = classes.astype(int).value_counts()
    first = sorted(counts[counts == counts.max()].index)
    return f"{' or '.join(map(str, first))} on {counts.max()} of {len(classes)}"


def classes_by_mmse(results: Results) -> Finding:
    """Figure 4: MMSE beside counting."""
    frame, found = results.frames["bias"].dropna(subset="mmse_rank"), results.frames["classes"]
    rank = interval(whole(frame, ["mmse_rank"]), "mmse_rank", 2) if len(frame) else NOTHING
    off = (found[MMSE_] - found["mean"]).abs()
    return Finding(
        "MMSE captures the class bias as counting does",
        f"{UAI}, section 4.3, figure 4",
        f"the class means of MMSE lie {decimals(float(off.mean()), 3)} from the counted ones in the mean, "
        f"{decimals(float(off.max()), 3)} at most; their rank correlation over classes is "
        f"{rank}, and {decimals(ALIKE, 1)} or more on "
        f"{int((frame['mmse_rank'] >= ALIKE).sum())} of {len(frame)} networks",
        judged([*map(bool, frame["mmse_rank"] >= ALIKE)]),
        "in the mean over a class the errors of single points cancel in part; a bias that all points share does not",
    )


def accuracies(results: Results, reader: str, dataset: str) -> Frame:
    """Mean accuracy of one classifier of images by robustness, by softmax, and their `gap`, with intervals."""
    frame = results.frames["separability"]
    own = frame[(frame["reader"] == reader) & (frame["dataset"] == dataset)]
    table = own.pivot(index="network", columns="by", values="accuracy").reset_index()
    return whole(table.assign(gap=table[NORMAL] - table[SOFTMAX]), [NORMAL, SOFTMAX, "gap"])


def apart(results: Results) -> Finding:
    """Section 4.3: a classifier of images."""
    frame, parts = results.frames["separability"], []
    for dataset in sorted(set(frame["dataset"])):
        for reader in READERS:
            row = accuracies(results, reader, dataset)
            parts.append(
                f"{dataset}, {READER_NAMES[reader]}: {with_ends(row, NORMAL, percent)} by robustness, "
                f"{with_ends(row, SOFTMAX, percent)} by softmax, difference {with_ends(row, 'gap', percent)}"
            )
    images = frame["images"]
    return Finding(
        "a CNN tells the most from the least robust images far better (92%) than those of high from those of low "
        "softmax (58%, CIFAR-10)",
        f"{UAI}, section 4.3",
        f"right on images that it was not trained on, of the most and the least robust quarter of each class, "
        f"{_range(images)} images of each network, mean over {len(results.networks)} networks: {'; '.join(parts)}",
        _reads_better(results),
        f"the verdict is on CIFAR-10 alone, as the paper's claim is, and asks the CNN for half of the paper's "
        f"difference; a guess is right on half, and where the CNN is not surely right on {percent(READS)} by either "
        f"order it has too few images to tell; robustness is the library's `moments` here and MMSE in the paper; "
        f"images and networks are other ones than the paper's",
    )


def _range(counts: Frame) -> str:
    """A number, or the least and the most."""
    low, high = int(counts.min()), int(counts.max())
    return str(low) if low == high else f"{low} to {high}"


def _reads_better(results: Results) -> Agreement:
    """The verdict on the CNN."""
    if DATASET not in set(results.frames["separability"]["dataset"]):
        return Agreement.UNMEASURED
    row = accuracies(results, READERS[-1], DATASET)
    if not max(row[f"{NORMAL}_low"], row[f"{SOFTMAX}_low"]) > READS:
        return Agreement.UNMEASURED
    if row["gap"] >= GAP:
        return Agreement.AGREES
    return Agreement.IN_PART if row["gap_low"] > 0 else Agreement.DIFFERS
