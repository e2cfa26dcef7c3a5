"""The record of a run: what is known when it starts, and a running account of it."""

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
from brittle.decisions.function_code import code_digest
from brittle.doctor import Subject, about_accuracy
from brittle.errors import DataError
from brittle.estimate import parameters_json
from brittle.model.classifier import Classifier
from brittle.model.digest import digest_of
from brittle.noise import Noise, Transform
from brittle.run.job import Job
from brittle.scores import Score
from brittle.store import record
from brittle.store.record import FIRST_ROWS, Account, ModelRecord, RunRecord, ScoreRecord, record_of
from brittle.user_code import digests, failing

PACKAGES = ("torch", "numpy", "scipy", "pyarrow", "pillow", "safetensors")  # packages that can change a number
DIGITS = 16  # characters of the digest of a source of noise
MOST_FAILURES = FIRST_ROWS // 100  # a run stops when more than this many of its first rows get no number, by default


@dataclass
class RunningRecord:
    """The record of a run as things stand."""

    now: RunRecord
    most_failures: int | None  # of the first 1,000 points, above which a run stops
    confusion: Counter[tuple[int, int]] = field(default_factory=Counter)  # labels and predictions of the points so far

    def examined(self, subject: Subject, created: str | None, *, skipped: bool) -> None:
        """Enter what looking at the first points showed, and when the run began; None is now."""
        decision = subject.decision
        model = replace(self.now.model, classes=subject.classes, taken=subject.classifier.taken)
        names = decision.code_names(self.now.data.class_names, subject.classes)
        decided = None if decision.of_classes or names is None else tuple(names)
        data = replace(self.now.data, input_shape=tuple(subject.inputs.shape[1:]), decided_names=decided)
        examined, findings = "skipped" if skipped else "passed", tuple(subject.findings)
        created = created or _now()
        self.now = replace(self.now, model=model, data=data, doctor=examined, created=created, warnings=findings)

    def add(self, account: Account, points: pa.Table) -> None:
        """Account for a shard and its points."""
        account = self.now.account + account
        self.now = replace(self.now, account=account)
        pairs = zip(points["label"].to_pylist(), points["predicted"].to_pylist(), strict=True)
        self.confusion += Counter(pair for pair in pairs if None not in pair)
        if self.most_failures is not None and account.failed_early > self.most_failures:
            failed = f"{account.failed_early} of the first {min(account.points, FIRST_ROWS)} points got no number"
            allowed = f"at most {self.most_failures} of {FIRST_ROWS} may"
            raise DataError("too_many_failures", f"{failed} ({allowed}); one of them: {account.failures[0]}")

    def note_memory(self, job: Job) -> None:
        drawn = " and the draws of the model" if self.now.model.random else ""
        sentence = f"memory ran out with {job.rows} rows in one pass, and {job.fit} went on; their numbers are the same"
        sentence += f" but for rounding{drawn}, and --batch-size {job.fit} saves the time of the tries"
        self.now = replace(self.now, warnings=(*self.now.warnings, record.Finding("out_of_memory", sentence)))

    def finish(self, seconds: float | None) -> None:
        """Finish the run after so many seconds, not known of an interrupted run; `brittle join` judges the parts."""
        self.now = replace(self.now, seconds=seconds, finished=_now())
        if self.now.part is None:
            self.note_outcome()

    def note_outcome(self) -> None:
        """Note what all points together show."""
        account, data, model = self.now.account, self.now.data, self.now.model
        findings = []
        if model.decision is None and data.ids_sha256 is None:  # the wrong ones may have been chosen for it
            source = {name: getattr(model, name) for name in ("format", "spec", "weights", "parameters")}
            findings += about_accuracy(account.correct, account.labelled, model.classes or 0, self.confusion, source)
        self.now = replace(self.now, warnings=(*self.now.warnings, *findings))


def describe(job: Job, command: Sequence[str] | None = None, part: tuple[int, int] | None = None) -> RunRecord:
    """Return everything needed to repeat `job`, or a part of it, without a pass through the network."""
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
        data=record_of(record.DataRecord, data, "the provenance of the data"),
        scores=tuple(map(describe_score, job.scores)),
        versions={"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
        machine=record.MachineRecord(
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


def code_of(score: Score) -> dict[str, str] | None:
    """Return the sha256 of files from outside in which the score, its noise and its measurements stand, of the code of
    classes that stand in no file, and the extensions that are missing, as runs without them differ; by their names."""
    noise = getattr(score, "noise", None)
    function_parts = (noise.fn, type(noise.fn)) if isinstance(noise, Transform) else ()
    parts = (score, noise, *score.needs)
    used = [code for need in score.needs for code in need.code]
    files = digests((*function_parts, *used, *(kind for part in parts for kind in type(part).__mro__)))
    kinds = [type(part) for part in (score, noise) if part is not None]
    typed = [kind for kind in kinds if kind.__module__.partition(".")[0] != "brittle" and digests([kind]) is None]
    without = {f"without {name}": "missing" for need in score.needs for name in need.missing}
    return (files or {}) | {f"class {kind.__qualname__}": code_digest(kind) for kind in typed} | without or None


def draws_of(score: Score) -> dict[str, int]:
    """Return how many draws `score` reads of each source of noise, by a digest: equal ones mean equal draws."""
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
    """Return `value` in words that are the same in every process, or its kind alone."""
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    kind = _key_text(type(value))
    if isinstance(value, Noise):
        return f"{kind}{parameters_json(value.parameters)}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_key_text, value))})"
    if is_dataclass(value):
        texts = (f"{part.name}={_key_text(getattr(value, part.name))}" for part in fields(value) if part.compare)
        return f"{kind}({', '.join(texts)})"
    return repr(value) if isinstance(value, str | int | float | None) else kind


def _describe_model(classifier: Classifier) -> ModelRecord:
    model = classifier.model
    parameters = list(model.parameters()) if isinstance(model, nn.Module) else []
    files = [*(digests([getattr(model, "function", model)]) or {}).values()]
    decision = classifier.decision
    facts = dict(decision.parameters) | (digests([getattr(decision, "compare", None), *type(decision).__mro__]) or {})
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
        "decision_parameters": None if decision.of_classes else facts,
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
    return metadata.version(package)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
