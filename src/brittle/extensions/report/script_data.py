"""The points of a run and its scores as the script of the page reads them."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from brittle.analysis.class_votes import votes_texts
from brittle.analysis.columns import safety
from brittle.analysis.comparison import pair_points
from brittle.analysis.decisions import numbers_beside
from brittle.analysis.features import feature_names, kept_counterexamples, kept_inputs
from brittle.analysis.overview import overview
from brittle.analysis.overview_text import RESTS, chosen_sentence, next_steps, where_to_run, words_of
from brittle.estimate import LIMIT, Status, parameters_json
from brittle.extensions.report.contents import Contents
from brittle.extensions.report.images import PER_SIDE, TILE, decoded, embedded, sheets
from brittle.extensions.report.wording import show
from brittle.store.columns import Column, interval_evidence, storable
from brittle.store.record import DataRecord
from brittle.store.representative import largest_budgets, representative_column
from brittle.text import clipped

MAX_NUMBERS = 6_000_000  # numbers of scores of a run on a page; scores beyond them, the last ones first, are left out
MAX_INPUT_NUMBERS = 2_000_000  # numbers of inputs that a page holds; of more, it holds none
MAX_PAIRS = 500  # points whose nearest input with another prediction is shown as an image
MAX_PAIR_BYTES = 3_000_000  # bytes of these images
FIRST_WORD = 1 << 40  # the first number that stands for words in place of a class; classes have smaller ones
KINDS = {"f8": "<f8", "i4": "<i4", "u1": "u1"}  # the kinds of numbers that a page holds, and how NumPy writes them

_WORDS = {"label": "target", "predicted": "decided"}
"""The columns that hold a class, and those that hold words where there is none."""


def packed(numbers: ArrayLike, kind: str) -> dict[str, str]:
    """Numbers of one kind: `{"kind": ..., "bytes": ...}`, the bytes little-endian in base64."""
    array = np.ascontiguousarray(np.asarray(numbers), dtype=KINDS[kind])
    return {"kind": kind, "bytes": base64.b64encode(array.tobytes()).decode("ascii")}


def inert_json(value: Mapping[str, object]) -> str:
    """JSON that can stand between `script` tags: nothing in it ends the element or begins a comment."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@dataclass(frozen=True, eq=False)
class _Run:
    """A run as the page shows it: of each point of the page its id there, None for none."""

    name: str
    contents: Contents
    points: list[str | None]
    columns: list[Column]


def page_data(contents: Contents) -> dict[str, object] | None:
    """Return the points and scores of a run as the script of its page reads them; None without either."""
    deciding = representative_column(contents.columns)
    shown_numbers = None if deciding is None else numbers_beside(contents, deciding)
    columns = _columns(contents, [column for column in (shown_numbers, deciding) if column is not None])
    if not contents.points.num_rows or not columns:
        return None
    this_run = _Run("this run", contents, contents.points["point"].to_pylist(), columns)
    runs = [this_run, *(_other(this_run, name, rival) for name, rival in contents.rivals.items())]
    answers = Answers([run.contents for run in runs])
    leading = shown_numbers if shown_numbers is not None else columns[0]
    safe = safety(leading)
    order = np.argsort((leading.value if safe is None else safe).to_numpy(np.float64), kind="stable")  # NaN comes last
    limit = LIMIT if deciding is None or deciding.limit is None else deciding.limit
    words, record = words_of(contents.record.model.decision), contents.record
    return {
        **_points(contents, answers),
        "limit": limit,
        "sampleText": chosen_sentence(contents.points.num_rows, record.data),
        # What tells the notes on these points from those on others: runs over as many of the same data share theirs
        "identity": f"{record.data.sha256 or record.data.path or ''}:{contents.points.num_rows}"[:200],
        "runs": [_run(this_run, answers), *(_run(run, answers) | _next(run, limit) for run in runs[1:])],
        "columns": _all_columns(runs, deciding, shown_numbers),
        "representative": [column.label for column in columns].index(leading.label),
        "correctWords": words._asdict() | {"correct": show(words.correct)},
        "evidence": {kind.slug: words for kind, words in RESTS.items()},
        "statuses": {status.slug: status.sentence for status in Status},
        "pictures": _pictures(contents, order),
        "votes": _texts([*votes_texts(contents).reindex(contents.points["point"].to_pylist())]),
        "nearest": _nearest(contents, answers, order),
        "inputs": _inputs(contents),
    }


class Answers:
    """Classes of some runs by their numbers, with `names`; words for decisions without classes have numbers, too."""

    def __init__(self, runs: Sequence[Contents]) -> None:
        columns = [(run.points, name) for run in runs for name in _WORDS]
        columns += [(run.counterexamples, "predicted") for run in runs]
        pairs = [pair for column in columns for pair in self._pairs(*column)]
        words = {word for number, word in pairs if number is None and word}
        self._numbers = {word: FIRST_WORD + place for place, word in enumerate(sorted(words))}
        numbers = {number for number, _ in pairs if number is not None}
        classes = {str(int(label)): runs[0].class_text(label) for label in sorted(numbers) if 0 <= label < FIRST_WORD}
        self.names = classes | {str(number): show(word, 40) for word, number in self._numbers.items()}

    def of(self, table: pa.Table, column: str) -> list[int]:
        """Return the number of the `label` or of what is `predicted` in each row of a run's table; -1 for none."""
        pairs = self._pairs(table, column)
        return [self._numbers.get(word or "", -1) if number is None else int(number) for number, word in pairs]

    @staticmethod
    def _pairs(table: pa.Table, column: str) -> list[tuple[float | None, str | None]]:
        return list(zip(table[column].to_pylist(), table[_WORDS[column]].to_pylist(), strict=True))


def _other(this_run: _Run, name: str, rival: Contents) -> _Run:
    """Another run, as far as it holds the same points and scores."""
    pairing = pair_points(this_run.contents, rival)
    partner = dict(zip(pairing.first, pairing.second, strict=True))
    labels = {column.label for column in this_run.columns}
    shared = [column for column in rival.columns if column.label in labels]
    return _Run(show(name, 40), rival, [partner.get(point or "") for point in this_run.points], shared)


def _points(contents: Contents, answers: Answers) -> dict[str, object]:
    """Return the points apart from their scores: names, rows, labels, and what was wrong with them."""
    ids = contents.points["point"].to_pylist()
    return {
        "count": len(ids),
        "ids": ids,
        "names": _texts([name and clipped(name) for name in contents.points["name"].to_pylist()]),
        "rows": packed(contents.points["row"].to_numpy(), "f8"),
        "details": _texts(contents.points["detail"].to_pylist()),
        "classes": answers.names,
        "label": packed(answers.of(contents.points, "label"), "f8"),
    }


def _run(run: _Run, answers: Answers) -> dict[str, object]:
    """Return for each point of the page whether the run holds it, its prediction, and whether that is correct."""
    points = run.contents.points.select(["point", "correct"]).to_pandas().set_index("point")
    points["predicted"] = answers.of(run.contents.points, "predicted")
    points["correctness"] = points["correct"].map({True: 1, False: 0}).fillna(2)
    aligned = points.assign(held=1).reindex(run.points).fillna({"held": 0, "predicted": -1, "correctness": 2})
    return {
        "name": run.name,
        "confidence": run.contents.confidence,
        "held": packed(aligned["held"], "u1"),
        "predicted": packed(aligned["predicted"], "f8"),
        "correct": packed(aligned["correctness"], "u1"),
    }


def _next(run: _Run, limit: float) -> dict[str, object]:
    """Return the next steps with another run: the score that its commands read, these commands, and their folder."""
    view = overview(run.contents, limit=limit)
    steps = [{"state": step.state, "kind": step.kind, "command": show(step.command)} for step in next_steps(view)]
    score = "" if view.numbers is None else view.numbers.label
    place = show(where_to_run(view)).replace("this run", run.name)
    return {"next": {"score": score, "steps": steps, "place": place}}


def _all_columns(runs: Sequence[_Run], deciding: Column | None, numbers: Column | None) -> list[dict[str, object]]:
    """Return the scores of all runs, each with the places of its run and of the one that decides its states."""
    columns = [
        _column(run.contents, column, column.rows.reindex(run.points)) | {"run": place}
        for place, run in enumerate(runs)
        for column in run.columns
    ]
    if deciding is None or numbers is None or numbers is deciding:
        return columns
    places = {(entry["run"], entry["label"]): place for place, entry in enumerate(columns)}
    return [
        entry | {"decidedBy": places.get((entry["run"], deciding.label)) if entry["label"] == numbers.label else None}
        for entry in columns
    ]


def _columns(contents: Contents, leading_columns: Sequence[Column]) -> list[Column]:
    """Return the scores of the page: of the estimators `leading_columns`, with the most draws, and all others."""
    largest = {column.label for column in largest_budgets(contents.columns)}
    candidates = [
        column
        for column in contents.columns
        if column in leading_columns
        or ((column.label in largest or not column.is_probability) and column.value.notna().any())
    ]
    leading = [column for column in candidates if column in leading_columns]
    max_columns = max(1, MAX_NUMBERS // max(1, 3 * contents.points.num_rows))
    labels = {column.label for column in [*leading, *candidates][:max_columns]}
    return [column for column in candidates if column.label in labels]


def _column(contents: Contents, column: Column, rows: pd.DataFrame) -> dict[str, object]:
    """Return a score of a run; `rows` are those of its table, one for each point of the page."""
    return {
        "label": column.label,
        "name": column.label.partition("(")[0],
        "title": column.title,
        "setting": "" if column.setting.sigma is None else contents.noise_text(column.setting),
        "sigma": column.setting.sigma,
        "family": show(column.setting.family, 60),
        "unit": show(column.setting.unit, 60),
        "level": column.setting.level,
        "variant": column.variant,
        "quantity": column.quantity,
        "probability": column.is_probability,
        "isDecisive": column.is_decisive,
        # As the terminal orders points: of an input margin the larger distance.
        "safer": None if safety(column) is None else column.safer or "higher",
        "explanation": column.explanation,
        "value": packed(rows["value"], "f8"),
        "low": _ends(rows, "low"),
        "high": _ends(rows, "high"),
        "status": _texts(rows["status"].tolist()),
        "evidence": _texts(interval_evidence(rows).tolist()),
        "details": _texts(rows["detail"].tolist()),
    }


def _ends(rows: pd.DataFrame, name: str) -> dict[str, str] | str | None:
    """Return one end of the intervals; `"value"` where it is the value at every point, None where no point has any."""
    numbers, values = (rows[name_of_column].to_numpy(np.float64) for name_of_column in (name, "value"))
    if np.isnan(numbers).all():
        return None
    if np.array_equal(numbers, values, equal_nan=True):
        return "value"
    return packed(numbers, "f8")


def _texts(texts: Sequence[object]) -> dict[str, object] | None:
    """Texts, each once, and which of them every point has, -1 for none; None where no point has any."""
    codes, names = pd.factorize(pd.Series(texts, dtype=object))
    if not len(names):
        return None
    return {"names": [str(name) for name in names], "codes": packed(codes, "i4")}


def _pictures(contents: Contents, order: NDArray[np.intp]) -> dict[str, object] | None:
    pngs = contents.points["image"].to_pylist()
    if all(png is None for png in pngs):
        return None
    album = sheets(pngs, order.tolist())
    if not album.images:
        return None
    page = {"side": album.side, "perSide": PER_SIDE, "sheets": [*album.images], "tiles": packed(album.tiles, "i4")}
    bounds, sides = contents.record.model.bounds, contents.record.data.input_shape or (1,)
    # Steps of brightness that one unit of the input is; None where a pixel of an image is none of the input
    reduced = max(sides[1:], default=TILE + 1) > TILE
    steps = None if bounds is None or reduced else 255.0 / (bounds[1] - bounds[0])
    return {**page, "steps": steps, "grey": sides[0] == 1}


def _nearest(contents: Contents, answers: Answers, order: NDArray[np.intp]) -> list[dict[str, object]]:
    """Return the nearest inputs with another prediction; as far as room is, with images, the least safe first."""
    rank = {point: place for place, point in enumerate(order.tolist())}
    places = {point: place for place, point in enumerate(contents.points["point"].to_pylist())}
    labels = {(column.score, parameters_json(column.parameters)): column.label for column in contents.columns}
    pairs = zip(contents.counterexamples.to_pylist(), answers.of(contents.counterexamples, "predicted"), strict=True)
    located = [(places[row["point"]], row, number) for row, number in pairs if row["point"] in places]
    images = contents.points["image"].to_pylist()
    entries, shown, room = [], 0, MAX_PAIR_BYTES
    for place, row, number in sorted(located, key=lambda entry: rank[entry[0]]):
        score = labels.get((row["score"], row["parameters"]), row["score"])
        entry: dict[str, object] = {"point": place, "score": score, "predicted": number}
        point_image, neighbour = images[place], row["image"]
        if shown < MAX_PAIRS and decoded(point_image) is not None and decoded(neighbour) is not None:
            size = len(point_image) + len(neighbour)
            if size <= room:
                room, shown = room - size, shown + 1
                pair = {"pointImage": embedded(point_image), "neighbourImage": embedded(neighbour)}
                entry |= {name: f"data:image/png;base64,{image}" for name, image in pair.items()}
        entries.append(entry)
    return entries


def _levels(data: DataRecord) -> dict[str, list[str]]:
    """Return the values behind the codes of categorical features, by the name of the feature."""
    categories = data.reading.get("categories")
    categories = categories if isinstance(categories, dict) else {}
    levels = {name: entry.get("levels") for name, entry in categories.items() if isinstance(entry, dict)}
    return {storable(key): [str(level) for level in order] for key, order in levels.items() if isinstance(order, list)}


def _inputs(contents: Contents) -> dict[str, object] | None:
    """Names and values of all features, and of each point the first input with another prediction, or None."""
    cells = contents.points["input"]
    if cells.null_count == len(cells):
        return None
    values = kept_inputs(contents)
    if values.size > MAX_INPUT_NUMBERS:
        return None
    rows = contents.counterexamples.select(["score", "parameters", "input"]).to_pylist()
    searching = {(row["score"], row["parameters"]) for row in rows if row["input"] is not None}
    neighbours = np.full(values.shape, np.nan)
    for column in contents.columns:
        if (column.score, parameters_json(column.parameters)) in searching:
            counterexamples = kept_counterexamples(contents, column)
            neighbours = np.where(np.isnan(neighbours).all(axis=1, keepdims=True), counterexamples, neighbours)
    return {
        "names": feature_names(contents.record.data),
        "levels": _levels(contents.record.data),
        "values": packed(values, "f8"),
        "neighbours": None if np.isnan(neighbours).all() else packed(neighbours, "f8"),
    }
