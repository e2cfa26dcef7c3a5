"""How far the nearest other decisions are."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brittle.analysis.outcomes import refuted_text
from brittle.analysis.robust_accuracy import RobustAccuracy, direct_robust_accuracies, direct_robust_accuracy
from brittle.estimate import Status
from brittle.report.chapters.worst_case.case import MarginCase
from brittle.report.chapters.worst_case.result import Distances
from brittle.report.parts import Number
from brittle.report.wording import percent, percent_interval, plural, short, show

NAMES = {"linf": "Linf", "l2": "L2", "l1": "L1", "l0": "L0"}
"""Norms as the page writes them."""

STEPS = 200
"""Perturbation sizes at which the curve of robust accuracy is drawn."""

_CURVE = ["kind", "of", "epsilon", "share", "low", "high", "chosen"]


def summarize_distances(case: MarginCase) -> Distances:
    """How far the nearest other decisions are."""
    median = float(case.distance.quantile(0.5, interpolation="lower"))
    half = f"lies within {short(median)}" if np.isfinite(median) else "was not found at any distance"
    return Distances(
        numbers=(_median_number(case, median), *_share_numbers(case), *_not_found_number(case)),
        frame=_curves(case),
        conclusion=f"For half of the predictions another one {half}.",
        warning=" ".join(filter(None, (_masked_text(case), refuted_text(case.count(Status.REFUTED.slug))))),
        note=_note(case),
    )


def _median_number(case: MarginCase, median: float) -> Number:
    quantiles = (float(case.distance.quantile(share, interpolation="lower")) for share in (0.05, 0.25, 0.75, 0.95))
    texts = [_distance_text(quantile) for quantile in quantiles]
    return Number(
        f"Median input margin, {NAMES[case.norm]}",
        _distance_text(median),
        f"Quantiles 5%, 25%, 75%, 95%: {', '.join(texts)}; over {plural(len(case.distance), 'point')}.",
    )


def _distance_text(distance: float) -> str:
    return short(distance) if np.isfinite(distance) else "∞"


def _share_numbers(case: MarginCase) -> list[Number]:
    size = f"{NAMES[case.norm]} {case.epsilon.text}"
    beyond = _beyond(case, "all", case.epsilon.value)
    numbers = [
        Number(
            f"Predictions that {size} can flip",
            percent(1.0 - beyond.robust_accuracy),
            f"{percent_interval(1.0 - beyond.high, 1.0 - beyond.low)}, right or wrong.",
        )
    ]
    if case.labelled:
        right = _beyond(case, "correct", case.epsilon.value)
        numbers.append(
            Number(
                f"Robust accuracy at {size}",
                percent(right.robust_accuracy),
                f"{percent_interval(right.low, right.high)}. Right, and no other decision found within epsilon; "
                f"{percent(right.accuracy)} are right unperturbed.",
            )
        )
    return [*numbers, _certified_number(case, size)] if _is_certified(case) else numbers


def _certified_number(case: MarginCase, size: str) -> Number:
    """The share that is proven, of the same points as the share that the attacks left, which bounds it from above."""
    proven = _beyond(case, "certified", case.epsilon.value)
    left = percent(_beyond(case, "correct" if case.labelled else "all", case.epsilon.value).robust_accuracy)
    reach, share = percent_interval(proven.low, proven.high), percent(proven.robust_accuracy)
    if case.labelled:
        return Number(
            f"Certified robust accuracy at {size}",
            share,
            f"{reach}. Right, and proven that no input within epsilon has another prediction. The robust accuracy on "
            f"these points lies between this {share} and the {left} that the attacks left.",
        )
    return Number(
        f"Certified share at {size}",
        share,
        f"{reach}. Proven that no input within epsilon has another prediction. The share of these predictions that "
        f"cannot be flipped lies between this {share} and the {left} that were not flipped.",
    )


def _not_found_number(case: MarginCase) -> list[Number]:
    count = int(np.isinf(case.distance).sum())
    if not count:
        return []
    note = f"Of {len(case.distance):,}. Counted as beyond every epsilon, which proves nothing."
    return [Number("No other decision found", plural(count, "point"), note)]


def _is_certified(case: MarginCase) -> bool:
    return bool((case.margin.rows["low"] > 0.0).any())


def _beyond(case: MarginCase, kind: str, epsilon: float) -> RobustAccuracy:
    """The share of points whose margin exceeds `epsilon`: of all, of those right as well, or proven by its lower end.

    With labels, those proven are right as well, so that their share bounds the robust accuracy from below.
    """
    return direct_robust_accuracy(*_margins(case, kind), epsilon, case.contents.confidence)


def _margins(case: MarginCase, kind: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The margins that `_beyond` counts, `[n]`, and whether their points count, 1 or 0; NaN where none is known."""
    found = case.margin.value
    margin = case.margin.rows["low"].fillna(0.0).where(found.notna()) if kind == "certified" else found
    right = np.ones(len(margin)) if kind == "all" or not case.labelled else case.correct
    return margin.to_numpy(), right


def _curves(case: MarginCase) -> pd.DataFrame:
    kinds = {"all": "any prediction"}
    kinds |= {"correct": "correct prediction (robust accuracy)"} if case.labelled else {}
    certified = f"{'correct' if case.labelled else 'any'} prediction, certified"
    kinds |= {"certified": certified} if _is_certified(case) else {}
    reach = float(case.finite.quantile(0.99)) if len(case.finite) else 0.0
    grid = np.linspace(0.0, max(1.05 * reach, 1.5 * case.epsilon.value) or 1.0, STEPS)
    rows = [
        (kind, of, found.epsilon, found.robust_accuracy, found.low, found.high, case.epsilon.value)
        for kind, of in kinds.items()
        for found in direct_robust_accuracies(*_margins(case, kind), grid.tolist(), case.contents.confidence)
    ]
    return pd.DataFrame(rows, columns=_CURVE)


def _masked_text(case: MarginCase) -> str:
    masked = case.count(Status.MASKED.slug)
    if not masked:
        return ""
    return (
        f"The margins of {plural(masked, 'point')} of {len(case.distance):,} are masked: gradients vanish there or "
        "mislead, so the nearest other decision may be much nearer than what was found, and the robust "
        "accuracy lower."
    )


def _certified_text(case: MarginCase) -> str:
    if not _is_certified(case):
        return ""
    return f", and {'that of the robust accuracy ' if case.labelled else ''}no lower than the certified one"


def _note(case: MarginCase) -> str:
    missing = len(case.margin.value) - len(case.distance)
    return " ".join(
        part
        for part in (
            "The share of points with no other decision found within epsilon; each band is the "
            f"{percent(case.contents.confidence)} interval of its share alone, the dashed line is epsilon = "
            f"{case.epsilon.text}. Attacks find upper bounds of the distance, so the true curves lie no higher"
            f"{_certified_text(case)}.",
            f"{plural(missing, 'point')} without a margin left out." if missing else "",
            f"Read from {show(case.margin.shown)}.",
        )
        if part
    )
