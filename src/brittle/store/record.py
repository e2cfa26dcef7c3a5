"""The record of a run: everything needed to repeat it, and what became of it. It is the content of `run.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

import pyarrow as pa
from msgspec import Meta

from brittle.errors import ArtefactError, MissingRunError, ParameterError, StorageError, listed
from brittle.estimate import Parameter, Status
from brittle.store.strict_json import Count, FormatProblem, Share, convert, parse_json, plain, read_text
from brittle.store.writing import nearby

FORMAT: Final = 1  # version of the run folder's layout
MOST_BYTES = 1 << 25  # a record holds what people called their files, and the names of many classes
Part = Annotated[int, Meta(ge=1, le=100_000)]  # the number of a part of a run, and of how many

T = TypeVar("T")


FIRST_ROWS = 1000  # rows at the start of the data whose failures are counted apart
FAILURES_KEPT = 3  # failures that are kept in words


@dataclass(frozen=True)
class Account:
    """Account of some points."""

    points: int = 0  # how many there are
    failed: int = 0  # points that lack a number in some score
    failed_early: int = 0  # how many of them are among the first `FIRST_ROWS` of the data
    labelled: int = 0  # points with a label and a prediction
    correct: int = 0  # how many of these are predicted right
    passes: int = 0  # passes through the network for them
    check_passes: int = 0  # passes of the checks that are made during the run, on top of these
    failures: tuple[str, ...] = ()  # some of the failed points, in words; of one shard the first

    @classmethod
    def of(cls, points: pa.Table, scores: pa.Table, passes: int, check_passes: int = 0, start: int = 0) -> Account:
        """Return the account of the rows of some points, `start` others before them, and their passes."""
        correct = points["correct"].to_pylist()
        missing = scores.filter(scores["value"].is_null()).to_pylist()
        without = {row["point"]: row for row in reversed(missing)}
        early = points["point"].to_pylist()[: max(0, FIRST_ROWS - start)]
        return cls(
            points=len(points),
            failed=len(without),
            failed_early=sum(point in without for point in early),
            labelled=len(correct) - correct.count(None),
            correct=correct.count(True),
            passes=passes,
            check_passes=check_passes,
            failures=tuple(
                f"point {row['point']}, {row['score']}: {row['status']}: "
                f"{row['detail'] or Status[row['status'].upper()].sentence}"
                for row in list(reversed(without.values()))[:FAILURES_KEPT]
            ),
        )

    def __add__(self, rows_behind: Account) -> Account:
        """Return the account of both, this one's points first."""
        numbers = (field.name for field in fields(self) if field.name != "failures")
        sums = {name: getattr(self, name) + getattr(rows_behind, name) for name in numbers}
        return Account(**sums, failures=(self.failures + rows_behind.failures)[:FAILURES_KEPT])


@dataclass(frozen=True, kw_only=True)
class ModelRecord:
    """The model of a run, as it was opened and declared."""

    spec: str  # what it was opened by, or the name of its class
    format: str  # `torch.export`, `onnx`, `skops`, `python` or `object`
    bounds: tuple[float, float] | None  # smallest and largest value of an input; None where features have their own
    outputs: str  # what the network returns, `logits` or another word of `brittle.model.outputs.OUTPUTS`
    lower: tuple[float | None, ...] | None = None  # smallest value of each feature (C order), where bounds are theirs
    upper: tuple[float | None, ...] | None = None  # the largest, likewise
    bounds_shape: tuple[int, ...] | None = None  # shape of `lower` and `upper`, which are broadcast to an input
    parameters: Count | None = None  # how many numbers it has learned
    sha256: str | None = None  # digest of the file, of an object that is a function of that in which it stands; or None
    weights_sha256: str | None = None  # digest of the file of its weights, or None
    state_sha256: str | None = None  # digest of what it has learned; None for a function
    fixed_batch: int | None = None  # rows that it takes, where it takes no other number
    mean: tuple[float, ...] | None = None  # subtracted from the input, one number or one per channel, or None
    std: tuple[float, ...] | None = None  # what the difference is divided by, likewise
    head: str | None = None  # name of the last linear layer, or None
    perturb: str | None = None  # name of the argument that takes the input that varies, or None for the first
    decision: str | None = None  # such as `multilabel` or `top:5`; None is the predicted class
    decision_parameters: Mapping[str, Parameter | None] | None = None  # its parameters that are not those by default
    rules: Mapping[str, str] | None = None  # what columns of a table may hold, by their names, or None
    random: Count | None = None  # clean passes of which most decide, where the model draws at random
    dtype: str | None = None  # of these
    file: str | None = None  # where its code or archive lies
    weights: str | None = None  # where its weights lie
    runs_code: bool | None = None  # whether opening it ran code
    written_by_torch: str | None = None  # version of PyTorch that wrote the archive
    classes: Count | None = None  # number of classes, once it gave an output
    taken: str | None = None  # what of the output the logits were, where it was no tensor

    def __post_init__(self) -> None:
        if self.bounds is not None and not self.bounds[0] < self.bounds[1]:
            raise ParameterError(f"bounds must be two increasing numbers; found {list(self.bounds)}")

    @property
    def bounds_text(self) -> str:
        if self.bounds is not None:
            return f"the bounds {list(self.bounds)}"
        return "no bounds" if self.lower is None else "bounds per feature"


@dataclass(frozen=True, kw_only=True)
class DataRecord:
    """The data of a run."""

    format: str | None = None  # such as `npz`, `folder` or `memory`
    path: str | None = None  # file or folder, or None
    files: tuple[str, ...] | None = None  # names of the files in it that were read
    other_files: Count | None = None  # how many others lay there
    split: str | None = None  # part of the data, or None
    sha256: str | None = None  # digest of the data, or None
    points: Count | None = None  # how many are scored
    limit: Count | None = None  # how many were asked for at most, or None
    chosen_from: Count | None = None  # how many there are, where these were chosen by ids or drawn at random
    sample_seed: Count | None = None  # seed by which they were drawn at random; None where they were not
    ids_sha256: str | None = None  # digest of the ids that chose these, as a list in JSON, in the order of the data
    input_shape: tuple[int, ...] | None = None  # of one point, once one was read
    feature_names: tuple[str, ...] | None = None  # of the numbers of an input (C order)
    labelled: bool = False  # whether the points have labels, or targets
    labels: str | None = None  # where the file of labels lies, where these lie in one of their own
    class_names: tuple[str, ...] | None = None  # in the order of their index; of labels, where several may hold
    decided_names: tuple[str, ...] | None = None  # of decisions that are no class, such as sets of labels
    still: str | None = None  # how many numbers of an input never vary in the run, and a digest of which
    reading: Mapping[str, Any] = field(default_factory=dict)  # all else, such as `layout` or `label_column`

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the classes of labels and predictions, or of what stands for them, in the order of their number."""
        return self.decided_names or self.class_names or ()


@dataclass(frozen=True, kw_only=True)
class NoiseRecord:
    """Facts about the noise of a score, for its readers."""

    explanation: str = ""  # how it is distributed, in a few words; empty where the family does not say
    isotropic: bool | None = None  # whether its covariance is `sigma^2 I`; None where it is not known
    fixed_length: bool = False  # whether every draw has the length `sigma sqrt(n)`


@dataclass(frozen=True, kw_only=True)
class ScoreRecord:
    """A score of a run, with all that readers say about it."""

    score: str  # its name, such as `moments`
    parameters: Mapping[str, Parameter]  # its parameters, such as `{"draws": 20, "sigma": 0.1}`
    label: str  # name and parameters as one writes them
    quantity: str  # what its value is, such as `flip_probability`
    title: str  # what people call it
    reference: str  # where it is defined
    explanation: str = ""  # what it says, in a sentence or two
    safer: Literal["higher", "lower"] | None = None  # which direction of the value is safer, or None where neither is
    colour: Count | None = None  # its place among the colours of a page; None is the next free one
    preference: float | None = None  # its place among representative estimators, the lowest first; None is never
    model: str | None = None  # what it says an extrapolated probability by, or None
    noise: NoiseRecord | None = None  # what its noise is like, or None where it has none
    # how many draws it reads of each source of noise, by the digest of what keys these; empty where it reads none. Of
    # one source the fewer draws are the first of the more
    sources: Mapping[str, Count] = field(default_factory=dict)
    # sha256 of the files from outside in which it, its noise and its measurements stand, by their names, and the
    # digests of such classes of scores and noise that stand in no file; None where all are brittle's
    code: Mapping[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class MachineRecord:
    """Machine that computed the run."""

    device: str  # `cpu`, or the name of the accelerator
    default_dtype: str | None = None  # what a `forward` that names no dtype makes numbers of, where that is not float32
    threads: Count  # of PyTorch
    platform: str  # kind of processor


@dataclass(frozen=True)
class Finding:
    """Something a user should know that does not stop a run."""

    code: str
    sentence: str


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """Everything needed to repeat a run, and what became of it."""

    format: Literal[1] = FORMAT  # version of the run folder's layout
    brittle: str  # version of this package
    seed: Count  # of the noise
    confidence: Share  # of all intervals
    batch_size: Count  # most rows in one pass through the network
    shard_points: Count  # points in a shard
    model: ModelRecord
    data: DataRecord
    scores: tuple[ScoreRecord, ...]  # what was computed
    versions: Mapping[str, str]  # of Python, and of the packages that can change a number
    machine: MachineRecord  # what it was computed on
    part: tuple[Part, Part] | None = None  # which of how many parts, each of its own command; None is the whole
    command: tuple[str, ...] | None = None  # how the run was started, or None
    doctor: str | None = None  # whether the doctor looked at the run, `passed` or `skipped`; None before it has
    created: str = ""  # when it began; empty before
    finished: str | None = None  # when it was over, or None
    seconds: float | None = None  # its duration, once it is over; None where it was interrupted and went on later
    account: Account = field(default=Account())  # what became of its points
    warnings: tuple[Finding, ...] = ()  # what a user should know, in the order in which it was found


def record_of(kind: type[T], content: Mapping[str, Any], subject: str) -> T:
    """Return the record `kind` of `content` and its own defaults; other facts of data are its `reading`."""
    defaults = {member.name: member.default for member in fields(kind) if isinstance(member.default, str | bool | None)}  # type: ignore[arg-type]
    extra = {name: value for name, value in content.items() if name not in defaults and value is not None}
    if kind is DataRecord:
        content = {name: value for name, value in content.items() if name in defaults} | {"reading": extra}
    try:
        return convert(kind, parse_json(json.dumps(defaults | dict(content), allow_nan=False)))
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{subject} cannot be written into the record of a run: {error}") from error


def read_object(path: Path, kind: type[T]) -> T:
    """Return the record `kind` that the file `path` of a run folder holds, which may come from anybody."""
    with storage_errors(path):
        if not path.is_file():
            meant = nearby(path.parent, lambda folder: (folder / path.name).is_file())
            raise MissingRunError("no_run", f"{path} is missing; {path.parent} is not a run folder{meant}")
        check_inside(path)
        try:
            text = read_text(path, MOST_BYTES)
        except FormatProblem as error:
            raise _damaged(path, error) from error
    return parse_object(text, path, kind)


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Make a `StorageError` of an `OSError` for a file of a run: `path`, or one that the system names."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error) or type(error).__name__
        raise StorageError("unreadable", f"{error.filename or path} cannot be read ({why})") from error


def parse_object(text: str, path: Path, kind: type[T]) -> T:
    """Return the record `kind` in a text, that of the file `path`."""
    try:
        return convert(kind, parse_json(text))
    except FormatProblem as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: FormatProblem) -> StorageError:
    return StorageError(
        "run_damaged",
        f"{path} is not what this version writes: {error}; score again, or read it with the version of brittle "
        "that its run.json names",
    )


def check_inside(path: Path) -> None:
    """Raise `ArtefactError` where a file is a link that leads out of its folder."""
    if path.is_symlink() and path.resolve().parent != path.parent.resolve():
        raise ArtefactError(
            "file_refused", f"{path} is a link to {path.resolve()}; copy the file itself into the folder"
        )


UNDECISIVE = frozenset(
    {
        *("part", "command", "doctor", "created", "finished", "seconds", "account", "warnings"),
        *("model.file", "model.weights", "model.runs_code", "model.written_by_torch", "model.classes", "model.taken"),
        *("data.path", "data.files", "data.other_files", "data.labels", "data.input_shape", "data.decided_names"),
        *("data.reading.tokenizer", "data.reading.cut_texts", "versions.python", "machine.threads", "machine.platform"),
        *("scores.title", "scores.reference", "scores.explanation", "scores.safer", "scores.colour"),
        *("data.reading.index", "scores.preference", "scores.model", "scores.noise", "scores.sources"),
    }
)
"""Fields of a record that decide no number: where things lie, how the run was started, what was found out, what became
of it. Every other field is compared, new ones too."""


def differences(
    before: RunRecord, after: RunRecord, places: tuple[str, str], without: frozenset[str] = UNDECISIVE
) -> list[str]:
    """Return the differences between two runs: each field in words, with both values, but for those in `without`."""
    ours, theirs = (plain(record) for record in (before, after))
    earlier, later = ({score["label"]: score for score in run.pop("scores")} for run in (ours, theirs))
    changes = _compared(ours, theirs, places, without)
    for place, scores, other_scores in ((places[0], earlier, later), (places[1], later, earlier)):
        if alone := [label for label in scores if label not in other_scores]:
            changes.append(f"scores {listed(alone)} only {place}")
    if earlier.keys() == later.keys() and [*earlier] != [*later]:
        changes.append(f"scores {', '.join(earlier)} {places[0]}, {', '.join(later)} {places[1]}")
    for label in earlier.keys() & later.keys():
        changes += _compared(earlier[label], later[label], places, without, "scores.")
    return list(dict.fromkeys(changes))


def _compared(ours: Any, theirs: Any, places: tuple[str, str], without: frozenset[str], prefix: str = "") -> list[str]:
    """Return the differences in words; nested fields by their dotted names."""
    changes = []
    for key in {**ours, **theirs}:
        name, value_before, value_after = f"{prefix}{key}", ours.get(key), theirs.get(key)
        if name in without or value_before == value_after:
            continue
        if isinstance(value_before, dict) and isinstance(value_after, dict):
            changes += _compared(value_before, value_after, places, without, f"{name}.")
        else:
            texts = ["nothing" if value is None else f"{value!s:.60}" for value in (value_before, value_after)]
            changes.append(f"{name} {texts[0]} {places[0]}, {texts[1]} {places[1]}")
    return changes
