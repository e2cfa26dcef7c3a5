"""The run itself: model, data, noise, cost, the fate of the points, and how to repeat it."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from brittle.analysis.mean_interval import mean_interval
from brittle.analysis.outcomes import outcomes
from brittle.analysis.overview_text import still_text
from brittle.estimate import short_labels
from brittle.extensions.report.chapter import Chapter, Grid
from brittle.extensions.report.contents import Contents
from brittle.extensions.report.wording import MISSING, fixed, interval, percent, plural, range_text, show
from brittle.store.columns import Column, Row
from brittle.store.representative import TYPICAL_P_ROBUST, preferred
from brittle.store.settings import Setting
from brittle.text import chosen_text, duration

STEADY = 0.99  # a prediction whose p_robust is less than this is counted beside the mean


def summarize(contents: Contents) -> dict[str, Any]:
    """Return the record of the run, its scores, and the statuses of points without a number and of those with one."""
    rows = outcomes(contents).to_dict("records")
    header = ("What", "Status", "Meaning", "Points", "The first of them")
    titles = {column.label: column.title for column in contents.columns}
    lost, remarks = (
        Grid(header, [_outcome_row(row, titles) for row in rows if row["has_value"] == valued], frozenset({0, 1, 2, 4}))
        for valued in (False, True)
    )
    return {
        "entries": _entries(contents),
        "scores": _scores(contents),
        "estimators": contents.tells_robustness,
        "points": contents.points.num_rows,
        "lost": lost,
        "remarks": remarks,
        "repeat": _repeat(contents),
    }


CHAPTER = Chapter("scored", "What was scored, and how to repeat it", summarize, "methods")


def _entries(contents: Contents) -> list[tuple[str, str]]:
    leveled = {column.setting for column in contents.columns if column.setting.sigma is not None}
    settings = contents.settings or tuple(sorted(leveled, key=str))
    return [
        ("Model", _model_text(contents)),
        ("Data", _data_text(contents)),
        ("Points", _points_text(contents)),
        *([("Noise", _noise_text(contents, settings))] if settings else []),
        *([("Noise level", "; ".join(show(str(setting)) for setting in settings))] if settings else []),
        *(_mean_entry(contents, setting) for setting in contents.settings),
        *([("One number per point", _chosen_text(contents, contents.chosen))] if contents.chosen else []),
        ("Cost", _cost_text(contents)),
        ("Intervals", f"{percent(contents.confidence)} confidence, each for itself."),
    ]


def _model_text(contents: Contents) -> str:
    model = contents.record.model
    facts = (
        (model.classes if (model.decision or "top").startswith("top") else None, "{} classes"),
        (model.parameters or None, "{} parameters"),
        (model.dtype, "{}"),
        (model.outputs, "output read as {}"),
    )
    return ", ".join([show(model.spec), *(text.format(show(value)) for value, text in facts if value is not None)])


def _data_text(contents: Contents) -> str:
    data = contents.record.data
    parts = [show(data.path or data.format)]
    parts += [f"split {show(data.split)}"] if data.split is not None else []
    parts += [f"inputs of shape {' × '.join(map(show, data.input_shape))}"] if data.input_shape is not None else []
    return ", ".join(parts)


def _points_text(contents: Contents) -> str:
    count = contents.points.num_rows
    chosen = chosen_text(count, contents.record.data)
    lost = contents.overview.without_number if contents.chosen is not None else 0
    return f"{plural(count, 'point')}{chosen and f', {chosen}'}{f', {lost:,} without a number' if lost else ''}."


def _noise_text(contents: Contents, settings: Sequence[Setting]) -> str:
    """Explain each noise family, or name it; and say whether noisy inputs are clipped."""
    noises = {name: contents.noises.get(name) for name in dict.fromkeys(setting.noise for setting in settings)}
    names = [show(noise.explanation if noise and noise.explanation else name) for name, noise in noises.items()]
    clipped = ""
    if any(column.parameters.get("clip") for column in contents.columns):
        clipped = " Sampled scores clip noisy inputs to the range, which the linear ones do not know of."
    elif any(setting.in_pixels for setting in settings) or any(
        noise is not None and noise.isotropic is not None for noise in noises.values()
    ):
        clipped = " Noisy inputs are not clipped to the range."
    still = show(still_text(contents.record.data))
    return f"{'; '.join(names)}.{clipped}{still and f' {still}'}"


def _mean_entry(contents: Contents, setting: Setting) -> tuple[str, str]:
    text, column = MISSING, preferred(contents.columns, setting)
    if column is not None:
        mean = mean_interval(column.p_robust, contents.confidence)
        below = percent(float((column.value.dropna() > 1.0 - STEADY).mean()))
        text = f"{fixed(mean.mean)}; {interval(mean.low, mean.high)}. It is below {STEADY:g} at {below} of the points."
    return f"Mean p_robust, {show(str(setting))}", text


def _chosen_text(contents: Contents, chosen: Column) -> str:
    """Say which column is representative for a point, and why."""
    choice = f"{show(chosen.title)} ({show(chosen.shown)}): of the estimators of the run the most preferred"
    several = f", at the noise level whose mean p_robust is nearest to {TYPICAL_P_ROBUST:g}"
    return f"Where one is wanted, this page reads {choice}{several if len(contents.settings) > 1 else ''}."


def _cost_text(contents: Contents) -> str:
    account, seconds = contents.record.account, contents.record.seconds
    total, count = account.passes, account.points
    average = f", {total / count:,.0f} per point" if count else ""
    time = f" in {duration(seconds)}" if seconds is not None else ""
    return (
        f"{show(total)} passes through the network{average}{time}. Forward and backward passes count one each; "
        "scores that need the same passes share them."
    )


def _scores(contents: Contents) -> Grid:
    groups: dict[str, list[Column]] = {}
    for column in contents.columns:
        groups.setdefault(column.variant, []).append(column)
    return Grid(
        ("Score", "What it is", "Draws", "Passes per point"),
        [_score_row(contents, group) for group in groups.values()],
        frozenset({0, 1}),
        [contents.colours[group[0].score] for group in groups.values()],
    )


def _score_row(contents: Contents, group: Sequence[Column]) -> tuple[str, ...]:
    draws = sorted({(column.most_draws, column.stops) for column in group if column.most_draws is not None})
    costs = sorted(column.cost for column in group if column.value.notna().any())
    return (
        contents.score_cell(group[0]),
        show(group[0].explanation or group[0].title),
        range_text([f"{'at most ' if stops else ''}{count:,}" for count, stops in draws]),
        range_text([f"{cost:,.0f}" for cost in costs]),
    )


def _outcome_row(row: Row, titles: Mapping[str, str]) -> tuple[str, ...]:
    labels, more = row["labels"], " …" if row["points"] > len(row["first"]) else ""
    score_text = "the point itself"
    if labels:
        further = f" and {plural(len(labels) - 1, 'other score')}" if len(labels) > 1 else ""
        score_text = f"{show(titles[labels[0]], 60)}{further}\n{show(short_labels(labels)[labels[0]], 60)}"
    examples = "; ".join(_first_text(*entry) for entry in row["first"])
    return score_text, show(row["status"]), show(row["sentence"]), f"{row['points']:,}", examples + more


def _first_text(row: int, name: Any, detail: Any) -> str:
    point = f"row {row}" if pd.isna(name) else f"{show(name, 60)} (row {row})"
    return point if pd.isna(detail) else f"{point}: {show(str(detail).removeprefix(f'row {row}: '), 80)}"


def _repeat(contents: Contents) -> list[tuple[str, str]]:
    record, model, data = contents.record, contents.record.model, contents.record.data
    digests = {"sha256": model.sha256, "weights sha256": model.weights_sha256, "state sha256": model.state_sha256}
    scale = [MISSING if numbers is None else ", ".join(map(show, numbers)) for numbers in (model.mean, model.std)]
    references = dict.fromkeys(show(column.reference) for column in contents.columns if column.reference)
    command = "Not recorded: run from Python." if record.command is None else shlex.join(record.command)
    return [
        ("Command", show(command)),
        ("Seed", show(record.seed)),
        ("Checks before it", show(record.doctor)),
        ("Digest of the model", _listed(digests)),
        ("Digest of the data", _listed({"sha256": data.sha256})),
        ("Normalisation", f"mean {scale[0]}; standard deviation {scale[1]}"),
        ("Versions", _listed({"brittle": record.brittle, **dict(sorted(record.versions.items()))})),
        ("Machine", _listed(asdict(record.machine))),
        ("Started", show(record.created)),
        ("Finished", show(record.finished)),
        ("Definitions", "; ".join(references) or MISSING),
    ]


def _listed(values: Mapping[str, object]) -> str:
    """Names with their values, without those that have none."""
    return ", ".join(f"{name} {show(value)}" for name, value in values.items() if value is not None) or MISSING
