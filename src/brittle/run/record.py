"""The record of a run: what is known when it starts, and a running account of it."""

from __future__ import annotations

import hashlib
import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib import metadata

import pyarrow as pa
import torch
from torch import nn

from brittle.data.points import Points, SomePoints
from brittle.doctor import Subject, about_accuracy
from brittle.errors import DataError
from brittle.estimate import parameters_json
from brittle.model.classifier import Classifier
from brittle.model.digest import digest_of
from brittle.noise import Noise
from brittle.run.job import Job
from brittle.scores import Score
from brittle.scores.outside import code_of
from brittle.store.record import (
    FIRST_ROWS,
    Account,
    DataRecord,
    Finding,
    MachineRecord,
    ModelRecord,
    RunRecord,
    ScoreRecord,
    record_of,
)
from brittle.user_code import digests, failing

PACKAGES = ("torch", "numpy", "scipy", "pyarrow", "pillow", "safetensors")
"""Packages that can change a number."""

DIGITS = 16
"""Characters of the digest of a source of noise."""

MOST_FAILURES = FIRST_ROWS // 100
"""A run stops when more than this many of its first rows get no number, by default."""


@dataclass
class RunningRecord:
    """The record of a run as things stand. A run stops where more than `most_failures` of the first 1,000 points have
    no number. `confusion` holds labels and predictions of the points so far."""

    now: RunRecord
    most_failures: int | None
    confusion: Counter[tuple[int, int]] = field(default_factory=Counter)

    def examined(self, subject: Subject, created: str | None, *, skipped: bool) -> None:
        """Enter what looking at the first points showed, and when the run began; None is now."""
        decision = subject.decision
        model = replace(self.now.model, classes=subject.classes, taken=subject.classifier.taken)
        names = decision.code_names(self.now.data.class_names, subject.classes)
        decided = None if decision.of_classes or names is None else tuple(names)
        data = replace(self.now.data, input_shape=tuple(subject.inputs.shape[1:]), decided_names=decided)
        self.now = replace(
            self.now,
            model=model,
            data=data,
            doctor="skipped" if skipped else "passed",
            created=created or _now(),
            warnings=tuple(subject.findings),
        )

    def add(self, account: Account, points: pa.Table) -> None:
        """Account for a shard: what became of its points, and their columns `label` and `predicted`."""
        account = self.now.account + account
        self.now = replace(self.now, account=account)
        pairs = zip(points["label"].to_pylist(), points["predicted"].to_pylist(), strict=True)
        self.confusion += Counter(pair for pair in pairs if None not in pair)
        if self.most_failures is not None and account.failed_early > self.most_failures:
            raise DataError(
                "too_many_failures",
                f"{account.failed_early} of the first {min(account.points, FIRST_ROWS)} points got no number (at most "
                f"{self.most_failures} of {FIRST_ROWS} may); one of them: {account.failures[0]}",
            )

    def note_memory(self, job: Job) -> None:
        drawn = " and the draws of the model" if self.now.model.random else ""
        sentence = (
            f"memory ran out with {job.rows} rows in one pass, and {job.fit} went on; their numbers are the same but "
            f"for rounding{drawn}, and --batch-size {job.fit} saves the time of the tries"
        )
        self.now = replace(self.now, warnings=(*self.now.warnings, Finding("out_of_memory", sentence)))

    def finish(self, seconds: float | None) -> None:
        """Finish the run after so many seconds, which are not known of an interrupted run. A part of a run does not
        judge its few points: `brittle join` judges all."""
        self.now = replace(self.now, seconds=seconds, finished=_now())
        if self.now.part is None:
            self.note_outcome()

    def note_outcome(self) -> None:
        """Note what all points together show."""
        account, data, model = self.now.account, self.now.data, self.now.model
        findings = []
        if model.decision is None and data.ids_sha256 is None:  # the wrong ones may have been chosen for it
            source = {"format": model.format, "spec": model.spec, "weights": model.weights}
            findings += about_accuracy(account.correct, account.labelled, model.classes or 0, self.confusion, source)
        self.now = replace(self.now, warnings=(*self.now.warnings, *findings))


def describe(job: Job, command: Sequence[str] | None = None, part: tuple[int, int] | None = None) -> RunRecord:
    """Everything needed to repeat `job`, or a part of it; no pass through the network is made for it."""
    points, device, dtype = job.points, job.classifier.device, torch.get_default_dtype()
    labelled = points.labels is not None or points.provenance.get("targets") is not None
    names = list(points.class_names or job.classifier.class_names or ()) or None
    data = dict(points.provenance) | {"class_names": names, "labelled": labelled, "still": _still(points)}
    return RunRecord(
        brittle=_version("brittle"),
        command=None if command is None else tuple(command),
        seed=job.seed,
        confidence=job.confidence,
        batch_size=job.rows,
        shard_points=job.shard_points,
        part=part,
        model=_describe_model(job.classifier),
        data=record_of(DataRecord, data, "the provenance of the data"),
        scores=tuple(map(describe_score, job.scores)),
        versions={"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
        machine=MachineRecord(
            device=torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
            default_dtype=None if dtype == torch.float32 else str(dtype).removeprefix("torch."),
            threads=torch.get_num_threads(),
            platform=platform.machine(),
        ),
    )


def describe_score(score: Score) -> ScoreRecord:
    """Return the record of a score."""
    names = ("parameters", "label", "quantity", "title", "reference")
    names += ("explanation", "safer", "colour", "preference", "model")
    with failing(type(score), "record"):
        content = {"score": score.name, "code": code_of(score)} | {name: getattr(score, name) for name in names}
    content |= {"sources": draws_of(score)}
    if isinstance(noise := getattr(score, "noise", None), Noise):
        isotropic = noise.shape is None if noise.has_covariance else None
        length = noise.fixed_length
        content["noise"] = {"explanation": noise.explanation, "isotropic": isotropic, "fixed_length": length}
    return record_of(ScoreRecord, content, f"the score {score.label}")


def draws_of(score: Score) -> dict[str, int]:
    """Return how many draws `score` reads of each source of noise, by the digest of the source's key; empty without
    noise. Equal digests mean equal draws."""
    draws_by_source: dict[str, int] = {}
    for need in score.needs:
        draws = getattr(need, "draws", None)
        if isinstance(draws, int):
            source = hashlib.sha256(_key_text(need.noise_source).encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]
            draws_by_source[source] = max(draws, draws_by_source.get(source, 0))
    return draws_by_source


def _still(points: Points) -> str | None:
    """Return the count and a digest of the input coordinates that noise leaves unchanged."""
    moves = None
    while isinstance(points, SomePoints):
        part_moves = None if points.moves is None else points.moves.flatten().cpu()
        moves = part_moves if moves is None else moves if part_moves is None else moves & part_moves
        points = points.points
    if moves is None:
        return None
    which = hashlib.sha256(bytes(moves.tolist())).hexdigest()[:DIGITS]
    return f"{int((~moves).sum()):,} of {len(moves):,}: {which}"


def _key_text(value: object) -> str:
    """`value` in words that are the same in every process; what has none is told by its kind alone."""
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    kind = _key_text(type(value))
    if isinstance(value, Noise):
        return f"{kind}{parameters_json(value.parameters)}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_key_text, value))})"
    if is_dataclass(value):
        texts = (
            f"{member.name}={_key_text(getattr(value, member.name))}" for member in fields(value) if member.compare
        )
        return f"{kind}({', '.join(texts)})"
    return repr(value) if isinstance(value, str | int | float | None) else kind


def _describe_model(classifier: Classifier) -> ModelRecord:
    model = classifier.model
    parameters = list(model.parameters()) if isinstance(model, nn.Module) else []
    files = [*(digests([getattr(model, "function", model)]) or {}).values()]
    decision = classifier.decision
    parameters_of_decision = dict(decision.parameters) | (
        digests([getattr(decision, "compare", None), *type(decision).__mro__]) or {}
    )
    dtypes = sorted({str(parameter.dtype).removeprefix("torch.") for parameter in parameters})
    content = {
        "spec": getattr(model, "__name__", type(model).__name__),
        "format": "object",
        "sha256": files[0] if files and not isinstance(model, nn.Module) else None,
        "state_sha256": digest_of(model),
        **classifier.bounds.recorded,
        "mean": classifier.mean,
        "std": classifier.std,
        "outputs": classifier.outputs,
        "decision": None if decision.of_classes else decision.label,
        "decision_parameters": None if decision.of_classes else parameters_of_decision,
        "rules": dict(classifier.rules) if classifier.rules else None,
        "random": classifier.clean_passes if classifier.random else None,
        "head": classifier.head_name,
        "perturb": classifier.perturb,
        "parameters": sum(parameter.numel() for parameter in parameters),
        "dtype": ", ".join(dtypes) or None,
    }
    return record_of(ModelRecord, content | dict(classifier.source), "the source of the model")


@cache
def _version(package: str) -> str:
    """Return the version of an installed package; read once in a process, for it takes a millisecond or two."""
    return metadata.version(package)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
