"""The record of a run: everything needed to repeat it, and what became of it. It is the content of `run.json`.

Every field says by its metadata whether it makes a run the same run (`brittle.store.same_run`); of the account, where
all is what became of the run, `RunRecord.account` says it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from brittle.errors import ParameterError, StorageError
from brittle.estimate import Parameter
from brittle.store.account import Account
from brittle.store.files.records import MOST_TEXT, read_object
from brittle.store.files.strict_json import FormatProblem, Rule, convert
from brittle.store.same_run import OTHER, SAME, checked

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FORMAT = 1
"""Version of the run folder's layout."""


Share = Annotated[float, Rule(lambda value: 0 < value < 1, "a number between 0 and 1")]
"""A number between 0 and 1, both excluded."""

Range = Annotated[tuple[float, float], Rule(lambda pair: pair[0] < pair[1], "two increasing numbers")]
"""A smaller and a larger number."""

Count = Annotated[int, Rule(lambda value: value >= 0, "a whole number of at least 0")]
"""How many there are."""

T = TypeVar("T")


@checked
@dataclass(frozen=True, kw_only=True)
class ModelRecord:
    """The model of a run, as it was opened and declared.

    Attributes:
        spec: what it was opened by, or the name of its class.
        format: `torch.export`, `onnx`, `skops`, `python` or `object`.
        sha256: digest of the file, or None.
        weights_sha256: digest of the file of its weights, or None.
        state_sha256: digest of all parameters and buffers, of the file for ONNX and skops, or None for a function.
        fixed_batch: rows that it takes, where it takes no other number.
        bounds: smallest and largest value of an input, where all features have the same; None where they have bounds of
            their own, or none.
        lower: the smallest value of each feature, in the order of the axes (C order), None for one without a bound; or
            None where the bounds are not per feature.
        upper: the largest, likewise.
        bounds_shape: shape of `lower` and `upper`, which are broadcast to an input.
        mean: subtracted from the input, one number or one per channel, or None.
        std: what the difference is divided by, likewise.
        outputs: what the network returns, `logits` or another word of `brittle.model.outputs.OUTPUTS`.
        head: name of the last linear layer, or None.
        perturb: name of the argument that takes the input that varies, or None for the first.
        decision: what is decided from the output, such as `multilabel` or `top:5`; None is the predicted class.
        decision_parameters: its parameters that are not those by default.
        parameters: how many numbers it has learned.
        dtype: of these.
        file: where its code or archive lies.
        weights: where its weights lie.
        runs_code: whether opening it ran code.
        written_by_torch: version of PyTorch that wrote the archive.
        classes: number of classes, once it gave an output.
        taken: what of the output the logits were, where it was no tensor.
    """

    spec: str = field(metadata=SAME)
    format: str = field(metadata=SAME)
    bounds: Range | None = field(metadata=SAME)
    outputs: str = field(metadata=SAME)
    lower: tuple[float | None, ...] | None = field(default=None, metadata=SAME)
    upper: tuple[float | None, ...] | None = field(default=None, metadata=SAME)
    bounds_shape: tuple[int, ...] | None = field(default=None, metadata=SAME)
    parameters: Count | None = field(default=None, metadata=SAME)
    sha256: str | None = field(default=None, metadata=SAME)
    weights_sha256: str | None = field(default=None, metadata=SAME)
    state_sha256: str | None = field(default=None, metadata=SAME)
    fixed_batch: int | None = field(default=None, metadata=SAME)
    mean: tuple[float, ...] | None = field(default=None, metadata=SAME)
    std: tuple[float, ...] | None = field(default=None, metadata=SAME)
    head: str | None = field(default=None, metadata=SAME)
    perturb: str | None = field(default=None, metadata=SAME)
    decision: str | None = field(default=None, metadata=SAME)
    decision_parameters: Mapping[str, Parameter | None] | None = field(default=None, metadata=SAME)
    dtype: str | None = field(default=None, metadata=SAME)
    file: str | None = field(default=None, metadata=OTHER)
    weights: str | None = field(default=None, metadata=OTHER)
    runs_code: bool | None = field(default=None, metadata=OTHER)
    written_by_torch: str | None = field(default=None, metadata=OTHER)
    classes: Count | None = field(default=None, metadata=OTHER)
    taken: str | None = field(default=None, metadata=OTHER)

    @property
    def bounds_text(self) -> str:
        """The bounds in words."""
        if self.bounds is not None:
            return f"the bounds {list(self.bounds)}"
        return "no bounds" if self.lower is None else "bounds per feature"


@checked
@dataclass(frozen=True, kw_only=True)
class DataRecord:
    """The data of a run.

    Attributes:
        format: such as `npz`, `folder` or `memory`.
        split: part of the data, or None.
        sha256: digest of the data, or None.
        points: how many are scored.
        limit: how many were asked for at most, or None.
        chosen_from: how many there are, of which these were chosen by their ids; None where none were.
        ids_sha256: digest of the ids of those that were chosen, as a list in JSON, in the order of the data.
        keys: of the arrays that were read.
        columns: of the tables that were read.
        label_column: of a table, the one that holds the labels, by its name or else its place; or None.
        text_column: of a table of texts, the one that holds them; or None.
        tokenizer: class of the tokenizer of texts, or None.
        tokenizer_sha256: digest of its files, or None.
        text_length: most tokens of a text, or None.
        cut_texts: how many texts were longer and were cut, or None.
        layout: axis order of image arrays, or None.
        scale_uint8: whether whole numbers were mapped to the bounds.
        exif: what was done with the orientation of encoded images.
        resize: height and width to which they were brought, or the shorter side alone, or None.
        center_crop: height and width of their middle that was kept, or None.
        interpolation: how they were resized, where that was asked for; otherwise bilinear.
        crop_rounding: where their middle began, where that was asked for; otherwise `even`, as torchvision has it.
        mode: what they were converted to, where that was asked for.
        class_names: in the order of their index, or None; of the labels, where several may hold.
        decided_names: names of what stands for a decision that is no class, such as sets of labels; or None.
        feature_names: of the numbers of an input, in the order of its axes (C order), or None.
        labelled: whether the points have labels, or targets.
        beside: names of the other tensors of a point, or None.
        masked: whether some coordinates of the inputs do not vary.
        targets: how many numbers are right for a point, several labels among them, where it has no class; or None.
        labels_sha256: digest of the file of labels, where these lie in one of their own.
        labels: where it lies.
        path: file or folder, or None.
        files: names of the files in it that were read.
        other_files: how many others lay there.
        input_shape: of one point, once one was read.
        code: sha256 of the file of a format from outside, by its name; None for one of brittle's.
    """

    format: str | None = field(default=None, metadata=SAME)
    split: str | None = field(default=None, metadata=SAME)
    sha256: str | None = field(default=None, metadata=SAME)
    points: Count | None = field(default=None, metadata=SAME)
    limit: Count | None = field(default=None, metadata=SAME)
    chosen_from: Count | None = field(default=None, metadata=SAME)
    ids_sha256: str | None = field(default=None, metadata=SAME)
    keys: tuple[str, ...] | None = field(default=None, metadata=SAME)
    columns: tuple[str, ...] | None = field(default=None, metadata=SAME)
    label_column: str | None = field(default=None, metadata=SAME)
    text_column: str | None = field(default=None, metadata=SAME)
    tokenizer: str | None = field(default=None, metadata=OTHER)
    tokenizer_sha256: str | None = field(default=None, metadata=SAME)
    text_length: Count | None = field(default=None, metadata=SAME)
    cut_texts: Count | None = field(default=None, metadata=OTHER)
    layout: str | None = field(default=None, metadata=SAME)
    scale_uint8: bool | None = field(default=None, metadata=SAME)
    exif: str | None = field(default=None, metadata=SAME)
    resize: tuple[int, ...] | None = field(default=None, metadata=SAME)
    center_crop: tuple[int, ...] | None = field(default=None, metadata=SAME)
    interpolation: str | None = field(default=None, metadata=SAME)
    crop_rounding: str | None = field(default=None, metadata=SAME)
    mode: str | None = field(default=None, metadata=SAME)
    class_names: tuple[str, ...] | None = field(default=None, metadata=SAME)
    decided_names: tuple[str, ...] | None = field(default=None, metadata=OTHER)
    feature_names: tuple[str, ...] | None = field(default=None, metadata=SAME)
    labelled: bool = field(default=False, metadata=SAME)
    targets: Count | None = field(default=None, metadata=SAME)
    beside: tuple[str, ...] | None = field(default=None, metadata=SAME)
    masked: bool = field(default=False, metadata=SAME)
    labels_sha256: str | None = field(default=None, metadata=SAME)
    labels: str | None = field(default=None, metadata=OTHER)
    code: Mapping[str, str] | None = field(default=None, metadata=SAME)
    path: str | None = field(default=None, metadata=OTHER)
    files: tuple[str, ...] | None = field(default=None, metadata=OTHER)
    other_files: Count | None = field(default=None, metadata=OTHER)
    input_shape: tuple[int, ...] | None = field(default=None, metadata=OTHER)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the classes of labels and predictions, or of what stands for them, in the order of their number."""
        return self.decided_names or self.class_names or ()


@checked
@dataclass(frozen=True, kw_only=True)
class NoiseRecord:
    """What readers say about the noise of a score.

    Attributes:
        explanation: how it is distributed, in a few words; empty where the family does not say.
        isotropic: whether its covariance is `sigma^2 I`; None where the family does not say its covariance.
        fixed_length: whether every draw has the length `sigma sqrt(n)`.
    """

    explanation: str = field(default="", metadata=OTHER)
    isotropic: bool | None = field(default=None, metadata=OTHER)
    fixed_length: bool = field(default=False, metadata=OTHER)


@checked
@dataclass(frozen=True, kw_only=True)
class ScoreRecord:
    """A score of a run, with all that readers say about it.

    Attributes:
        score: its name, such as `moments`.
        parameters: its parameters, such as `{"draws": 20, "sigma": 0.1}`.
        label: name and parameters as one writes them.
        quantity: what its value is, such as `flip_probability`.
        title: what people call it.
        reference: where it is defined.
        explanation: what it says, in a sentence or two.
        safer: which direction of the value is safer, or None where neither is.
        colour: its place among the colours of a page; None is the next free one.
        preference: its place among the estimators that speak for a run, the lowest first; None is never.
        model: what it says an extrapolated probability by, or None.
        noise: what its noise is like, or None where it has none.
        draws: how many draws it reads of each source of noise, by the digest of what keys these; None where it reads
            none. Of one source the fewer draws are the first of the more.
        code: sha256 of the files from outside in which it, its noise and its measurements stand, by their names, and
            the digests of such classes of scores and noise that stand in no file; None where all are brittle's.
    """

    score: str = field(metadata=SAME)
    parameters: Mapping[str, Parameter] = field(metadata=SAME)
    label: str = field(metadata=SAME)
    quantity: str = field(metadata=SAME)
    title: str = field(metadata=OTHER)
    reference: str = field(metadata=OTHER)
    explanation: str = field(default="", metadata=OTHER)
    safer: Literal["higher", "lower"] | None = field(default=None, metadata=OTHER)
    colour: Count | None = field(default=None, metadata=OTHER)
    preference: float | None = field(default=None, metadata=OTHER)
    model: str | None = field(default=None, metadata=OTHER)
    noise: NoiseRecord | None = field(default=None, metadata=OTHER)
    draws: Mapping[str, Count] | None = field(default=None, metadata=OTHER)
    code: Mapping[str, str] | None = field(default=None, metadata=SAME)


@checked
@dataclass(frozen=True, kw_only=True)
class VersionsRecord:
    """Versions of Python and of the packages that can change a number."""

    python: str = field(metadata=OTHER)
    torch: str = field(metadata=SAME)
    numpy: str = field(metadata=SAME)
    scipy: str = field(metadata=SAME)
    pyarrow: str = field(metadata=SAME)
    pillow: str = field(metadata=SAME)
    safetensors: str = field(metadata=SAME)


@checked
@dataclass(frozen=True, kw_only=True)
class MachineRecord:
    """What the run was computed on.

    Attributes:
        device: `cpu`, or the name of the accelerator.
        default_dtype: what a `forward` that names no dtype makes numbers of, where that is not float32.
        threads: of PyTorch.
        platform: kind of processor.
    """

    device: str = field(metadata=SAME)
    default_dtype: str | None = field(default=None, metadata=SAME)
    threads: Count = field(metadata=OTHER)
    platform: str = field(metadata=OTHER)


@checked
@dataclass(frozen=True)
class WarningRecord:
    """Something that a user should know: its stable code, and a sentence."""

    code: str = field(metadata=OTHER)
    sentence: str = field(metadata=OTHER)


@checked
@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """Everything needed to repeat a run, and what became of it.

    Attributes:
        format: version of the run folder's layout.
        brittle: version of this package.
        seed: of the noise.
        confidence: of all intervals.
        batch_size: most rows in one pass through the network.
        shard_points: points in a shard.
        model: the model.
        data: the data.
        scores: what was computed.
        versions: of Python and its packages.
        machine: what it was computed on.
        command: how the run was started, or None.
        doctor: whether the doctor looked at the run, `passed` or `skipped`; None before it has.
        created: when it began; empty before.
        finished: when it was over, or None.
        seconds: its duration, once it is over.
        account: what became of its points.
        warnings: what a user should know, in the order in which it was found.
    """

    format: int = field(default=FORMAT, metadata=SAME)
    brittle: str = field(metadata=SAME)
    seed: Count = field(metadata=SAME)
    confidence: Share = field(metadata=SAME)
    batch_size: Count = field(metadata=SAME)
    shard_points: Count = field(metadata=SAME)
    model: ModelRecord = field(metadata=SAME)
    data: DataRecord = field(metadata=SAME)
    scores: tuple[ScoreRecord, ...] = field(metadata=SAME)
    versions: VersionsRecord = field(metadata=SAME)
    machine: MachineRecord = field(metadata=SAME)
    command: tuple[str, ...] | None = field(default=None, metadata=OTHER)
    doctor: str | None = field(default=None, metadata=OTHER)
    created: str = field(default="", metadata=OTHER)
    finished: str | None = field(default=None, metadata=OTHER)
    seconds: float | None = field(default=None, metadata=OTHER)
    account: Account = field(default=Account(), metadata=OTHER)
    warnings: tuple[WarningRecord, ...] = field(default=(), metadata=OTHER)


def plain(record: DataclassInstance) -> dict[str, Any]:
    """A record as JSON values."""
    return json.loads(json.dumps(asdict(record), allow_nan=False))


def record_of(kind: type[T], content: Mapping[str, Any], what: str) -> T:
    """The record `kind` with the fields that `content` holds and its own defaults, each of the declared type.

    Args:
        kind: one of the classes of this module.
        content: JSON values by field.
        what: what describes itself by `content`, for messages.

    Raises:
        ParameterError: a field is unknown, or its value is of another kind.
    """
    own = {one.name: one.default for one in fields(kind) if isinstance(one.default, str | bool | None)}  # type: ignore[arg-type]
    try:
        values = json.loads(json.dumps(own | dict(content), allow_nan=False))
        return convert(kind, values, MOST_TEXT)
    except (FormatProblem, TypeError, ValueError) as error:
        raise ParameterError(f"{what} cannot be written into the record of a run: {error}") from error


def check_format(found: Mapping[str, Any], folder: Path) -> None:
    """Raise unless the run in `folder`, of which a file holds `found`, has the layout of this version.

    Raises:
        StorageError: it has not.
    """
    if found.get("format") != FORMAT:
        raise StorageError(
            "run_damaged",
            f"{folder} is a run of format {found.get('format')!r:.40}, and this version reads format {FORMAT}; score "
            f"the data again into another folder, or read it with the version of brittle that its run.json names",
        )


def read_record(path: Path) -> RunRecord:
    """The record in the file `path` of a run folder, which may come from anybody.

    Raises:
        StorageError: it is missing, too large, of another format, or not what a run writes.
        ArtefactError: it is a link out of the folder.
    """
    return read_object(path, RunRecord, check_format)
