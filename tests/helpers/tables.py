"""Made-up tables, as a run would have recorded them, without a network.

Every point has a distance to the boundary and every class a typical distance, so p_robust is known: `Phi(reach)`.
The sampled scores of one sigma share a stream of votes, as those of a run do.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.metadata import version
from typing import Any, cast

import numpy as np
import pyarrow as pa
from PIL import Image
from scipy.stats import norm

from brittle.estimate import FLIP_PROBABILITY, Evidence, Status, parameters_json, score_label
from brittle.noise.families import FAMILIES
from brittle.run.record import describe_score
from brittle.scores import NoiseScore
from brittle.scores.catalogue import CATALOGUE
from brittle.store.record import (
    Account,
    DataRecord,
    Finding,
    MachineRecord,
    ModelRecord,
    NoiseRecord,
    RunRecord,
    ScoreRecord,
)
from brittle.store.schemas import COUNTEREXAMPLES, POINTS, SCORES
from brittle.store.table import Table

CLASS_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

HOSTILE = (
    '"><img src=x onerror=alert(1)>',
    "</script>",
    "<script>alert(1)</script>",
    "</svg><script>alert(1)</script>",
    "</text></svg><iframe src=//evil.example>",
    "]]><script>alert(1)</script>",
    "<!--<script>",
    "--><img src=x onerror=alert(1)>",
    "</style><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "<svg/onload=alert(1)>",
    "<foreignObject><body onload=alert(1)>",
    "<a href='javascript:alert(1)'>x</a>",
    "javascript:alert(1)",
    "' onmouseover='alert(1)",
    '" onfocus="alert(1)" autofocus="',
    "{{ 7 * 7 }}",
    "{% for x in y %}",
    "{{ cycler.__init__.__globals__ }}",
    "${7*7}",
    "datum['x'] + 1",
    "');alert(1);('",
    "url(https://evil.example/x.png)",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<meta http-equiv=refresh content=0;url=//evil.example>",
    "<base href=//evil.example/>",
    "<object data=//evil.example></object>",
    "<embed src=//evil.example>",
    "<math><mtext></mtext><img src=x onerror=alert(1)></math>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;",
    "\x00<script>alert(1)</script>",
    "line\nbreak\r\n<script>",
    "tab\tand \x1b[31m red",
    "\u202etxt.exe",
    "\udc80 invalid",
    '=HYPERLINK("https://evil.example")',
    "x" * 255,
    "[bold red]markup[/bold red]",
    "猫 é e\u0301 😀",
)

_SAMPLED = ("monte_carlo", "shrinkage", "moments", "mmse", "mmse_mvs")
_WITH_GRADIENTS = ("taylor", "taylor_mvs", "first_order_margin", "mmse", "mmse_mvs")
_BIAS = {"mmse": 0.04, "mmse_mvs": -0.1, "taylor": 0.35, "taylor_mvs": 0.3}
_UNIT = {"linf": 0.2, "l2": 4.0}
PICTURES = 256
"""Number of pictures of each class."""


@dataclass(frozen=True)
class Recipe:
    """Content of a made-up run; its last input margins are infinite, those before them masked.

    With `features`, inputs are so many numbers and no images.
    """

    points: int = 60
    classes: int = 10
    sigmas: Sequence[float] = (0.05, 0.1, 0.25)
    scores: Sequence[str] = ("monte_carlo", "moments", "mmse", "taylor", "softmax", "logit_margin")
    budgets: Sequence[int] = (10, 50, 400)
    labels: bool = True
    images: bool = True
    features: int = 0
    class_names: Sequence[str] | None = None
    broken: int = 0
    norms: Sequence[str] = ("linf",)
    not_found: int = 0
    masked: int = 0
    certified: bool = False
    seed: int = 0


def make_table(**recipe: Any) -> Table:
    """Return the table of a run with these fields of `Recipe`; it is made once in a process, and nothing changes it."""
    complete = Recipe(**recipe)
    if repr(complete) not in _MADE:
        _MADE[repr(complete)] = _make(complete)
    return _MADE[repr(complete)]


_MADE: dict[str, Table] = {}


def with_score(
    table: Table,
    score: str,
    value: Any,
    parameters: Mapping[str, Any] | None = None,
    *,
    half: float = 0.0,
    ends: tuple[Any, Any] | None = None,
    status: Sequence[str] | None = None,
    **changes: Any,
) -> Table:
    """Return `table` with one more score, and `changes` of its record; NaN is a row without a number.

    Its intervals are twice `half` wide unless `ends` sets them.
    """
    score_parameters, numbers = dict(parameters or {}), np.array(value, dtype=np.float64)
    missing, count = Status.NONFINITE_LOGITS.slug, len(numbers)
    rows = {
        "point": table.points["point"],
        "score": [score] * count,
        "parameters": [parameters_json(score_parameters)] * count,
        "value": pa.array(numbers, from_pandas=True),
        **{
            name: pa.array(np.array(np.broadcast_to(end, count), dtype=np.float64), from_pandas=True)
            for name, end in zip(("low", "high"), ends or (numbers - half, numbers + half), strict=True)
        },
        "status": list(status or [missing if np.isnan(number) else Status.OK.slug for number in numbers]),
        "detail": [None] * count,
        "passes": [1] * count,
        **dict.fromkeys(("evidence", "counted_low", "counted_high", "votes"), [None] * count),
    }
    record = replace(table.record, scores=(*table.record.scores, score_record(score, score_parameters, **changes)))
    return replace(table, scores=pa.concat_tables([table.scores, pa.table(rows, schema=SCORES)]), record=record)


def with_rows(table: Table, rows: Any) -> Table:
    """Return `table` with the rows of scores in a frame."""
    return replace(table, scores=pa.Table.from_pandas(rows, schema=SCORES, preserve_index=False))


def with_value(table: Table, label: str, values: Sequence[float | None]) -> Table:
    """Return `table` with the values of the score `label` replaced."""
    entry = next(entry for entry in table.record.scores if entry.label == label)
    frame = table.long()
    rows = (frame["score"] == entry.score) & (frame["parameters"] == parameters_json(entry.parameters))
    frame.loc[rows, "value"] = np.array(values, dtype=np.float64)
    return with_rows(table, frame)


def _make(recipe: Recipe) -> Table:
    rng, count = np.random.default_rng(recipe.seed), recipe.points
    truth = rng.integers(recipe.classes, size=count)
    typical = np.linspace(0.05, 0.25, recipe.classes)
    distance = typical[truth] * rng.lognormal(0.0, 0.7, size=count)
    predicted = np.where(rng.random(count) < 0.9, truth, (truth + 1) % recipe.classes)
    ok = np.arange(count) >= recipe.broken
    ids = [f"{row:016x}" for row in range(count)]
    entries = [score_record(score, parameters) for score, parameters in _grid(recipe)]
    votes = {sigma: rng.random((count, max(recipe.budgets))) for sigma in recipe.sigmas}
    scores = [SCORES.empty_table(), *(_rows(entry, ids, ok, distance, votes, rng, recipe) for entry in entries)]
    nothing, labelled = pa.nulls(count), np.full(count, recipe.labels)
    points = {
        "point": ids,
        "row": range(count),
        "name": [f"test/{row:05d}.png" for row in range(count)],
        "label": pa.array(truth, mask=~labelled),
        "predicted": pa.array(predicted, mask=~ok),
        "target": nothing,
        "decided": nothing,
        "correct": pa.array(truth == predicted, mask=~(ok & labelled)),
        "label_probability": pa.array(np.where(truth == predicted, 0.75, 0.125), mask=~(ok & labelled)),
        "status": _status(ok),
        "detail": pa.array(["1 NaN of 3072"] * count, mask=ok),
        "passes": np.sum([part["passes"] for part in scores[1:]], axis=0, dtype=np.int64) + np.zeros(count, np.int64),
        "image": [_image(recipe, class_number, row) for row, class_number in enumerate(truth)],
        "input": _inputs(recipe, 2),
    }
    point_table = pa.table({name: pa.array(points[name], POINTS.field(name).type) for name in POINTS.names}, POINTS)
    return Table(
        points=point_table,
        counterexamples=_counterexamples(scores[1:], predicted, recipe),
        scores=pa.concat_tables(scores),
        record=_record(recipe, entries, point_table["correct"].to_pylist()),
    )


def _flips(score: str) -> bool:
    return CATALOGUE[score].quantity == FLIP_PROBABILITY


def _grid(recipe: Recipe) -> Iterator[tuple[str, dict[str, Any]]]:
    for score in recipe.scores:
        if score == "input_margin":
            yield from ((score, {"norm": norm}) for norm in recipe.norms)
        elif not _flips(score):
            yield score, {}
        elif score == "softmax":
            yield score, {"temperature": 1.0}
        elif score in _SAMPLED:
            yield from ((score, {"sigma": s, "draws": d}) for s in recipe.sigmas for d in recipe.budgets)
        else:
            yield from ((score, {"sigma": s}) for s in recipe.sigmas)


def _status(ok: np.ndarray) -> np.ndarray:
    return np.where(ok, Status.OK.slug, Status.NONFINITE_INPUT.slug).astype(object)


def _rows(
    entry: ScoreRecord,
    ids: list[str],
    ok: np.ndarray,
    distance: np.ndarray,
    votes: dict[float, np.ndarray],
    rng: np.random.Generator,
    recipe: Recipe,
) -> pa.Table:
    score, draws, count, status = entry.score, cast(Any, entry.parameters.get("draws")), len(ids), _status(ok)
    value, half = _values(score, distance, entry.parameters, votes, rng)
    low, high, evidence = value - half, value + half, np.full(count, None, dtype=object)
    if _flips(score):
        low, high = (np.clip(end, 0.0, 1.0) if draws else np.full(count, np.nan) for end in (low, high))
        flips_seen = value * (draws or 0) >= 1
        evidence[:] = np.where(flips_seen, Evidence.MODELLED.slug, Evidence.EXTRAPOLATED.slug)
    if score == "monte_carlo":
        evidence[:] = Evidence.COUNTED.slug
    if score == "input_margin":
        low = 0.6 * value if recipe.certified else 0.0 * value
        last = count - recipe.not_found
        value[last:] = high[last:] = np.inf
        status[last:], status[last - recipe.masked : last] = Status.NOT_FOUND.slug, Status.MASKED.slug
    passes = 600 if score == "input_margin" else (draws or 1) * (11 if score in _WITH_GRADIENTS else 1)
    rows = {
        "point": ids,
        "score": [score] * count,
        "parameters": [parameters_json(entry.parameters)] * count,
        **{
            name: pa.array(numbers, mask=~ok | np.isnan(numbers))
            for name, numbers in (("value", value), ("low", low), ("high", high))
        },
        "status": status,
        "detail": pa.nulls(count),
        "passes": np.where(ok, passes, 0),
        "evidence": pa.array(evidence, mask=~ok),
        "counted_low": pa.nulls(count),
        "counted_high": pa.nulls(count),
        "votes": pa.nulls(count),
    }
    return pa.table({name: pa.array(rows[name], SCORES.field(name).type) for name in SCORES.names}, SCORES)


def _values(
    score: str, distance: np.ndarray, parameters: Any, votes: dict[float, np.ndarray], rng: np.random.Generator
) -> tuple[np.ndarray, Any]:
    """Return values of one score and the half-width of their intervals."""
    sigma, draws, unit = parameters.get("sigma"), parameters.get("draws"), _UNIT.get(str(parameters.get("norm")), 30.0)
    if score == "input_margin":
        return distance * unit, 0.0
    if score in ("max_probability", "probability_margin", "entropy"):
        sure = norm.cdf(distance * 8.0 * rng.lognormal(0.0, 0.5, distance.size))
        return {"max_probability": sure, "probability_margin": 2.0 * sure - 1.0, "entropy": 1.0 - sure}[score], 0.0
    if not _flips(score):
        return distance * unit * rng.lognormal(0.0, 0.3, distance.size), 0.0
    if sigma is None:
        return norm.sf(distance * 14.0), 0.0
    if score == "monte_carlo":
        flipped = (votes[sigma][:, :draws] < norm.sf(reach(distance, sigma))[:, None]).mean(axis=1)
        return flipped, 2.6 * np.sqrt(flipped * (1 - flipped) / draws) + 5.3 / draws
    spread = 0.5 / np.sqrt(draws) if draws else 0.0
    margin = reach(distance, sigma) + _BIAS.get(score, 0.0) + spread * rng.standard_normal(distance.size)
    return norm.sf(margin), 2.6 * spread * norm.pdf(margin)


def _counterexamples(scores: list[pa.Table], predicted: np.ndarray, recipe: Recipe) -> pa.Table:
    """Return the next class, its image and one of the difference from the point's for every finite input margin."""
    near = _inputs(recipe, 3)
    rows = [
        {
            "point": scored["point"],
            "score": scored["score"],
            "parameters": scored["parameters"],
            "predicted": (predicted[row] + 1) % recipe.classes,
            "image": _image(recipe, predicted[row], PICTURES + row % PICTURES),
            "difference": _image(recipe, predicted[row], 2 * PICTURES + row % PICTURES),
            "input": near[row],
        }
        for part in scores
        for row, scored in enumerate(part.to_pylist())
        if scored["score"] == "input_margin" and scored["value"] is not None and np.isfinite(scored["value"])
    ]
    return pa.Table.from_pylist(rows, schema=COUNTEREXAMPLES)


def _inputs(recipe: Recipe, stream: int) -> list[bytes | None]:
    """Return an input for every point, as a run keeps it; None where inputs are images."""
    rng = np.random.default_rng([recipe.seed, stream])
    numbers = rng.random((recipe.points, recipe.features), dtype=np.float32)
    return [row.tobytes() if recipe.features else None for row in numbers]


def _image(recipe: Recipe, number: int, which: int) -> bytes | None:
    """Return a picture of a class, where inputs are images."""
    return picture(int(number), which) if recipe.images and not recipe.features else None


def reach(distance: np.ndarray, sigma: float) -> np.ndarray:
    """Return the distance of the boundary in deviations of the noise; with much noise, on the far side."""
    return distance / sigma - 3.0 * sigma


@cache
def picture(number: int, which: int) -> bytes:
    """Return a PNG of 32x32 pixels in blocks of colours, drawn once in a process."""
    sink = io.BytesIO()
    blocks = np.random.default_rng([number, which]).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    Image.fromarray(blocks.repeat(8, 0).repeat(8, 1)).save(sink, format="PNG")
    return sink.getvalue()


def score_record(score: str, parameters: Mapping[str, Any], /, **changes: Any) -> ScoreRecord:
    """Return the record of a score of the catalogue with these parameters, with some fields changed."""
    kind, label = CATALOGUE.get(score), score_label(score, parameters)
    if kind is None:
        facts: dict[str, Any] = {"score": score, "parameters": dict(parameters), "label": label, "quantity": score}
        facts |= {"title": score, "reference": ""}
        return ScoreRecord(**facts | changes)
    names = {field.name for field in fields(kind)} - {"noise"}
    settings: dict[str, Any] = {"limit": None} if "limit" in names else {}
    settings |= {name: value for name, value in parameters.items() if name in names}
    family = parameters.get("noise", "gaussian")
    if family in FAMILIES and issubclass(kind, NoiseScore):
        settings["noise"] = FAMILIES[family](settings.pop("sigma"))
    elif family not in FAMILIES:
        changes = {"noise": NoiseRecord(explanation=family, isotropic=False)} | changes
    return replace(describe_score(kind(**settings)), **({"parameters": dict(parameters), "label": label} | changes))


def with_scores(table: Table, scores: Iterable[ScoreRecord]) -> Table:
    """Return `table` with other scores on its record."""
    return replace(table, record=replace(table.record, scores=tuple(scores)))


def without_score(table: Table, *names: str) -> Table:
    """Return `table` without some scores."""
    mask = pa.array([score not in names for score in table.scores["score"].to_pylist()], pa.bool_())
    bare = replace(table, scores=table.scores.filter(mask))
    return with_scores(bare, (score for score in table.record.scores if score.score not in names))


def first_points(table: Table, count: int) -> Table:
    """Return `table` with its first points only."""
    points = table.points.slice(0, count)
    ids = set(points["point"].to_pylist())
    mask = pa.array([point in ids for point in table.scores["point"].to_pylist()], pa.bool_())
    return replace(table, points=points, scores=table.scores.filter(mask))


def with_model(table: Table, **changes: Any) -> Table:
    """Return `table` with some facts of its model changed."""
    return replace(table, record=replace(table.record, model=replace(table.record.model, **changes)))


def _record(recipe: Recipe, scores: Sequence[ScoreRecord], correct: list[bool | None]) -> RunRecord:
    names = recipe.class_names or (CLASS_NAMES[: recipe.classes] if recipe.classes <= len(CLASS_NAMES) else None)
    command = ("brittle", "score", "--model", "models:cnn", "--data", "cifar10", "--sigma", "0.05,0.1,0.25")
    account = Account(
        points=recipe.points,
        failed=recipe.broken,
        failed_early=recipe.broken,
        labelled=len(correct) - correct.count(None),
        correct=correct.count(True),
        passes=1_234_567,
    )
    return RunRecord(
        brittle=version("brittle"),
        created="2026-01-05T09:00:00+00:00",
        finished="2026-01-05T09:03:25+00:00",
        seconds=205.3,
        command=command,
        doctor="passed",
        seed=0,
        confidence=0.99,
        batch_size=64,
        shard_points=256,
        model=MODEL if recipe.classes == MODEL.classes else replace(MODEL, classes=recipe.classes),
        data=DataRecord(
            format="npz",
            path="cifar10-test.npz",
            split="test",
            sha256="2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
            points=recipe.points,
            limit=recipe.points,
            input_shape=(recipe.features,) if recipe.features else (3, 32, 32),
            class_names=tuple(names) if names else None,
            labelled=recipe.labels,
        ),
        scores=tuple(scores),
        versions={"python": "3.11.9", "torch": "2.6.0", "numpy": "2.1.0", "pyarrow": "18"},
        machine=MachineRecord(device="cpu", threads=2, platform="x86_64"),
        account=account,
        warnings=(Finding("low_precision", "The weights are float16; sums were taken in float32."),),
    )


MODEL = ModelRecord(
    spec="models:cnn",
    format="python",
    sha256="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    bounds=(0.0, 1.0),
    mean=(0.4914, 0.4822, 0.4465),
    std=(0.247, 0.2435, 0.2616),
    outputs="logits",
    classes=10,
    dtype="float32",
    parameters=62_006,
    state_sha256="0" * 64,
)
