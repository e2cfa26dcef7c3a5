"""What was scored: model, data, noise and cost, and what became of the points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from brittle.analysis.outcomes import certificates_text, outcomes
from brittle.analysis.overview_text import DecisionWords, words_of
from brittle.analysis.worst_case import margin_columns
from brittle.estimate import short_labels
from brittle.intervals import clopper_pearson
from brittle.report import wording
from brittle.report.chapter import Chapter, Text, files_beside
from brittle.report.contents import Contents
from brittle.report.parts import Entry, Grid
from brittle.report.wording import MISSING, percent, plural, range_text, show
from brittle.store.columns import Column, Row
from brittle.store.record import DataRecord, ModelRecord
from brittle.store.settings import Setting
from brittle.text import chosen_text

FILES = files_beside(__name__)


@dataclass(frozen=True)
class ScoredRun:
    """What was scored.

    Attributes:
        entries: model, data, noise and cost.
        scores: the scores and what they cost.
        estimators: whether robustness under noise is among what they say.
        lost: statuses of points without a number.
        outcomes: statuses other than `ok` of points with one.
        note: what these mean for the page.
    """

    entries: tuple[Entry, ...]
    scores: Grid
    estimators: bool
    lost: Grid
    outcomes: Grid
    note: str


class ScoredChapter(Chapter[ScoredRun]):
    """What was scored."""

    name: ClassVar[str] = "scored"
    title: ClassVar[str] = "What was scored"
    template: ClassVar[Text] = FILES / "chapter.html.jinja"
    in_methods: ClassVar[bool] = True

    def summarize(self, contents: Contents) -> ScoredRun:
        """The record of the run, its scores and its statuses."""
        rows = outcomes(contents).to_dict("records")
        lost, remarks = (_outcomes([row for row in rows if row["has_value"] == valued]) for valued in (False, True))
        told = contents.tells_robustness
        return ScoredRun(_entries(contents), _scores(contents), told, lost, remarks, _note(contents, lost, remarks))


def _entries(contents: Contents) -> tuple[Entry, ...]:
    return (
        Entry("Model", _model_text(contents.record.model)),
        Entry("Data", _data_text(contents.record.data)),
        Entry("Points", _points_text(contents)),
        Entry("Accuracy" if words_of(contents.record.model.decision).accuracy else "Right", _accuracy_text(contents)),
        *(
            (Entry("Noise", _noise_text(contents)), Entry("Noise level", _sigma_text(contents)))
            if _noises(contents)
            else ()
        ),
        Entry("Cost", _cost_text(contents)),
        Entry("Intervals", f"{percent(contents.confidence)} confidence, each for itself."),
    )


def _model_text(model: ModelRecord) -> str:
    classes = words_of(model.decision).classes
    known = (
        (model.classes if classes else None, "{} classes"),
        (model.parameters, "{} parameters"),
        (model.dtype, "{}"),
        (model.outputs, "output read as {}"),
    )
    parts = [text.format(show(value)) for value, text in known if value is not None]
    return ", ".join([show(model.spec), *parts])


def _data_text(data: DataRecord) -> str:
    parts = [show(data.path or data.format)]
    parts += [f"split {show(data.split)}"] if data.split is not None else []
    parts += [f"inputs of shape {' × '.join(map(show, data.input_shape))}"] if data.input_shape is not None else []
    return ", ".join(parts)


def _points_text(contents: Contents) -> str:
    count = contents.points.num_rows
    spoken, what = _counted_column(contents)
    valued = 0 if spoken is None else int(spoken.value.notna().sum())
    chosen = chosen_text(count, contents.record.data.chosen_from)
    return f"{plural(count, 'point')}{chosen and f', {chosen}'}, of which {valued:,} got {what}."


def _counted_column(contents: Contents) -> tuple[Column | None, str]:
    """The column whose points are counted, and what it gives them: that of the first chapter that the page has."""
    if contents.chosen is not None:
        return contents.chosen, "a robustness"
    margins, sampled = margin_columns(contents), list(contents.changes.values())
    if margins:
        return margins[0], "an input margin"
    if contents.laplacian is not None:
        return contents.laplacian, "a Laplacian"
    return (sampled[-1], "a sampled change") if sampled else (None, "a robustness")


def _accuracy_text(contents: Contents) -> str:
    correct = contents.points["correct"].drop_null().to_pandas()
    words = words_of(contents.record.model.decision)
    if correct.empty and not words.accuracy:
        return show(words.unlabelled)
    if correct.empty:
        return "Unknown: no point carries a label. Robustness is that of the predicted class and needs none."
    low, high = clopper_pearson(int(correct.sum()), len(correct), contents.confidence)
    return (
        f"{percent(correct.mean())} of {plural(len(correct), 'labelled point')} predicted right "
        f"({percent(float(low))} to {percent(float(high))})."
        if words.counted == "label" and words.right == DecisionWords.right
        else f"{percent(correct.mean())} of {words.of(len(correct))} {words.verbs[1]} {show(words.right)} "
        f"({percent(float(low))} to {percent(float(high))})."
    )


def _noises(contents: Contents) -> tuple[Setting, ...]:
    """The noise of the robustness, or else of the scores that know any; empty for a run of margins alone."""
    leveled = {column.setting for column in contents.columns if column.setting.sigma is not None}
    return contents.settings or tuple(sorted(leveled, key=str))


def _noise_text(contents: Contents) -> str:
    families = dict.fromkeys(setting.noise for setting in _noises(contents))
    names = "; ".join(_family_text(contents, family) for family in families)
    return f"{names}. {_clipped_text(contents)}".rstrip() if names else MISSING


def _clipped_text(contents: Contents) -> str:
    """Whether noisy inputs are clipped; empty where the noise, which is not added, decides that by itself."""
    if any(column.parameters.get("clip") for column in contents.columns):
        return "Sampled scores clip noisy inputs to the range, which the linear ones do not know of."
    families = [(setting, contents.noises.get(setting.noise)) for setting in _noises(contents)]
    added = any(setting.in_pixels or (noise is not None and noise.isotropic is not None) for setting, noise in families)
    return "Noisy inputs are not clipped to the range." if added else ""


def _family_text(contents: Contents, family: str) -> str:
    """What the family says of itself, or else its name."""
    noise = contents.noises.get(family)
    return show(noise.explanation if noise is not None and noise.explanation else family)


def _sigma_text(contents: Contents) -> str:
    leveled = [setting for setting in _noises(contents) if setting.sigma is not None]
    if not leveled:
        return "None: no score of this run depends on noise."
    sigmas = list(dict.fromkeys(one.sigma for one in leveled if one.in_pixels and one.sigma is not None))
    others = "; ".join(dict.fromkeys(show(str(one)) for one in leveled if not one.in_pixels))
    parts = [f"{others}."] if others else []
    return " ".join([*parts, _pixels_text(contents, sigmas)] if sigmas else parts)


def _pixels_text(contents: Contents, sigmas: Sequence[float]) -> str:
    """Levels in pixel units, and as shares of the range of the inputs."""
    values = ", ".join(f"{sigma:g}" for sigma in sigmas)
    if contents.record.model.bounds is None:
        return f"Standard deviation sigma = {values} in the units of the inputs."
    low, high = contents.record.model.bounds
    shares = ", ".join(f"{100.0 * sigma / (high - low):.3g}%" for sigma in sigmas)
    return (
        f"Standard deviation sigma = {values} in the units of the inputs, from {low:g} to {high:g}; that is {shares} "
        "of this range."
    )


def _cost_text(contents: Contents) -> str:
    total, seconds, count = contents.record.account.passes, contents.record.seconds, contents.points.num_rows
    each = f", {total / count:,.0f} per point" if count else ""
    time = f" in {wording.duration(seconds)}" if seconds is not None else ""
    spent = certificates_text(contents.columns)
    time += spent and f"; {spent}, the others on all else"
    return (
        f"{show(total)} passes through the network{each}{time}. Forward and backward passes count one each; scores "
        "that need the same passes share them."
    )


def _scores(contents: Contents) -> Grid:
    groups: dict[str, list[Column]] = {}
    for column in contents.columns:
        groups.setdefault(column.variant, []).append(column)
    return Grid(
        header=("Score", "What it is", "Draws", "Passes per point"),
        numeric=(False, False, True, True),
        rows=tuple(_score_row(variant, group) for variant, group in groups.items()),
        colours=tuple(contents.colour(group[0].score) for group in groups.values()),
    )


def _score_row(variant: str, group: Sequence[Column]) -> tuple[str, ...]:
    draws = sorted({(column.most_draws, column.stops) for column in group if column.most_draws is not None})
    costs = sorted(column.cost for column in group if column.value.notna().any())
    return (
        show(variant, 60),
        show(group[0].explanation or group[0].title),
        range_text([f"{'at most ' * stops}{count:,}" for count, stops in draws]),
        range_text([f"{cost:,.0f}" for cost in costs]),
    )


def _outcomes(rows: Sequence[Row]) -> Grid:
    """Statuses, and the points that have them."""
    return Grid(
        header=("What", "Status", "Meaning", "Points", "The first of them"),
        numeric=(False, False, False, True, False),
        rows=tuple(_outcome_row(row) for row in rows),
    )


def _outcome_row(row: Row) -> tuple[str, ...]:
    more = " …" if row["points"] > len(row["first"]) else ""
    return (
        _labels_text(row["labels"]),
        show(row["status"]),
        show(row["sentence"]),
        f"{row['points']:,}",
        "; ".join(_first_text(*entry) for entry in row["first"]) + more,
    )


def _labels_text(labels: Sequence[str]) -> str:
    if not labels:
        return "the point itself"
    more = f" and {plural(len(labels) - 1, 'other score')}" if len(labels) > 1 else ""
    return show(short_labels(labels)[labels[0]], 60) + more


def _first_text(row: int, name: Any, detail: Any) -> str:
    point = f"row {row}" if pd.isna(name) else f"{show(name, 60)} (row {row})"
    return point if pd.isna(detail) else f"{point}: {show(str(detail).removeprefix(f'row {row}: '), 80)}"


def _note(contents: Contents, lost: Grid, remarks: Grid) -> str:
    if not contents.points.num_rows:
        return "The run holds no points."
    kept = "Every point got a number from every score."
    left = "Where nothing can be said there is no number, and the point is left out of the figures and means."
    beside = " A status beside a number says what to keep in mind." if remarks.rows else ""
    return (left if lost.rows else kept) + beside
