"""How data are to be read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from brittle.data.exif import EXIF
from brittle.errors import ParameterError
from brittle.model.bounds import check_bounds

FOR_SOME = {
    "label_column": "--label-column (label_column=) names a column of a table",
    "header": "--header (header=) is for text files of tables",
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

    Raises:
        ParameterError: a limit below 1, bounds that are not finite and increasing, or another word for `exif`.
    """

    split: str | None = None
    bounds: tuple[float, float] = (0.0, 1.0)
    limit: int | None = None
    layout: str | None = None
    scale_uint8: bool = False
    exif: str = "ignore"
    label_column: str | None = None
    header: bool | None = None
    label_file: Path | None = None

    def __post_init__(self) -> None:
        if self.exif not in EXIF:
            raise ParameterError("exif", f"exif must be one of {', '.join(EXIF)}; found {self.exif!r:.80}")
        if self.limit is not None and self.limit < 1:
            raise ParameterError("point_count", f"at least 1 point must be taken; found {self.limit}")
        check_bounds(self.bounds)
