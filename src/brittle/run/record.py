"""The record of a run: everything needed to repeat it, and what became of it. It is the content of `run.json`."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import torch
from torch import nn

from brittle.doctor import Diagnosis, Finding, about_accuracy, about_orientation
from brittle.model.classifier import Classifier
from brittle.model.loading.weights import state_digest
from brittle.run.job import Job
from brittle.scores import Score
from brittle.store.account import Account
from brittle.store.table import FORMAT

PACKAGES = ("torch", "numpy", "scipy", "pyarrow", "pillow", "safetensors")
"""Packages whose versions can change a number."""


@dataclass
class Record:
    """What a run is made of, and a running account of it.

    Attributes:
        fixed: what is known when the run starts, from `describe`.
        findings: what a user should know, in the order in which it was found.
        account: what became of the points so far.
        classes: number of classes.
        examined: whether the doctor looked at the run, `passed` or `skipped`.
        confusion: labels and predictions of the points so far.
        seconds: duration, once finished.
        finished: when that was.
        created: when it began.
    """

    fixed: dict[str, Any]
    findings: list[Finding]
    classes: int
    examined: str
    confusion: Counter[tuple[int, int]] = field(default_factory=Counter)
    account: Account = field(default_factory=Account)
    seconds: float | None = None
    finished: str | None = None
    created: str = ""

    @classmethod
    def start(cls, fixed: dict[str, Any], diagnosis: Diagnosis) -> Record:
        """The record of a run that is about to start, with what looking at its first points showed."""
        model = fixed["model"] | {"classes": diagnosis.classes, "taken": diagnosis.taken}
        data = fixed["data"] | {"input_shape": list(diagnosis.input_shape)}
        found = (list(diagnosis.findings), diagnosis.classes, diagnosis.examined)
        return cls(fixed | {"model": model, "data": data}, *found, created=_now())

    def finish(self, seconds: float) -> None:
        """The run is over."""
        self.seconds = seconds
        self.finished = _now()
        account, exif = self.account, self.fixed["data"].get("exif")
        self.findings += about_orientation(account.turned, account.points, applied=exif == "apply")
        self.findings += about_accuracy(self.account.correct, self.account.labelled, self.classes, self.confusion)

    def provenance(self) -> dict[str, Any]:
        """The content of `run.json` as things stand."""
        return self.fixed | {
            "doctor": self.examined,
            "created": self.created,
            "finished": self.finished,
            "seconds": self.seconds,
            "passes": self.account.passes,
            "failed_points": self.account.failed,
            "account": self.account.content,
            "warnings": [{"code": finding.code, "sentence": finding.sentence} for finding in self.findings],
        }


def describe(job: Job, command: Sequence[str] | None) -> dict[str, Any]:
    """Everything needed to repeat `job`; no pass through the network is made for it."""
    classifier, points = job.classifier, job.points
    return {
        "format": FORMAT,
        "brittle": version("brittle"),
        "command": None if command is None else list(command),
        "seed": job.seed,
        "confidence": job.confidence,
        "batch_size": job.rows,
        "shard_points": job.shard_points,
        "model": _describe_model(classifier),
        "data": dict(points.provenance)
        | {
            "class_names": None if points.class_names is None else list(points.class_names),
            "labelled": points.labels is not None,
        },
        "scores": [_describe_score(score) for score in job.scores],
        "versions": {"python": platform.python_version()} | {package: version(package) for package in PACKAGES},
        "machine": {
            "device": _device_name(classifier.device),
            "threads": torch.get_num_threads(),
            "platform": platform.machine(),
        }
        | _default_dtype(),
    }


def _default_dtype() -> dict[str, str]:
    """What a `forward` makes numbers of where it names no dtype; told where it is not that of every new process."""
    dtype = torch.get_default_dtype()
    return {} if dtype == torch.float32 else {"default_dtype": str(dtype).removeprefix("torch.")}


def _describe_model(classifier: Classifier) -> dict[str, Any]:
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
