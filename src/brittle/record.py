"""The record of a run: everything needed to repeat it, and what became of it. It is the content of `run.json`."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import pyarrow as pa
import torch
from torch import nn

from brittle._version import __version__
from brittle.classifier import Classifier
from brittle.data import Points
from brittle.doctor import Diagnosis, Finding, about_accuracy
from brittle.estimate import Status
from brittle.models import state_digest
from brittle.scores import Score
from brittle.table import FORMAT

PACKAGES = ("torch", "numpy", "scipy", "pyarrow", "pillow", "safetensors")
"""Packages whose versions can change a number."""

FIRST_ROWS = 1000
"""Rows at the start of the data whose failures are counted apart."""


@dataclass
class Record:
    """What a run is made of, and a running account of it.

    Attributes:
        fixed: what is known when the run starts.
        findings: what a user should know, in the order in which it was found.
        points: points done.
        failed: points that lack a number in some score.
        failed_early: how many of them are among the first `FIRST_ROWS`.
        last_failure: the last of them, in words.
        labelled: points with a label and a prediction.
        correct: how many of these are predicted right.
        seconds: duration, once finished.
    """

    fixed: dict[str, Any]
    classifier: Classifier
    passes_before: int
    classes: int
    findings: list[Finding]
    points: int = 0
    failed: int = 0
    failed_early: int = 0
    last_failure: str = ""
    labelled: int = 0
    correct: int = 0
    seconds: float | None = None
    finished: str | None = None
    created: str = ""

    @classmethod
    def start(
        cls,
        classifier: Classifier,
        points: Points,
        scores: Sequence[Score],
        seed: int,
        confidence: float,
        rows: int,
        diagnosis: Diagnosis,
        command: Sequence[str] | None,
    ) -> Record:
        """The record of a run that is about to start."""
        fixed = {
            "format": FORMAT,
            "brittle": __version__,
            "command": None if command is None else list(command),
            "seed": seed,
            "confidence": confidence,
            "batch_size": rows,
            "model": _describe_model(classifier, diagnosis),
            "data": dict(points.provenance)
            | {
                "input_shape": list(diagnosis.input_shape),
                "class_names": None if points.class_names is None else list(points.class_names),
                "labelled": points.labels is not None,
            },
            "scores": [_describe_score(score) for score in scores],
            "versions": {"python": platform.python_version()} | {package: version(package) for package in PACKAGES},
            "machine": {
                "device": _device_name(classifier.device),
                "threads": torch.get_num_threads(),
                "platform": platform.machine(),
            },
        }
        findings = list(diagnosis.findings)
        return cls(fixed, classifier, classifier.passes, diagnosis.classes, findings, created=_now())

    @property
    def passes(self) -> int:
        """Passes through the network since the start, the examination left out."""
        return self.classifier.passes - self.passes_before

    def add(self, points: pa.Table, scores: pa.Table) -> None:
        """Account for the rows of a batch."""
        self.points += len(points)
        correct = points["correct"].to_pylist()
        self.labelled += len(correct) - correct.count(None)
        self.correct += correct.count(True)
        missing = scores.filter(scores["value"].is_null()).to_pylist()
        failed = {row["point"] for row in missing}
        self.failed += len(failed)
        rows = zip(points["point"].to_pylist(), points["row"].to_pylist(), strict=True)
        self.failed_early += sum(row < FIRST_ROWS for point, row in rows if point in failed)
        for last in missing[-1:]:
            sentence = Status[last["status"].upper()].sentence
            self.last_failure = f"point {last['point']}, {last['status']}: {last['detail'] or sentence}"

    def finish(self, seconds: float) -> None:
        """The run is over."""
        self.seconds = seconds
        self.finished = _now()
        self.findings += about_accuracy(self.correct, self.labelled, self.classes)

    def provenance(self) -> dict[str, Any]:
        """The content of `run.json` as things stand."""
        return self.fixed | {
            "created": self.created,
            "finished": self.finished,
            "seconds": self.seconds,
            "passes": self.passes,
            "failed_points": self.failed,
            "warnings": [{"code": finding.code, "sentence": finding.sentence} for finding in self.findings],
        }


def _describe_model(classifier: Classifier, diagnosis: Diagnosis) -> dict[str, Any]:
    model = classifier.model
    parameters = list(model.parameters()) if isinstance(model, nn.Module) else []
    dtypes = sorted({str(parameter.dtype).removeprefix("torch.") for parameter in parameters})
    return {
        "spec": getattr(model, "__name__", type(model).__name__),
        "format": "object",
        "state_sha256": state_digest(model) if isinstance(model, nn.Module) else None,
        "bounds": list(classifier.bounds),
        "mean": None if classifier.mean is None else list(classifier.mean),
        "std": None if classifier.std is None else list(classifier.std),
        "outputs": classifier.outputs,
        "head": classifier.head_name,
        "classes": diagnosis.classes,
        "parameters": sum(parameter.numel() for parameter in parameters),
        "dtype": ", ".join(dtypes) or None,
    } | dict(classifier.source)


def _describe_score(score: Score) -> dict[str, Any]:
    return {
        "score": score.name,
        "parameters": score.parameters,
        "label": score.label,
        "quantity": score.quantity,
        "title": score.title,
        "reference": score.reference,
    }


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
