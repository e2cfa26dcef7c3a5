"""Tables with margins of known points, and detectors fitted to them."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
import torch
from helpers.problems import inputs, linear_network
from helpers.tables import score_record
from torch import Tensor, nn

import brittle
from brittle.detector import SCORES, Detector
from brittle.errors import DetectorFormatError
from brittle.estimate import parameters_json
from brittle.scores import Entropy, FeatureMargin, LogitMargin, MaxProbability, ProbabilityMargin
from brittle.store.schemas import SCORES as SCHEMA
from brittle.store.table import Table

SIMPLE = [name for name in SCORES if name != "pseudo_margin"]
FORWARD = [LogitMargin(), MaxProbability(), ProbabilityMargin(), Entropy(), FeatureMargin("linf")]


def with_margins(table: Table, margins, status=None, norm: str = "linf", parameters=None) -> Table:
    """`table` with input margins, as a run with attacks would have recorded them."""
    status = status or ["not_found" if math.isinf(margin) else "ok" for margin in margins]
    parameters = parameters or {"norm": norm}
    rows = {
        "point": table.points["point"],
        "score": ["input_margin"] * len(margins),
        "parameters": [parameters_json(parameters)] * len(margins),
        "value": pa.array(margins, pa.float64(), from_pandas=True),
        "low": [0.0] * len(margins),
        "high": pa.array(margins, pa.float64(), from_pandas=True),
        "status": status,
        "detail": [None] * len(margins),
        "passes": [100] * len(margins),
        **dict.fromkeys(("evidence", "counted_low", "counted_high"), [None] * len(margins)),
    }
    entry = score_record("input_margin", {}, parameters=parameters, label=f"input_margin(norm={norm})")
    record = replace(table.record, scores=(*table.record.scores, entry))
    return replace(
        table,
        scores=pa.concat_tables([table.scores, pa.table(rows, schema=SCHEMA)]),
        record=record,
    )


def classifier(seed: int = 0) -> brittle.Classifier:
    return brittle.Classifier(linear_network(3, 6, seed, torch.float32), mean=0.4, std=0.3)


def points(count: int, seed: int = 0) -> Tensor:
    return inputs(count, (6,), seed)


def without(table: Table, rows: int) -> Table:
    """`table` with the first `rows` points only."""
    kept = set(table.points["point"].to_pylist()[:rows])
    mask = pa.array([point in kept for point in table.scores["point"].to_pylist()])
    return replace(table, points=table.points[:rows], scores=table.scores.filter(mask))


def lenient(detector: Detector, score: str, network: nn.Module, outputs: str = "logits") -> Detector:
    """A detector of `network` that calls nothing brittle but what it must."""
    known = brittle.detector.Identity(
        brittle.model.loading.load.state_digest(network), (-2.0, 2.0), None, None, outputs
    )
    return below_all(replace(detector, model=known), score)


def below_all(detector: Detector, score: str = "logit_margin") -> Detector:
    """A detector that no file can hold, whose threshold every finite score reaches, to see the other rules alone."""
    changed = copy.copy(detector)
    for name, value in (("score", score), ("threshold", -1e300)):
        object.__setattr__(changed, name, value)
    return changed


def refused(folder: Path, content: bytes | str) -> str:
    path = folder / "bad.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(DetectorFormatError, match="is not a detector") as caught:
        Detector.load(path)
    assert caught.value.exit_code == 6
    return str(caught.value)
