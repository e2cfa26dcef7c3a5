"""How data are to be read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brittle.data.exif import EXIF
from brittle.data.fitting import INTERPOLATIONS, ROUNDINGS, Fitting
from brittle.errors import ParameterError
from brittle.model.bounds import Bounds, BoundsLike
from brittle.model.texts import TextForm

MODES = ("RGB", "L")
"""What encoded images may be converted to: colours, or grey."""

MOST_PIXELS = 1 << 13
"""Longest side to which an image is brought."""

FOR_SOME = {
    "label_column": "--label-column (label_column=) names a column of a table",
    "text_column": "--text-column (text_column=) names a column of a table, for a model that reads texts",
    "header": "--header (header=) is for text files of tables",
    "resize": "--resize (resize=) is for encoded images",
    "center_crop": "--center-crop (center_crop=) is for encoded images",
    "interpolation": "interpolation= is for encoded images",
    "crop_rounding": "crop_rounding= is for encoded images",
    "mode": "--mode (mode=) is for encoded images",
    "label_file": "--labels (labels=) is for .npy files and for folders of images without classes",
}
"""Options that only formats take which say so, and what each is for."""


@dataclass(frozen=True)
class ReadingOptions:
    """How data are to be read.

    Attributes:
        split: part of the data, such as `test`, or None for the only or the usual one.
        bounds: smallest and largest value of an input.
        limit: how many points are kept, from the first; None keeps all.
        layout: axis order of image arrays, one of `brittle.data.arrays.LAYOUTS`, or None.
        scale_uint8: whether arrays of whole numbers 0..255 are mapped to the bounds.
        exif: what is done with the orientation of encoded images, one of `brittle.data.exif.EXIF`.
        label_column: name or place of the column of a table that holds the labels; None takes the one called so.
        header: whether the first row of a table names its columns; None looks at it.
        label_file: a `.npy` file with the class index of each point, or None.
        resize: height and width to which encoded images are brought, or the shorter side alone, or None.
        center_crop: height and width of the middle of them that is kept, or None.
        interpolation: how they are resized, one of `brittle.data.fitting.INTERPOLATIONS`; None is bilinear.
        crop_rounding: where their middle begins, one of `brittle.data.fitting.ROUNDINGS`; None is `even`.
        mode: `RGB` or `L`, to which they are converted; None takes that of the first.
        text_column: name or place of the column of a table that holds texts; None takes the only one of text.
        texts: how texts become points, for a model that reads texts; else None.
        targets: whether a point's label is not a class, but several labels (1 holds, 0 does not) or numbers.

    Raises:
        ParameterError: a limit below 1, bounds that are not finite and increasing, another word for `exif`, `mode`,
            `interpolation` or `crop_rounding`, or numbers of pixels that no image has.
    """

    split: str | None = None
    bounds: BoundsLike = (0.0, 1.0)
    limit: int | None = None
    layout: str | None = None
    scale_uint8: bool = False
    exif: str = "ignore"
    label_column: str | None = None
    header: bool | None = None
    label_file: Path | None = None
    resize: tuple[int, ...] | None = None
    center_crop: tuple[int, ...] | None = None
    interpolation: str | None = None
    crop_rounding: str | None = None
    mode: str | None = None
    targets: bool = False
    text_column: str | None = None
    texts: TextForm | None = None

    def __post_init__(self) -> None:
        if self.exif not in EXIF:
            raise ParameterError(f"exif must be one of {', '.join(EXIF)}; found {self.exif!r:.80}")
        if self.limit is not None and self.limit < 1:
            raise ParameterError(f"at least 1 point must be taken; found {self.limit}")
        if self.mode not in (None, *MODES):
            raise ParameterError(f"the mode must be one of {', '.join(MODES)}; found {self.mode!r:.80}")
        _check_word("interpolation", self.interpolation, INTERPOLATIONS)
        _check_word("crop_rounding", self.crop_rounding, ROUNDINGS)
        _check_pixels("resize", self.resize, (1, 2))
        _check_pixels("center_crop", self.center_crop, (2,))
        Bounds.of(self.bounds)

    @property
    def fitting(self) -> Fitting:
        """How encoded images are brought to another size."""
        return Fitting(self.resize, self.center_crop, self.interpolation, self.crop_rounding)

    @property
    def of_images(self) -> dict[str, Any]:
        """What the record of a run holds of how encoded images were read; what was not asked for is left out."""
        names = ("resize", "center_crop", "interpolation", "crop_rounding", "mode")
        asked = {name: getattr(self, name) for name in names}
        return {"exif": self.exif} | {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asked.items()
            if value is not None
        }


def _check_word(name: str, found: str | None, words: tuple[str, ...]) -> None:
    if found not in (None, *words):
        raise ParameterError(f"{name} must be one of {', '.join(words)}; found {found!r:.80}")


def _check_pixels(name: str, sides: tuple[int, ...] | None, counts: tuple[int, ...]) -> None:
    if sides is None:
        return
    whole = all(isinstance(side, int) and 1 <= side <= MOST_PIXELS for side in sides)
    if len(sides) not in counts or not whole:
        sides_text = " or ".join("height and width" if count == 2 else "the shorter side" for count in counts[::-1])
        raise ParameterError(
            f"{name} takes {sides_text} in pixels, whole numbers from 1 to {MOST_PIXELS:,}; found {sides!r:.60}"
        )
