"""Options of the model and of the data, which several commands take, and how these are opened by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from cyclopts import Parameter

from brittle.cli.common import DATA, MODEL, Flag, Many, say
from brittle.errors import ModelError, UsageError

if TYPE_CHECKING:
    from brittle.data import Points
    from brittle.decisions import Decision
    from brittle.model.bounds import Bounds, BoundsLike
    from brittle.model.classifier import Classifier
    from brittle.model.loading.image_steps import ImageSteps
    from brittle.model.loading.load import LoadedModel
    from brittle.model.texts import TextForm

EXPORT = (
    "torch.export.save(torch.export.export(model, (inputs,), "
    "dynamic_shapes=({{0: torch.export.Dim('batch')}},)), '{path}')"
)
"""How a network is exported for batches of any size, to be formatted with the path of the archive."""

UNIT = ("0", "1")
"""The bounds where none are given."""

BatchSize = Annotated[str, Parameter(help="Most rows in one pass through the network, or auto.")]
Overwrite = Annotated[bool, Parameter(negative=(), help="Replace the file OUT where it is there already.")]
Quiet = Annotated[bool, Parameter(negative=(), help="Show no progress.")]


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True, kw_only=True)
class NetworkOptions:
    """Where the network comes from and where it computes, for commands that know its preprocessing.

    Attributes:
        weights: Weights for a factory's network, in safetensors.
        device: Where to compute, such as cuda.
    """

    weights: Path | None = None
    device: str | None = None

    def loaded(self, model: str) -> LoadedModel:
        """What MODEL names, with nothing declared of it yet; one whose batch size is fixed is refused."""
        from brittle.model.loading.load import load_model

        loaded = load_model(model, weights=self.weights)
        fixed_batch = loaded.provenance.get("fixed_batch")
        if fixed_batch is not None:
            raise ModelError(
                "fixed_batch",
                f"{model} was exported for batches of {fixed_batch}; export it with a dynamic batch dimension, "
                f"from 2 inputs or more: {EXPORT.format(path=Path(model).name)}",
            )
        return loaded

    def load(
        self,
        model: str,
        bounds: BoundsLike,
        mean: float | Sequence[float] | None,
        std: float | Sequence[float] | None,
        loaded: LoadedModel | None = None,
        **declared: Any,
    ) -> Classifier:
        """The network that MODEL names, with what is declared of it; `loaded` where it is open already.

        Where neither mean nor std is given, they are those of the model's own files.
        """
        from brittle.model.bounds import Bounds
        from brittle.model.classifier import Classifier
        from brittle.model.texts import EMBEDDINGS

        loaded = loaded or self.loaded(model)
        own = loaded.declared
        if own is not None:
            given = mean is not None or std is not None
            say(False, f"{model} declares {own.words}" + ("; --mean and --std are yours" if given else ""))
            bounds = bounds if own.texts is None else own.texts.bounds
            if not given:
                mean, std = own.within(*Bounds.of(bounds))
            if own.texts is not None:
                declared["perturb"] = EMBEDDINGS
        classifier = Classifier(
            loaded.module, bounds, mean, std, device=self.device, source=loaded.provenance, **declared
        )
        if own is not None:
            classifier.class_names = own.class_names
        return classifier


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True, kw_only=True)
class ModelOptions(NetworkOptions):
    """The model and its preprocessing.

    Attributes:
        bounds: Smallest and largest value of an input; everything is in these units. Or none, or FILE.npy with those of
            each feature, [2, *shape].
        mean: Subtracted from the input before the network, one number or one per channel.
        std: What the difference is divided by, likewise.
        outputs: What the network returns.
        head: Name of the last linear layer, for the scores that need features; found by default.
        decision: What is decided: class, multilabel (which labels hold), multilabel:J (label J, by number or name),
            multilabel:each, top:K (the best K classes), within:T (a number within T).
    """

    bounds: Annotated[tuple[str, str], Flag] = UNIT
    mean: Annotated[tuple[float, ...], Many] = ()
    std: Annotated[tuple[float, ...], Many] = ()
    outputs: Literal["logits", "probs", "binary-logit"] = "logits"
    head: str | None = None
    decision: str = "class"

    def classifier(self, model: str, loaded: LoadedModel | None = None) -> Classifier:
        """The network that MODEL names, as it was declared; `loaded` where it is open already."""
        declared = {"outputs": self.outputs, "head": self.head, "decision": self.decision}
        return self.load(model, self.declared_bounds, self.mean or None, self.std or None, loaded, **declared)

    @cached_property
    def declared_bounds(self) -> Bounds:
        """The bounds."""
        return bounds_of(self.bounds)

    @property
    def decides(self) -> Decision:
        """What is decided."""
        from brittle.decisions import as_decision

        return as_decision(self.decision)


@Parameter(name="*", group=DATA)
@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """How data are read, and how much of them.

    Attributes:
        split: Which part of the data, such as test.
        layout: Axis order of image arrays in .npz files (nchw).
        scale_uint8: Map whole numbers 0..255 in .npz files to the bounds.
        exif: What becomes of images that say in their EXIF data that they are turned: ignore (the default) or apply.
        resize: Height and width to which encoded images are brought, or their shorter side alone, bilinear or by the
            rule that the folder of the model declares; where neither this nor --center-crop is given, what it declares.
        center_crop: Height and width of the middle of encoded images that is kept, after --resize.
        mode: Convert encoded images to RGB or to L (grey); by default to the mode of the first.
        class_names: File with the names of the model's classes, one a line in the order of its outputs; labels of data
            that name their classes are mapped into them.
        format: What DATA are: npz, array (.npy), table, webdataset (.tar), idx, folder, images, texts, or
            FILE.py:NAME; found out by default.
        label_column: Column of a table that holds the labels, by its name or place (-1 is the last), several with
            commas; by default label, target, class or y, else the one declared as classes.
        text_column: Column of a table that holds the texts, by its name or its place, for a model that reads texts; by
            default the only one of text beside labels and ids.
        labels: A .npy file with the class index of each point, for a .npy file or a folder of images without classes.
        points: Take so many points only, the first.
        ids: Take the points only whose ids stand in this file, one a line; ids are the column point of a run.
    """

    split: str | None = None
    layout: Literal["nchw", "nhwc"] | None = None
    scale_uint8: Annotated[bool, Flag] = False
    exif: Literal["ignore", "apply"] = "ignore"
    format: str | None = None
    label_column: str | None = None
    text_column: str | None = None
    labels: Path | None = None
    resize: Annotated[tuple[int, ...], Many] = ()
    center_crop: Annotated[tuple[int, ...], Many] = ()
    mode: Literal["RGB", "L"] | None = None
    class_names: Path | None = None
    points: int | None = None
    ids: Path | None = None

    def open(
        self,
        data: Path,
        bounds: BoundsLike,
        *,
        limit: int | None = None,
        targets: bool = False,
        texts: TextForm | None = None,
        model: str | None = None,
    ) -> Points:
        """The points of DATA, of which by default the first `limit`; with `targets` their labels are no classes.

        `texts` says how texts become points. Images are brought to the size that `model` declares, unless options say
        another.
        """
        from brittle.data import Reading, open_points
        from brittle.data.ids import read_ids
        from brittle.data.labels import read_class_names

        if self.points is not None and self.ids is not None:
            raise UsageError("--points takes the first points and --ids those that FILE names; give one of them")
        steps = self._steps(data, model)
        reading = Reading(
            split=self.split,
            bounds=bounds,
            limit=limit if self.points is None and self.ids is None else self.points,
            ids=None if self.ids is None else read_ids(self.ids),
            format=self.format,
            layout=self.layout,
            scale_uint8=self.scale_uint8,
            labels=self.labels,
            label_column=self.label_column,
            text_column=self.text_column,
            texts=texts,
            targets=targets,
            class_names=None if self.class_names is None else read_class_names(self.class_names),
            exif=self.exif,
            mode=self.mode,
            resize=self.resize or steps.resize,
            center_crop=self.center_crop or steps.center_crop,
            interpolation=steps.interpolation,
            crop_rounding=steps.crop_rounding,
        )
        return open_points(data, reading)

    def _steps(self, data: Path, model: str | None) -> ImageSteps:
        """What `model` declares to be done to images; nothing where DATA hold none, or options say it."""
        from brittle.data.formats import reads_images
        from brittle.model.loading.image_steps import ImageSteps, declared_steps

        found = declared_steps(model) if model is not None and reads_images(data, self.format) else None
        if found is None:
            return ImageSteps()
        sizes = {"--resize": self.resize, "--center-crop": self.center_crop}
        own = " and ".join(name for name, given in sizes.items() if given)
        if isinstance(found, str):
            then = f"{own} hold" if own else "the images are left as they are; give --resize or --center-crop"
            say(False, f"{model} prepares images in a way that brittle does not copy ({found}); {then}")
            return ImageSteps()
        say(False, f"{model} declares images {found.words}; " + (f"{own} stand instead" if own else "so they are read"))
        if own:
            return ImageSteps(interpolation=found.interpolation if self.resize else None)
        return found


def bounds_of(words: Sequence[str]) -> Bounds:
    """The bounds that the two words behind `--bounds` stand for; a word that stands alone is there twice."""
    from brittle.model.bounds import NONE, Bounds

    first, last = words
    if first == last == "none":
        return NONE
    if first == last and first.endswith(".npy"):
        try:
            ends = np.load(first, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise UsageError(f"{first} cannot be read as the bounds per feature: {error}") from error
        if ends.ndim < 2 or len(ends) != 2 or ends.dtype.kind not in "fiu":
            raise UsageError(
                f"{first} has shape {list(ends.shape)} and type {ends.dtype}; bounds per feature are numbers "
                f"[2, *shape], the lower ones first: np.save({first!r}, np.stack([lower, upper]))",
            )
        return Bounds.of((ends[0], ends[1]))
    try:
        low, high = float(first), float(last)
    except ValueError as error:
        raise UsageError(
            "--bounds takes two numbers (--bounds 0 255, --bounds 0 inf), none, or a file of those per feature "
            f"(FILE.npy); found {' '.join(dict.fromkeys(words))!r:.60}",
        ) from error
    return Bounds.of((low, high))
