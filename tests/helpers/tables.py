"""Made-up tables: what a run would have recorded, without a network.

Every point has a distance to the boundary and every class a typical distance, so p_robust is known: `Phi(reach)`.
The sampled scores of one sigma read one stream of votes, as those of a run do.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image
from scipy.stats import norm

from brittle.estimate import FLIP_PROBABILITY, Evidence, Status, parameters_json, score_label
from brittle.noise import FAMILIES
from brittle.run.record import describe_score
from brittle.scores import CATALOGUE, NoiseScore
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
_PASSES = {
    "taylor": 11, "taylor_mvs": 11, "softmax": 1, "logit_margin": 1, "first_order_margin": 11, "feature_margin": 1,
    "input_margin": 600, "max_probability": 1, "probability_margin": 1, "entropy": 1,
}  # fmt: skip
PICTURES = 256
"""How many pictures there are of each class."""

_UNIT = {"linf": 0.2, "l2": 4.0}
_PASSES_PER_DRAW = {"monte_carlo": 1, "shrinkage": 1, "moments": 1, "mmse": 11, "mmse_mvs": 11}
_BIAS = {
    "shrinkage": 0.0,
    "moments": 0.0,
    "mmse": 0.04,
    "mmse_mvs": -0.1,
    "taylor": 0.35,
    "taylor_mvs": 0.3,
}


@dataclass(frozen=True)
class Recipe:
    """What a made-up run holds; of its input margins the last are infinite, the ones before them masked.

    With `features` inputs are so many numbers and no images.
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
    """The table of a run with the fields of `Recipe` that are given; made once in a process: nothing changes it."""
    wanted = Recipe(**recipe)
    if repr(wanted) not in _MADE:
        _MADE[repr(wanted)] = _make(wanted)
    return _MADE[repr(wanted)]


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
    """`table` with one more score, and `changes` of its record; NaN is a row without a number.

    Its intervals are twice `half` wide, where no ends are given.
    """
    given, numbers = dict(parameters or {}), np.array(value, dtype=np.float64)
    missing, count = Status.NONFINITE_LOGITS.slug, len(numbers)
    rows = {
        "point": table.points["point"],
        "score": [score] * count,
        "parameters": [parameters_json(given)] * count,
        "value": pa.array(numbers, from_pandas=True),
        **{
            name: pa.array(np.array(np.broadcast_to(end, count), dtype=np.float64), from_pandas=True)
            for name, end in zip(("low", "high"), ends or (numbers - half, numbers + half), strict=True)
        },
        "status": list(status or [missing if np.isnan(one) else Status.OK.slug for one in numbers]),
        "detail": [None] * count,
        "passes": [1] * count,
        **dict.fromkeys(("evidence", "counted_low", "counted_high"), [None] * count),
    }
    record = replace(table.record, scores=(*table.record.scores, score_record(score, given, **changes)))
    return replace(table, scores=pa.concat_tables([table.scores, pa.table(rows, schema=SCORES)]), record=record)


def with_rows(table: Table, rows: Any) -> Table:
    """`table` with the rows of scores that a frame holds."""
    return replace(table, scores=pa.Table.from_pandas(rows, schema=SCORES, preserve_index=False))


def with_value(table: Table, label: str, values: Sequence[float | None]) -> Table:
    """`table` with the values of the score `label` replaced."""
    entry = next(entry for entry in table.record.scores if entry.label == label)
    frame = table.long()
    rows = (frame["score"] == entry.score) & (frame["parameters"] == parameters_json(entry.parameters))
    frame.loc[rows, "value"] = np.array(values, dtype=np.float64)
    return with_rows(table, frame)


def _make(recipe: Recipe) -> Table:
    rng = np.random.default_rng(recipe.seed)
    truth = rng.integers(recipe.classes, size=recipe.points)
    typical = np.linspace(0.05, 0.25, recipe.classes)
    distance = typical[truth] * rng.lognormal(0.0, 0.7, size=recipe.points)
    predicted = np.where(rng.random(recipe.points) < 0.9, truth, (truth + 1) % recipe.classes)
    slugs = [Status.NONFINITE_INPUT.slug] * recipe.broken + [Status.OK.slug] * (recipe.points - recipe.broken)
    ids = [f"{row:016x}" for row in range(recipe.points)]
    entries = [score_record(score, parameters) for score, parameters in _grid(recipe)]
    votes = {sigma: rng.random((recipe.points, max(recipe.budgets))) for sigma in recipe.sigmas}
    scores = [_rows(entry, ids, slugs, distance, votes, rng) for entry in entries]
    for part in scores:
        if "input_margin" in part["score"]:
            _spoil(part, recipe)
    points = {
        "point": ids,
        "row": list(range(recipe.points)),
        "name": [f"test/{row:05d}.png" for row in range(recipe.points)],
        "label": truth.tolist() if recipe.labels else [None] * recipe.points,
        "predicted": [None if slug != "ok" else int(c) for slug, c in zip(slugs, predicted, strict=True)],
        "target": [None] * recipe.points,
        "decided": [None] * recipe.points,
        "correct": [
            bool(right) if recipe.labels and slug == "ok" else None
            for right, slug in zip(truth == predicted, slugs, strict=True)
        ],
        "status": slugs,
        "detail": [None if slug == "ok" else "1 NaN of 3072" for slug in slugs],
        "passes": [sum(part["passes"][row] for part in scores) for row in range(recipe.points)],
        "image": [
            picture(int(c), row % PICTURES) if recipe.images and not recipe.features else None
            for row, c in enumerate(truth)
        ],
        "input": _inputs(recipe, 2),
    }
    return Table(
        points=pa.table(points, schema=POINTS),
        counterexamples=_counterexamples(scores, points, recipe),
        scores=pa.concat_tables([pa.table(part, schema=SCORES) for part in scores]) if scores else SCORES.empty_table(),
        record=_record(recipe, entries, points),
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


def _rows(
    entry: ScoreRecord,
    ids: list[str],
    slugs: list[str],
    distance: np.ndarray,
    votes: dict[float, np.ndarray],
    rng: np.random.Generator,
) -> dict[str, list[Any]]:
    given: Mapping[str, Any] = entry.parameters
    score, sigma, draws = entry.score, given.get("sigma"), given.get("draws")
    unit = _UNIT.get(str(given.get("norm")), 30.0)
    value, error = _values(score, distance, sigma, draws, votes, rng, unit)
    margin = entry.quantity != FLIP_PROBABILITY
    low, high = value - error, value + error
    passes = _PASSES[score] if score in _PASSES else _PASSES_PER_DRAW[score] * int(draws or 0)
    ok = [slug == "ok" for slug in slugs]
    sampled = margin or draws is not None

    def shown(numbers: np.ndarray, known: bool = True) -> list[float | None]:
        return [float(number) if good and known else None for number, good in zip(numbers, ok, strict=True)]

    return {
        "point": ids,
        "score": [score] * len(ids),
        "parameters": [parameters_json(entry.parameters)] * len(ids),
        "value": shown(value),
        "low": shown(low if margin else np.clip(low, 0.0, 1.0), sampled),
        "high": shown(high if margin else np.clip(high, 0.0, 1.0), sampled),
        "status": list(slugs),
        "detail": [None] * len(ids),
        "passes": [passes if good else 0 for good in ok],
    } | _evidence(score, draws, value, ok, margin)


def _evidence(score: str, draws: int | None, value: np.ndarray, ok: list[bool], margin: bool) -> dict[str, list[Any]]:
    """What a run would say stands behind the values."""
    if margin:
        kinds = [None] * len(ok)
    elif score == "monte_carlo":
        kinds = [Evidence.COUNTED.slug] * len(ok)
    else:
        kinds = [
            (Evidence.EXTRAPOLATED if draws is None or flip * draws < 1 else Evidence.MODELLED).slug for flip in value
        ]
    unknown: list[float | None] = [None] * len(ok)
    evidence = [kind if good else None for kind, good in zip(kinds, ok, strict=True)]
    return {"evidence": evidence, "counted_low": unknown, "counted_high": unknown}


def _values(
    score: str,
    distance: np.ndarray,
    sigma: float | None,
    draws: int | None,
    votes: dict[float, np.ndarray],
    rng: np.random.Generator,
    unit: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Values of one score and the half-width of their intervals."""
    none = np.zeros_like(distance)
    if score == "input_margin":
        return distance * unit, none
    if score in ("max_probability", "probability_margin", "entropy"):
        sure = norm.cdf(distance * 8.0 * rng.lognormal(0.0, 0.5, distance.size))
        return {"max_probability": sure, "probability_margin": 2.0 * sure - 1.0, "entropy": 1.0 - sure}[score], none
    if not _flips(score):
        return distance * unit * rng.lognormal(0.0, 0.3, distance.size), none
    if sigma is None:
        return norm.sf(distance * 14.0), none
    if score == "monte_carlo":
        flipped = (votes[sigma][:, :draws] < norm.sf(reach(distance, sigma))[:, None]).mean(axis=1)
        return flipped, 2.6 * np.sqrt(flipped * (1 - flipped) / draws) + 5.3 / draws  # pyright: ignore[reportOperatorIssue] right when it runs
    spread = 0.5 / np.sqrt(draws) if draws else 0.0
    seen = reach(distance, sigma) + _BIAS[score] + spread * rng.standard_normal(distance.size)
    return norm.sf(seen), 2.6 * spread * norm.pdf(seen)


def _spoil(part: dict[str, list[Any]], recipe: Recipe) -> None:
    """Give input margins their lower ends, and the last of them the statuses that the recipe asks for."""
    part["low"] = [None if v is None else 0.6 * v if recipe.certified else 0.0 for v in part["value"]]
    last = len(part["value"]) - recipe.not_found
    for row in range(last, len(part["value"])):
        part["value"][row] = part["high"][row] = float("inf")
        part["status"][row] = Status.NOT_FOUND.slug
    for row in range(last - recipe.masked, last):
        part["status"][row] = Status.MASKED.slug


def _counterexamples(scores: list[dict[str, list[Any]]], points: dict[str, list[Any]], recipe: Recipe) -> pa.Table:
    """For every finite input margin the next class, its image and the difference from that of the point."""
    near = _inputs(recipe, 3)
    rows = [
        {
            "point": point,
            "score": "input_margin",
            "parameters": parameters,
            "predicted": (points["predicted"][row] + 1) % recipe.classes,
            "image": picture(points["predicted"][row], PICTURES + row % PICTURES)
            if recipe.images and not recipe.features
            else None,
            "difference": None,
            "input": near[row],
        }
        for part in scores
        if "input_margin" in part["score"]
        for row, (point, parameters, value) in enumerate(
            zip(part["point"], part["parameters"], part["value"], strict=True)
        )
        if value is not None and np.isfinite(value)
    ]
    images = dict(zip(points["point"], points["image"], strict=True))
    for row in rows if recipe.images and not recipe.features else []:
        row["difference"] = difference(images[row["point"]], row["image"])
    return pa.Table.from_pylist(rows, schema=COUNTEREXAMPLES)


@cache
def difference(here: bytes, there: bytes) -> bytes:
    """The difference of two PNGs as a run stores it: around grey, its largest change as far as it can go."""
    first, second = (np.asarray(Image.open(io.BytesIO(png)), dtype=np.float64) / 255.0 for png in (here, there))
    change = second - first
    sink = io.BytesIO()
    shown = 0.5 + change / (2.0 * np.abs(change).max())
    Image.fromarray(np.rint(255.0 * shown).astype(np.uint8)).save(sink, format="PNG")
    return sink.getvalue()


def _inputs(recipe: Recipe, stream: int) -> list[bytes | None]:
    """An input for every point, as a run keeps it; None where inputs are images."""
    rng = np.random.default_rng([recipe.seed, stream])
    numbers = rng.random((recipe.points, recipe.features), dtype=np.float32)
    return [one.tobytes() if recipe.features else None for one in numbers]


def reach(distance: np.ndarray, sigma: float) -> np.ndarray:
    """How many deviations of the noise the boundary is away; with much noise, on the far side."""
    return distance / sigma - 3.0 * sigma


@cache
def picture(number: int, which: int) -> bytes:
    """One of the pictures of a class, drawn once in a process."""
    return thumbnail(number, np.random.default_rng([number, which]))


def thumbnail(number: int, rng: np.random.Generator) -> bytes:
    """A PNG of 32x32 pixels: a soft disc of the class's colour before a graded background."""
    y, x = np.mgrid[0:32, 0:32] / 31.0
    centre, radius = rng.uniform(0.3, 0.7, 2), rng.uniform(0.15, 0.35)
    disc = 1.0 / (1.0 + np.exp(40.0 * (np.hypot(x - centre[0], y - centre[1]) - radius)))
    angle = 2.0 * np.pi * (number / 10.0 + np.arange(3) / 3.0)
    colour, sky = 0.5 + 0.45 * np.cos(angle), rng.uniform(0.3, 0.9, 3)
    pixels = disc[..., None] * colour + (1.0 - disc[..., None]) * sky * (0.6 + 0.4 * y[..., None])
    noisy = np.clip(pixels + 0.03 * rng.standard_normal((32, 32, 3)), 0.0, 1.0)
    sink = io.BytesIO()
    Image.fromarray((255.0 * noisy).astype(np.uint8)).save(sink, format="PNG")
    return sink.getvalue()


def score_record(score: str, parameters: Mapping[str, Any], /, **changes: Any) -> ScoreRecord:
    """What a run records of a score of the catalogue, under the given parameters, with some fields changed."""
    kind, label = CATALOGUE.get(score), score_label(score, parameters)
    if kind is None:
        made: dict[str, Any] = {"score": score, "parameters": dict(parameters), "label": label, "quantity": score}
        made |= {"title": score, "reference": ""}
        return ScoreRecord(**made | changes)
    known = {one.name for one in fields(kind)} - {"noise"}
    given = {name: value for name, value in parameters.items() if name in known}
    family = parameters.get("noise", "gaussian")
    if family in FAMILIES and issubclass(kind, NoiseScore):
        given["noise"] = FAMILIES[family](given.pop("sigma"))
    elif family not in FAMILIES:
        changes = {"noise": NoiseRecord(explanation=family, isotropic=False)} | changes
    return replace(describe_score(kind(**given)), **({"parameters": dict(parameters), "label": label} | changes))


def with_scores(table: Table, scores: Iterable[ScoreRecord]) -> Table:
    """`table` with other scores on its record."""
    return replace(table, record=replace(table.record, scores=tuple(scores)))


def without_score(table: Table, *names: str) -> Table:
    """`table` without some scores."""
    kept = pa.array([score not in names for score in table.scores["score"].to_pylist()], pa.bool_())
    bare = replace(table, scores=table.scores.filter(kept))
    return with_scores(bare, (one for one in table.record.scores if one.score not in names))


def first_points(table: Table, count: int) -> Table:
    """The first points of `table` only."""
    points = table.points.slice(0, count)
    ids = set(points["point"].to_pylist())
    kept = pa.array([point in ids for point in table.scores["point"].to_pylist()], pa.bool_())
    return replace(table, points=points, scores=table.scores.filter(kept))


def with_model(table: Table, **changes: Any) -> Table:
    """`table` with some facts of its model changed."""
    return replace(table, record=replace(table.record, model=replace(table.record.model, **changes)))


def _record(recipe: Recipe, scores: Sequence[ScoreRecord], points: dict[str, list[Any]]) -> RunRecord:
    names = recipe.class_names or (CLASS_NAMES[: recipe.classes] if recipe.classes <= len(CLASS_NAMES) else None)
    command = ("brittle", "score", "--model", "models:cnn", "--data", "cifar10", "--sigma", "0.05,0.1,0.25")
    right = points["correct"]
    account = Account(
        points=recipe.points,
        failed=recipe.broken,
        failed_early=recipe.broken,
        labelled=len(right) - right.count(None),
        correct=right.count(True),
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
)
