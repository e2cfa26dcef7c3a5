"""Options of reading data, and the formats of data."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from brittle.data.files import file_digest, path_text
from brittle.data.images import INTERPOLATIONS, ROUNDINGS, ImageSteps
from brittle.data.points import ListedPoints, Points, Read, RowIds
from brittle.errors import ParameterError
from brittle.model.bounds import Bounds, BoundsLike

MOST_PIXELS = 1 << 13  # longest side to which an image is brought

WORDS = {"layout": ("nchw", "nhwc"), "mode": ("RGB", "L"), "interpolation": INTERPOLATIONS, "crop_rounding": ROUNDINGS}
"""Words of options, beside their default."""

IMAGE_OPTIONS = frozenset({"resize", "center_crop", "interpolation", "crop_rounding", "mode"})  # of encoded images

ARRAY_OPTIONS = frozenset({"layout", "scale_uint8"})

MEANT_FOR = {  # the data that options are for which some formats alone take
    **dict.fromkeys(sorted(IMAGE_OPTIONS), "encoded images"),
    **dict.fromkeys(sorted(ARRAY_OPTIONS), "arrays in .npz and .npy files"),
    "label_column": "tables",
    "text_column": "tables of a model that reads texts",
    "labels": ".npy files and folders of images without classes",
}


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Options of reading data: by Python, by the command line, and in the record of a run.

    Image files and IDX hold whole numbers 0..255, which are mapped to the bounds, float32; floating point arrays are
    taken as they are.

    Attributes:
        split: part of the data, such as `test`; needed where there are several.
        bounds: smallest and largest value of an input.
        limit: how many points are kept, from the first; None keeps all.
        sample: how many points are kept, drawn as `brittle.data.sample_points` does; None keeps all.
        ids: ids of the points that are kept, as `brittle.data.choose_points` does; None keeps all.
        format: what the data are, the name of one of `FORMATS`; None recognises it.
        layout: `nchw` or `nhwc`, axis order of image arrays.
        scale_uint8: whether whole numbers 0..255 in arrays of type uint8 are mapped to the bounds.
        labels: a `.npy` file with the class index of each point, for a `.npy` file or images without classes.
        label_column: name of the column of labels of a table, with `targets` several, with commas between them; None
            takes the one called label, target, class or y, or the only one that is declared as classes.
        text_column: name of the column of a table that holds texts; None takes the only one of text.
        texts: how texts become points, for a model that reads texts, as the format `texts` takes it.
        targets: whether what is right for a point is no class, but several labels (1 holds, 0 does not) or numbers.
        class_names: names of the model's classes in the order of its outputs, into which labels are mapped by name.
        levels: whether columns of text or categories are read as whole numbers, the places of their values among
            `categories` of the record, which noise never changes; for an estimator that was fitted on a frame.
        mode: `RGB` or `L` (grey), to which encoded images are converted; None takes the mode of the first.
        resize: `(height, width)` to which encoded images are brought, or `(side,)` for the shorter side.
        center_crop: `(height, width)` of the middle of them that is kept, after `resize`.
        interpolation: how they are resized, by the names of Pillow; None is bilinear.
        crop_rounding: where the middle begins if it cannot lie in the middle: at the `even` pixel (None), or `down`.

    Raises:
        ParameterError: a value is not of this form, or two of `limit`, `sample` and `ids` are given.
    """

    split: str | None = None
    bounds: BoundsLike = (0.0, 1.0)
    limit: int | None = None
    sample: int | None = None
    ids: Iterable[str] | None = None
    format: str | None = None
    layout: str | None = None
    scale_uint8: bool = False
    labels: str | os.PathLike[str] | None = None
    label_column: str | None = None
    text_column: str | None = None
    texts: Any = None
    targets: bool = False
    class_names: Sequence[str] | None = None
    levels: bool = False
    mode: str | None = None
    resize: Any = None
    center_crop: Any = None
    interpolation: str | None = None
    crop_rounding: str | None = None

    def __post_init__(self) -> None:
        for name, allowed in WORDS.items():
            if (word := getattr(self, name)) not in (*allowed, getattr(Reading, name)):
                raise ParameterError(f"{name} must be one of {', '.join(allowed)}; found {word!r:.80}")
        if counts := [count for count in (self.limit, self.sample) if count is not None and count < 1]:
            raise ParameterError(f"at least 1 point must be taken; found {counts[0]}")
        if sum(choice is not None for choice in (self.limit, self.sample, self.ids)) > 1:
            raise ParameterError(
                "limit= (--points), sample= (--sample) and ids= (--ids) exclude each other; give one of them"
            )
        for name, counts in (("resize", (1, 2)), ("center_crop", (2,))):
            sides = getattr(self, name)
            if not sides:
                object.__setattr__(self, name, None)
            elif len(sides) not in counts or not all(
                isinstance(side, int) and 1 <= side <= MOST_PIXELS for side in sides
            ):
                form = "height and width" + (" or the shorter side" if 1 in counts else "")
                sides_text = f"{tuple(sides)!r:.60}"
                raise ParameterError(f"{name} takes {form} in pixels, from 1 to {MOST_PIXELS:,}; found {sides_text}")
            else:
                object.__setattr__(self, name, tuple(sides))
        Bounds.of(self.bounds)

    @property
    def steps(self) -> ImageSteps:
        """Steps that bring encoded images to one size."""
        return ImageSteps(self.resize, self.center_crop, self.interpolation, self.crop_rounding)

    @property
    def given(self) -> frozenset[str]:
        """The options of `MEANT_FOR` that are not as they are by default."""
        return frozenset(name for name in MEANT_FOR if getattr(self, name) != getattr(Reading, name))

    def record(self, path: Path | None, sha256: str, **facts: Any) -> dict[str, Any]:
        """Return the record of points that are read so, with the `facts` found in the data."""
        options = {name: getattr(self, name) for name in self.given - {"labels"}}
        record = {"format": self.format, "path": None if path is None else path_text(path), "split": self.split}
        record |= {"sha256": sha256, "limit": self.limit}
        if self.labels is not None:
            record |= {"labels": path_text(self.labels), "labels_sha256": file_digest(Path(self.labels))}
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}
        return record | values | facts

    def points(self, record: dict[str, Any], ids: Sequence[str], read: Read, **answers: Any) -> ListedPoints:
        """Return the first `limit` points of those with these ids; `answers` are other fields of `ListedPoints`."""
        part = slice(self.limit)
        point_ids = RowIds(len(range(len(ids))[part])) if isinstance(ids, RowIds) else tuple(ids[part])
        for name, values in answers.items():
            if values is not None:
                values = values if name == "class_names" else values[part]
                answers[name] = values if isinstance(values, Tensor) else tuple(values)
        return ListedPoints(point_ids, read, self.bounds, record, **answers)


class Format(NamedTuple):
    """A kind of data on disk; `form` is what it looks like, `options` what it takes of `MEANT_FOR`.
    Those of a lower `rank` are asked first whether they recognise a path. One read `in_parts` may lie in a store."""

    name: str
    form: str
    recognise: Callable[[Path], bool]
    read: Callable[[Path, Reading], Points]
    options: frozenset[str] = frozenset()
    rank: int = 0
    in_parts: bool = False

    def check_options(self, reading: Reading, path: Path) -> None:
        """Raise where an option is given that is not for data of this form."""
        for name in sorted(reading.given - self.options):
            raise ParameterError(
                f"--{name.replace('_', '-')} ({name}=) is for {MEANT_FOR[name]}, and {path_text(path)} is {self.form}; "
                "leave it out"
            )
