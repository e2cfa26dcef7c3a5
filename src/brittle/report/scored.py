"""What was scored and how to repeat it: the record of the run, in words."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any, TypeGuard

import pandas as pd

from brittle.analysis.change_columns import laplacian_column, sampled_columns
from brittle.analysis.columns import Column, Setting
from brittle.analysis.expected_change import CHANGE
from brittle.analysis.outcomes import outcomes
from brittle.analysis.worst_case import margin_columns
from brittle.intervals import clopper_pearson
from brittle.report import wording
from brittle.report.subject import Subject
from brittle.report.summary import Fact, Grid, Scored
from brittle.report.wording import MISSING, percent, plural, range_text, shown

_NOISES = {
    "gaussian": "Normal, drawn for every input value independently",
    "uniform": "Uniform, drawn for every input value independently",
    "laplace": "Laplace, drawn for every input value independently",
    "sphere": "Uniform on a sphere around the point",
    "ball": "Uniform in a ball around the point",
}


def summarize_scored(subject: Subject) -> Scored:
    """The section on what was scored."""
    grid = _outcomes(subject)
    return Scored(facts=_facts(subject), scores=_scores(subject), outcomes=grid, outcomes_note=_note(subject, grid))


def summarize_warnings(subject: Subject) -> tuple[Fact, ...]:
    """What the run warned of."""
    found = subject.provenance.get("warnings")
    return tuple(
        Fact(shown(warning.get("code")), shown(warning.get("sentence")))
        for warning in (found if isinstance(found, list) else [])
        if isinstance(warning, dict)
    )


def summarize_repeat(subject: Subject) -> tuple[Fact, ...]:
    """The section on how to repeat the run."""
    provenance, model, data = subject.provenance, subject.part("model"), subject.part("data")
    command = provenance.get("command")
    text = shlex.join(str(word) for word in command) if isinstance(command, list) else "Not recorded: run from Python."
    references = dict.fromkeys(shown(column.reference) for column in subject.columns if column.reference)
    return (
        Fact("Command", shown(text)),
        Fact("Seed", shown(provenance.get("seed"))),
        Fact("Checks before it", shown(provenance.get("doctor"))),
        Fact("Digest of the model", _digest_text(model)),
        Fact("Digest of the data", _digest_text(data)),
        Fact(
            "Normalisation", f"mean {_list_text(model.get('mean'))}; standard deviation {_list_text(model.get('std'))}"
        ),
        Fact("Versions", _record_text({"brittle": provenance.get("brittle")} | subject.part("versions"))),
        Fact("Machine", _record_text(subject.part("machine"))),
        Fact("Started", shown(provenance.get("created"))),
        Fact("Finished", shown(provenance.get("finished"))),
        Fact("Definitions", "; ".join(references) or MISSING),
    )


def _facts(subject: Subject) -> tuple[Fact, ...]:
    return (
        Fact("Model", _model_text(subject.part("model"))),
        Fact("Data", _data_text(subject.part("data"))),
        Fact("Points", _points_text(subject)),
        Fact("Accuracy", _accuracy_text(subject)),
        *((Fact("Noise", _noise_text(subject)), Fact("Noise level", _sigma_text(subject))) if _noises(subject) else ()),
        Fact("Cost", _cost_text(subject)),
        Fact("Intervals", f"{percent(subject.confidence)} confidence, each for itself."),
    )


def _model_text(model: dict[str, Any]) -> str:
    notes = model.get("notes") if isinstance(model.get("notes"), list) else []
    known = (
        ("classes", "{} classes"),
        ("parameters", "{} parameters"),
        ("dtype", "{}"),
        ("outputs", "output read as {}"),
    )
    parts = [text.format(shown(model[name])) for name, text in known if model.get(name) is not None]
    return ", ".join([shown(model.get("spec")), *parts, *(shown(note) for note in notes or [])])


def _data_text(data: dict[str, Any]) -> str:
    parts = [shown(data.get("path") or data.get("format"))]
    parts += [f"split {shown(data['split'])}"] if data.get("split") is not None else []
    shape = data.get("input_shape")
    parts += [f"inputs of shape {' × '.join(shown(side) for side in shape)}"] if isinstance(shape, list) else []
    return ", ".join(parts)


def _points_text(subject: Subject) -> str:
    count = subject.table.points.num_rows
    spoken, what = _spoken_of(subject)
    valued = 0 if spoken is None else int(spoken.value.notna().sum())
    return f"{plural(count, 'point')}, of which {valued:,} got {what}."


def _spoken_of(subject: Subject) -> tuple[Column | None, str]:
    """The column whose points are counted, and what it gives them: that of the first chapter that the page has."""
    if subject.chosen is not None:
        return subject.chosen, "a robustness"
    margins, laplacian = margin_columns(subject.table), laplacian_column(subject.columns)
    if margins:
        return margins[0], "an input margin"
    if laplacian is not None:
        return laplacian, "a Laplacian"
    sampled = list(sampled_columns(subject.columns, CHANGE).values())
    return (sampled[-1], "a sampled change") if sampled else (None, "a robustness")


def _accuracy_text(subject: Subject) -> str:
    correct = subject.table.points["correct"].drop_null().to_pandas()
    if correct.empty:
        return "Unknown: no point carries a label. Robustness is that of the predicted class and needs none."
    low, high = clopper_pearson(int(correct.sum()), len(correct), subject.confidence)
    return (
        f"{percent(correct.mean())} of {plural(len(correct), 'labelled point')} predicted right "
        f"({percent(float(low))} to {percent(float(high))})."
    )


def _noises(subject: Subject) -> tuple[Setting, ...]:
    """The noise of the robustness, or else of the scores that know any; empty for a run of margins alone."""
    leveled = {column.setting for column in subject.columns if column.setting.sigma is not None}
    return subject.settings or tuple(sorted(leveled, key=str))


def _noise_text(subject: Subject) -> str:
    noise = subject.part("noise")
    recorded = noise.get("family")
    families = [recorded] if recorded is not None else list(dict.fromkeys(s.noise for s in _noises(subject)))
    names = "; ".join(_NOISES.get(str(family), shown(family)) for family in families)
    clip = noise.get("clip") or any(column.parameters.get("clip") for column in subject.columns)
    clipped = (
        "Sampled scores clip noisy inputs to the range, which the linear ones do not know of."
        if clip
        else "Noisy inputs are not clipped to the range."
    )
    return f"{names}. {clipped}" if names else MISSING


def _sigma_text(subject: Subject) -> str:
    sigmas = list(dict.fromkeys(setting.sigma for setting in _noises(subject) if setting.sigma is not None))
    if not sigmas:
        return "None: no score of this run depends on noise."
    values = ", ".join(f"{sigma:g}" for sigma in sigmas)
    bounds = subject.part("model").get("bounds")
    if not _is_range(bounds):
        return f"Standard deviation sigma = {values} in the units of the inputs; their range was not declared."
    low, high = bounds[0], bounds[1]
    shares = ", ".join(f"{100.0 * sigma / (high - low):.3g}%" for sigma in sigmas)
    return (
        f"Standard deviation sigma = {values} in pixel units, with inputs from {low:g} to {high:g}; that is {shares} "
        "of this range."
    )


def _is_range(bounds: Any) -> TypeGuard[list[float]]:
    numbers = isinstance(bounds, list) and len(bounds) == 2 and all(isinstance(end, int | float) for end in bounds)
    return numbers and bounds[0] < bounds[1]


def _cost_text(subject: Subject) -> str:
    total, seconds = subject.provenance.get("passes"), subject.provenance.get("seconds")
    points = subject.table.points.num_rows
    each = f", {total / points:,.0f} per point" if isinstance(total, int) and points else ""
    time = f" in {wording.duration(seconds)}" if seconds is not None else ""
    return (
        f"{shown(total)} passes through the network{each}{time}. Forward and backward passes count one each; scores "
        "that need the same passes share them."
    )


def _scores(subject: Subject) -> Grid:
    groups: dict[str, list[Column]] = {}
    for column in subject.columns:
        groups.setdefault(column.variant, []).append(column)
    return Grid(
        head=("Score", "What it is", "Draws", "Passes per point"),
        numeric=(False, False, True, True),
        rows=tuple(_score_row(variant, group) for variant, group in groups.items()),
        scores=tuple(group[0].score for group in groups.values()),
    )


def _score_row(variant: str, group: Sequence[Column]) -> tuple[str, ...]:
    draws = sorted({column.draws for column in group if column.draws is not None})
    costs = sorted(column.cost for column in group if column.value.notna().any())
    return (
        shown(variant, 60),
        wording.EXPLANATIONS.get(group[0].score) or shown(group[0].title),
        range_text([f"{count:,}" for count in draws]),
        range_text([f"{cost:,.0f}" for cost in costs]),
    )


def _outcomes(subject: Subject) -> Grid:
    return Grid(
        head=("What", "Status", "Meaning", "Number given", "Points", "The first of them"),
        numeric=(False, False, False, False, True, False),
        rows=tuple(_outcome_row(row) for row in outcomes(subject.table).to_dict("records")),
    )


def _outcome_row(row: dict[Any, Any]) -> tuple[str, ...]:
    more = " …" if row["points"] > len(row["first"]) else ""
    return (
        _labels_text(row["labels"]),
        shown(row["status"]),
        shown(row["sentence"]),
        "yes" if row["has_value"] else "no",
        f"{row['points']:,}",
        "; ".join(_first_text(*entry) for entry in row["first"]) + more,
    )


def _labels_text(labels: Sequence[str]) -> str:
    if not labels:
        return "the point itself"
    more = f" and {plural(len(labels) - 1, 'other score')}" if len(labels) > 1 else ""
    return shown(labels[0], 60) + more


def _first_text(row: int, name: Any, detail: Any) -> str:
    point = f"row {row}" if pd.isna(name) else f"{shown(name, 60)} (row {row})"
    return point if pd.isna(detail) else f"{point}: {shown(str(detail).removeprefix(f'row {row}: '), 80)}"


def _note(subject: Subject, grid: Grid) -> str:
    if not subject.table.points.num_rows:
        return "The run holds no points."
    if not grid.rows:
        return "Every point got a number from every score."
    return (
        "Where nothing can be said there is no number, and the point is left out of what follows; a status beside a "
        "number says what to keep in mind."
    )


def _digest_text(part: dict[str, Any]) -> str:
    """All digests that a part of the provenance holds."""
    found = {name: digest for name, digest in part.items() if name.endswith("sha256") and digest is not None}
    return ", ".join(f"{shown(name).replace('_', ' ')} {shown(digest)}" for name, digest in found.items()) or MISSING


def _list_text(values: Any) -> str:
    return ", ".join(shown(value) for value in values) if isinstance(values, list) else shown(values)


def _record_text(record: dict[str, Any]) -> str:
    return ", ".join(f"{shown(key)} {shown(value)}" for key, value in record.items()) or MISSING
