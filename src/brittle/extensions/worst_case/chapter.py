"""The worst case, norm by norm: how far the nearest other decisions are, what tells, and what they look like."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brittle.analysis.detection import GOOD_AUROC
from brittle.analysis.expected_robustness import Epsilon, choose_epsilon, expected_robustness
from brittle.analysis.outcomes import refuted_text
from brittle.estimate import INPUT_MARGIN, Status, parameters_json
from brittle.extensions.report.chapter import Chapter, Grid, Number
from brittle.extensions.report.charts import nearest_chart
from brittle.extensions.report.contents import Contents
from brittle.extensions.report.figure import Figure
from brittle.extensions.report.images import embedded
from brittle.extensions.report.wording import MISSING, fixed, interval, percent, percent_interval, plural, short, show
from brittle.extensions.worst_case import robust_accuracy
from brittle.extensions.worst_case.table import worst_case_table
from brittle.store.columns import Column, Row

TITLES = {
    "linf": "By the largest change of any one input value (Linf)",
    "l2": "By the Euclidean distance (L2)",
    "l1": "By the sum of the changes of all input values (L1)",
    "l0": "By how many input values change (L0)",
}

STEPS = 200  # perturbation sizes at which the curve of robust accuracy is drawn
FRAGILE_SHOWN = 12  # counter-examples in the gallery
PREFERRED = "logit_margin"  # the score that the page speaks of where the run holds it

CONDITIONS = (
    ("The logit margin is a multiple of the feature margin", "logit_margin", "feature_margin"),
    ("The features move by a multiple of the distance", "feature_distance", INPUT_MARGIN),
)
"""What would make the logit margin follow the distance, each a score that is then a fixed multiple of another."""


@dataclass(frozen=True, eq=False)
class MarginCase:
    """The input margins in one norm.

    A point is fragile when its margin is at most epsilon. `distance` is that of each point with a margin, infinite
    where no input with another prediction was found; `correct` is 1 or 0, NaN without a label. `curves` hold of each
    kind its name, the margins that count and whether their points do, `[n]` each: `all`; those that are right as well
    (`correct`); of these the lower ends (`certified`), so that the proven share bounds the robust accuracy below.
    """

    contents: Contents
    margin: Column
    norm: str
    epsilon: Epsilon

    @cached_property
    def distance(self) -> pd.Series:
        return self.margin.value.dropna()

    @cached_property
    def correct(self) -> NDArray[np.float64]:
        return np.asarray(self.contents.points["correct"].to_pylist(), dtype=np.float64)

    @cached_property
    def curves(self) -> dict[str, tuple[str, NDArray[np.float64], NDArray[np.float64]]]:
        margins, everywhere = self.margin.value.to_numpy(), np.ones(len(self.margin))
        labelled = bool((~np.isnan(margins) & ~np.isnan(self.correct)).any())
        lower = self.margin.low.fillna(0.0).where(self.margin.value.notna()).to_numpy()
        curves = {"all": ("any prediction", margins, everywhere)}
        if labelled:
            curves["correct"] = ("correct prediction (robust accuracy)", margins, self.correct)
        if (lower > 0.0).any():
            name = f"{'correct' if labelled else 'any'} prediction, certified"
            curves["certified"] = (name, lower, self.correct if labelled else everywhere)
        return curves

    def count(self, status: Status) -> int:
        return self.margin.status.tolist().count(status.slug)

    def beyond(self, kind: str) -> robust_accuracy.RobustAccuracy:
        """Return the share of points of a curve whose margin exceeds epsilon."""
        _, margins, is_correct = self.curves[kind]
        return robust_accuracy.direct_robust_accuracy(margins, is_correct, self.epsilon.value, self.contents.confidence)


def open_cases(contents: Contents) -> list[MarginCase]:
    """Return the first input margins in each norm, with the requested size or one that suits their values."""
    bounds, size = contents.record.model.bounds, contents.epsilon
    cases = []
    for norm, column in contents.margins.items():
        epsilon = choose_epsilon(column.value, norm, bounds)
        if size is not None:
            epsilon = Epsilon(size, contents.epsilon_text or f"{size:.3g}", "the size that was asked for")
        cases.append(MarginCase(contents, column, norm, epsilon))
    return cases


def summarize(contents: Contents) -> dict[str, Any] | None:
    """One section for each norm; None without input margins."""
    cases = open_cases(contents)
    return {"cases": [_section(case) for case in cases]} if cases else None


CHAPTER = Chapter("worst-case", "The worst case", summarize, "part")


def _section(case: MarginCase) -> dict[str, Any]:
    fragile = _fragile(case)
    compared = worst_case_table(case.contents, case.epsilon.value, case.norm)
    median = float(case.distance.quantile(0.5, interpolation="lower"))
    half = f"is at most {short(median)} away" if np.isfinite(median) else "was not found at any distance"
    numbers = _numbers(case, median)
    number_texts = " ".join(f"{number.title}: {number.value}." for number in numbers)
    masked = case.count(Status.MASKED)
    warning = (
        f"The margins of {plural(masked, 'point')} of {len(case.distance):,} are masked: gradients vanish there or "
        "mislead, so the nearest other decision may be much nearer than what was found, and the robust accuracy lower."
    )
    curves = f"Share of points without another prediction found within a distance, against the distance. {number_texts}"
    return {
        "title": TITLES[case.norm],
        "epsilon": case.epsilon,
        "labelled": "correct" in case.curves,
        "conclusion": f"For half of the points the nearest input with another prediction {half}.",
        "warning": " ".join(filter(None, (warning if masked else "", refuted_text(case.count(Status.REFUTED))))),
        "numbers": numbers,
        "figure": Figure(nearest_chart, _curves(case), curves),
        "certified": "certified" in case.curves,
        "confidence": percent(case.contents.confidence),
        "missing": len(case.margin) - len(case.distance),
        "title_of": show(case.margin.title),
        "read_from": show(case.margin.shown),
        "stand_in": _stand_in(case, compared),
        "conditions": _conditions(case),
        "points": [_counterexample(case, row) for row in fragile.head(FRAGILE_SHOWN).to_dict("records")],
        "count": f"{len(fragile):,}",
    }


def _numbers(case: MarginCase, median: float) -> list[Number]:
    """Return the median margin, and the shares of points that hold at epsilon, are right and hold, and surely so."""
    size = case.epsilon.text
    labelled, points = "correct" in case.curves, len(case.distance)
    middle, *ends = (
        short(distance) if np.isfinite(distance) else "∞"
        for distance in (median, *(case.distance.quantile(q, interpolation="lower") for q in (0.05, 0.25, 0.75, 0.95)))
    )
    note = f"Quantiles 5%, 25%, 75%, 95%: {', '.join(ends)}; over {plural(points, 'point')}."
    beyond, among_correct = case.beyond("all"), case.beyond("correct" if labelled else "all")
    robust_text, share = percent(among_correct.robust_accuracy), percent(beyond.robust_accuracy)
    either = f"{percent_interval(beyond.low, beyond.high)}. The prediction may be right or wrong."
    numbers = [
        Number("Median distance to another prediction", middle, note),
        Number(f"No other prediction found within {size}", share, either),
    ]
    if labelled:
        note = (
            f"{percent_interval(among_correct.low, among_correct.high)}. Right, and no other prediction found within "
            f"{size}; {percent(among_correct.accuracy)} are right unperturbed."
        )
        numbers.append(Number(f"Robust accuracy at {size}", robust_text, note))
    expected = expected_robustness(case.contents, case.margin, case.epsilon.value, case.contents.confidence)
    mean, low, high = expected.interval
    kept = "right with no other prediction found" if expected.labelled else "with no other prediction found"
    note = f"{percent_interval(low, high)}. The share {kept}, averaged over the distances up to {size}."
    note += f" Proven: {percent(expected.proved)}." if "certified" in case.curves else ""
    numbers.append(Number(f"Expected robustness up to {size}", percent(mean), note))
    if "certified" in case.curves:
        proven = case.beyond("certified")
        share, title = percent(proven.robust_accuracy), "robust accuracy" if labelled else "share"
        note = (
            f"{percent_interval(proven.low, proven.high)}. {'Right, and proven' if labelled else 'Proven'} that no "
            f"input within {size} has another prediction. The {title} on these points lies between this {share} and "
            f"the {robust_text} that the attacks left."
        )
        numbers.append(Number(f"Certified {title} at {size}", share, note))
    if count := int(np.isinf(case.distance).sum()):
        note = f"Of {points:,}. Counted as farther than every distance, which proves nothing."
        numbers.append(Number("No other prediction found at all", plural(count, "point"), note))
    return numbers


def _curves(case: MarginCase) -> pd.DataFrame:
    finite = pd.Series(case.distance[np.isfinite(case.distance)])
    end = max(1.05 * float(finite.quantile(0.99)) if len(finite) else 0.0, 1.5 * case.epsilon.value) or 1.0
    sizes = np.linspace(0.0, end, STEPS).tolist()
    rows = [
        (kind, of, accuracy.epsilon, accuracy.robust_accuracy, accuracy.low, accuracy.high, case.epsilon.value)
        for kind, (of, margins, is_correct) in case.curves.items()
        for accuracy in robust_accuracy.direct_robust_accuracies(margins, is_correct, sizes, case.contents.confidence)
    ]
    return pd.DataFrame(rows, columns=["kind", "of", "epsilon", "share", "low", "high", "chosen"])


def _stand_in(case: MarginCase, compared: pd.DataFrame) -> dict[str, Any]:
    """Whether a score can stand in for the distance, point by point: the logit margin, or else the most consistent."""
    column_by_label = {column.label: column for column in case.contents.columns}
    rows = compared.to_dict("records")
    columns = [column_by_label[row["score"]] for row in rows]
    if not columns:
        return {"conclusion": "This run holds no score beside the input margin.", "grid": None}
    place = next((place for place, column in enumerate(columns) if column.score == PREFERRED), 0)
    cells = [
        (
            f"{show(column.title, 60)}\n{show(column.shown, 60)}",
            f"{column.cost:,.0f}",
            *(_measured(row, name) for name in ("tau", "auroc", "aupr", "fpr95")),
            f"{row['points']:,}",
        )
        for column, row in zip(columns, rows, strict=True)
    ]
    header = ("Score", "Passes a point", "Kendall's tau", "AUROC", "AUPR", "FPR at 95% TPR", "Points")
    colours = [case.contents.colours[column.score] for column in columns]
    return {"conclusion": _verdict(rows[place], columns[place].title), "grid": Grid(header, cells, colours=colours)}


def _conditions(case: MarginCase) -> Grid | None:
    """Of each of `CONDITIONS` that the run can tell, how much the multiple varies over points; None without any."""
    columns = {INPUT_MARGIN: case.margin}
    for column in case.contents.columns:
        if column.parameters.get("norm", case.norm) == case.norm:
            columns.setdefault(column.score, column)
    rows = []
    for title, above, below in CONDITIONS:
        if not {above, below} <= columns.keys():
            continue
        ratio = columns[above].value / columns[below].value
        ratio = ratio.where(np.isfinite(ratio)).dropna()
        low, middle, high = ratio.quantile([0.25, 0.5, 0.75])
        if low > 0.0:
            rows.append((title, *map(short, (middle, low, high, high / low)), f"{len(ratio):,}"))
    head = ("Would explain it", "Median multiple", "Lower quartile", "Upper quartile", "Upper over lower", "Points")
    return Grid(head, rows) if rows else None


def _measured(row: Row, name: str) -> str:
    ends = interval(row[f"{name}_low"], row[f"{name}_high"])
    return MISSING if np.isnan(row[name]) else f"{fixed(row[name])}\n{ends}"


def _verdict(row: Row, name: str) -> str:
    if isinstance(row["reason"], str):
        return row["reason"]
    if row["auroc_low"] >= GOOD_AUROC:
        verdict = "it may stand in for the distance where points of this model are to be ranked or screened"
    elif row["auroc_high"] < GOOD_AUROC:
        verdict = "it misses too many fragile points of this model to stand in for the distance"
    else:
        verdict = "these points do not decide whether it can stand in for the distance"
    return (
        f"{show(name, 60)} orders the points with a tau of {fixed(row['tau'])} and detects the fragile ones "
        f"with an AUROC of {fixed(row['auroc'])}: {verdict}."
    )


def _fragile(case: MarginCase) -> pd.DataFrame:
    """Return the points predicted right, or all without labels, that have a counter-example, the nearest first."""
    names = ["point", "row", "name", "predicted", "decided", "correct", "image"]
    points = case.contents.points.select(names).to_pandas()
    points["distance"] = case.margin.value.to_numpy()
    rows = case.contents.counterexamples.to_pandas()
    of_margin = (rows["score"] == case.margin.score) & (rows["parameters"] == parameters_json(case.margin.parameters))
    rows = rows.loc[of_margin, ["point", "predicted", "decided", "image", "difference"]].drop_duplicates("point")
    pairs = points.merge(rows, on="point", suffixes=("", "_other"))
    pairs = pairs[np.isfinite(pairs["distance"])]
    if "correct" in case.curves:
        pairs = pairs[pairs["correct"].eq(True)]
    return pairs.sort_values(["distance", "row"], ignore_index=True)


def _counterexample(case: MarginCase, row: Row) -> dict[str, Any]:
    """Return a point beside the nearest input found with another prediction; each image with its words."""
    predicted = case.contents.answer_text(row["predicted"], row["decided"])
    answer = case.contents.answer_text(row["predicted_other"], row["decided_other"])
    distance = short(row["distance"], 3)
    images = (
        (row["image"], f"{predicted}, the point as it is"),
        (row["image_other"], f"changed by {distance} and now decided as {answer}"),
        (row["difference"], f"what changed between {predicted} and {answer}"),
    )
    return {
        "name": show(row["name"], 80) if isinstance(row["name"], str) else f"row {row['row']}",
        "predicted": predicted,
        "other": answer,
        "distance": distance,
        "images": [(embedded(image), words) for image, words in images if embedded(image)],
    }
