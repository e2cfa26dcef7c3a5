"""Options of the model and of the data, which several commands take, and how these are opened by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from cyclopts import Parameter

from brittle.cli.common import DATA, MODEL, say
from brittle.errors import UsageError

if TYPE_CHECKING:
    from brittle.data import Points
    from brittle.data.images import ImageSteps
    from brittle.decisions import Decision
    from brittle.model.bounds import Bounds, BoundsLike
    from brittle.model.classifier import Classifier
    from brittle.model.loading.load import LoadedModel

UNIT = ("0", "1")  # the bounds where none are given

Weights = Annotated[
    Path | None, Parameter(help="Weights for a factory's network: .safetensors, or a checkpoint.", group=MODEL)
]
Device = Annotated[str | None, Parameter(help="Where to compute, such as cuda.", group=MODEL)]


def load_network(model: str, weights: Path | None, *, texts: bool = False) -> LoadedModel:
    """Load what MODEL names, with nothing declared of it yet, and say where its weights were found."""
    from brittle.model.loading.load import load_batched

    loaded = load_batched(model, weights, texts=texts)
    if loaded.weights:
        say(False, loaded.weights)
    return loaded


def declare(
    loaded: LoadedModel,
    model: str,
    bounds: BoundsLike,
    mean: float | Sequence[float] | None,
    std: float | Sequence[float] | None,
    **declared: Any,
) -> Classifier:
    """Open the network that MODEL names, and print what is declared of it."""
    from brittle.model.loading.load import declare as declare_silently

    if loaded.declared is not None:
        yours = "; --mean and --std are yours" if mean is not None or std is not None else ""
        say(False, f"{model} declares {loaded.declared.words}{yours}")
    return declare_silently(loaded, bounds, mean, std, **declared)


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The model and its preprocessing.

    Attributes:
        bounds: Smallest and largest value of an input, or none, or FILE.npy with those of each feature, [2, *shape].
        mean: Subtracted from the input before the network, one number or one per channel.
        std: What the difference is divided by, likewise.
        outputs: What the network returns.
        head: Name of the last linear layer, for the scores that need features; found by default.
        decision: class, multilabel (which labels hold), multilabel:J (label J), top:K (the best K), within:T (a number
            within T), masks:T or boxes:T (their overlap).
        random_model: The model draws at random at test time (dropout that stays on); most of 101 passes decide.
        rules: What columns of a table hold whatever noise and searches do, as NAME=fixed, NAME=whole, NAME=LOW..HIGH,
            NAME=one-hot:GROUP, NAME=at-most:OTHER or NAME=whole,LOW..,at-most:OTHER; for estimators.
    """

    weights: Weights = None
    device: Device = None
    bounds: tuple[str, ...] = UNIT
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    outputs: Literal["logits", "probs", "binary-logit"] = "logits"
    head: str | None = None
    decision: str = "class"
    random_model: bool = False
    rules: tuple[str, ...] = ()

    def classifier(self, model: str, loaded: LoadedModel | None = None) -> Classifier:
        """Return the network that MODEL names, as it was declared; `loaded` where it is open already."""
        loaded = loaded or load_network(model, self.weights)
        declared = {name: getattr(self, name) for name in ("outputs", "head", "decision", "device")}
        declared |= {"random": self.random_model, "rules": self.rules_by_column}
        return declare(loaded, model, self.declared_bounds, self.mean or None, self.std or None, **declared)

    @property
    def rules_by_column(self) -> dict[str, str]:
        """The words of each column."""
        rules = [(name, words) for name, _, words in (rule.partition("=") for rule in self.rules)]
        if len(dict(rules)) < len(rules):
            raise UsageError("--rules names a column twice; give all its words at once, NAME=whole,0..9")
        return dict(rules)

    @cached_property
    def declared_bounds(self) -> Bounds:
        return bounds_of(self.bounds)

    @property
    def decides(self) -> Decision:
        from brittle.decisions.kinds import as_decision

        return as_decision(self.decision)


@Parameter(name="*", group=DATA)
@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """Options of reading data, and of how much of them.

    Attributes:
        split: Which part of the data, such as test, or of corruptions fog:3.
        layout: Axis order of image arrays in .npz files (nchw).
        scale_uint8: Map whole numbers 0..255 in .npz files to the bounds.
        resize: Height and width to which encoded images are brought, or their shorter side alone, bilinear or by the
            rule that the folder of the model declares; where neither this nor --center-crop is given, what it declares.
        center_crop: Height and width of the middle of encoded images that is kept, after --resize.
        mode: Convert encoded images to RGB or to L (grey); by default to the mode of the first.
        class_names: File with the names of the model's classes, one a line in the order of its outputs; labels of data
            that name their classes are mapped into them.
        format: What DATA are: npz, array (.npy), table, webdataset (.tar), idx, corruptions, folder, images or
            texts; found out by default.
        label_column: Column of a table with the labels, several with commas; label, target, class or y by default.
        text_column: Column of a table that holds the texts, for a model that reads texts; by default the only one of
            text beside labels and ids.
        labels: A .npy file with the class index of each point, for a .npy file or a folder of images without classes.
        points: Take so many points only, the first.
        sample: Take so many points only, drawn at random, the same every time; each class keeps its share.
        ids: Take the points only whose ids stand in this file, one a line; ids are the column point of a run.
    """

    split: str | None = None
    layout: Literal["nchw", "nhwc"] | None = None
    scale_uint8: bool = False
    format: str | None = None
    label_column: str | None = None
    text_column: str | None = None
    labels: Path | None = None
    resize: tuple[int, ...] = ()
    center_crop: tuple[int, ...] = ()
    mode: Literal["RGB", "L"] | None = None
    class_names: Path | None = None
    points: int | None = None
    sample: int | None = None
    ids: Path | None = None

    def open(
        self,
        data: Path,
        bounds: BoundsLike,
        *,
        limit: int | None = None,
        targets: bool = False,
        texts: Any = None,
        model: str | None = None,
        levels: bool = False,
    ) -> Points:
        """Open the points of DATA, by default the first `limit`; with `targets` their labels are not classes.

        `texts` says how texts become points, and `levels` whether columns of text are categories. Images are brought
        to the size that `model` declares, unless options say another.
        """
        from brittle.data import open_points
        from brittle.data.ids import read_ids
        from brittle.data.labels import read_class_names
        from brittle.data.reading import Reading

        fields: dict[str, Any] = vars(self) | vars(self._steps(data, model))
        points = fields.pop("points")
        fields["limit"] = limit if points is None and self.ids is None and self.sample is None else points
        fields["ids"] = None if self.ids is None else read_ids(self.ids)
        fields["class_names"] = None if self.class_names is None else read_class_names(self.class_names)
        return open_points(data, Reading(**fields, bounds=bounds, targets=targets, texts=texts, levels=levels))

    def _steps(self, data: Path, model: str | None) -> ImageSteps:
        """Return the preparation of images: by options, or else as `model` declares it; empty without images."""
        from brittle.data.formats import reads_images
        from brittle.data.images import ImageSteps
        from brittle.model.loading.load import find_source

        steps = ImageSteps(self.resize or None, self.center_crop or None)
        if model is None or not reads_images(data, self.format):
            return steps
        source = find_source(model)
        declared = None if source is None else source.image_steps(model)
        if declared is None:
            return steps
        sizing = " and ".join(["--resize"] * bool(self.resize) + ["--center-crop"] * bool(self.center_crop))
        if isinstance(declared, str):
            then = f"{sizing} hold" if sizing else "the images are left as they are; give --resize or --center-crop"
            say(False, f"{model} prepares images in a way that brittle does not copy ({declared}); {then}")
            return steps
        then = f"{sizing} stand instead" if sizing else "so they are read"
        say(False, f"{model} declares images {declared.words}; {then}")
        return replace(steps, interpolation=declared.interpolation if self.resize else None) if sizing else declared


def bounds_of(words: Sequence[str]) -> Bounds:
    """Return the bounds that the words of `--bounds` stand for: two numbers, none, or a file of those per feature."""
    from brittle.model.bounds import NONE, Bounds

    if words == ("none",):
        return NONE
    if len(words) == 1 and words[0].endswith(".npy"):
        try:
            ends = np.load(words[0], mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise UsageError(f"{words[0]} cannot be read as the bounds per feature: {error}") from error
        if ends.ndim < 2 or len(ends) != 2 or ends.dtype.kind not in "fiu":
            raise UsageError(
                f"{words[0]} has shape {list(ends.shape)} and type {ends.dtype}; bounds per feature are numbers "
                f"[2, *shape]: np.save({words[0]!r}, np.stack([lower, upper]))"
            )
        return Bounds.of((ends[0], ends[1]))
    try:
        low, high = map(float, words)
    except ValueError as error:
        raise UsageError(
            "--bounds takes two numbers (--bounds 0 255, --bounds 0 inf), none, or a file of those per feature "
            f"(FILE.npy); found {' '.join(words)!r:.60}"
        ) from error
    return Bounds.of((low, high))
