"""Points that are encoded images of one size, decoded chunk by chunk: for all formats that hold such."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO

import torch

from brittle.data.images import Failure, Fitting, Look, Picture, UnreadableImage, decode, from_levels, look_at
from brittle.data.points import InputChunk, ListedPoints, RowIds
from brittle.data.reading import Reading
from brittle.errors import DataError
from brittle.estimate import Status
from brittle.model.bounds import BoundsLike

SCANNED = 10_000
"""Images whose size is compared when a data set is opened; later ones are compared when they are read."""

IMAGE_SUFFIX = re.compile(
    r"\.(png|jpe?g|bmp|webp|gif|tiff?|eps|ps|svg|pdf|psd|ico|jp2|avif|heic|ppm|pgm|pbm|pnm)", re.IGNORECASE
)
"""Files that are points; those in a format that is not read get a status. Other files are counted in the record."""

Files = Callable[[int], Generator[BinaryIO, None, None]]
"""Called with a row, gives the encoded images from that row on, each at its beginning."""


def encoded_points(
    files: Files,
    names: Sequence[str],
    ids: Sequence[str] | RowIds,
    reading: Reading,
    record: dict[str, Any],
    *,
    named: bool = True,
    **known: Any,
) -> ListedPoints:
    """Points that are encoded images, the first `reading.limit` of them.

    Args:
        files: called with a row, gives the encoded images from that row on.
        names: what the source calls each image, `[N]`.
        ids: of each point.
        reading: how they are read.
        record: where they come from.
        named: whether points are called by these names.
        known: labels, targets and names of classes, as `Reading.points` takes them.
    """
    images = EncodedImages.open(files, names[: reading.limit], reading)
    return reading.points({**record, "exif": reading.exif}, ids, images.read, names=names if named else None, **known)


@dataclass(frozen=True)
class EncodedImages:
    """Inputs that are encoded images of one size.

    Attributes:
        files: called with a row, gives the encoded images from that row on.
        names: what the source calls each image, `[N]`.
        bounds: what the levels 0 and 255 are mapped to.
        turn: whether an image is turned as its EXIF data say.
        fitting: how the images are brought to one size.
        look: mode and size of the data set: those of its first image that can be decoded.
        first: the row of that image.
    """

    files: Files
    names: Sequence[str]
    bounds: BoundsLike
    turn: bool
    fitting: Fitting
    look: Look
    first: int

    @classmethod
    def open(cls, files: Files, names: Sequence[str], reading: Reading) -> EncodedImages:
        """Find out mode and size of the data set, and compare the sizes of its first `SCANNED` images."""
        turn, fitting, failures = reading.exif == "apply", reading.fitting, []
        images: EncodedImages | None = None
        with closing(files(0)) as streams:
            for row, stream in enumerate(islice(streams, min(SCANNED, len(names)))):
                try:
                    if images is None:
                        decode(stream)
                        stream.seek(0)
                    look = look_at(stream, turn=turn)
                except UnreadableImage as error:  # its row gets a status when it is read
                    failures.append(f"{names[row]}: {error.failure.reason}")
                    continue
                problem = fitting.problem(look.size)
                if problem is not None and problem[0] is Status.DECODE_ERROR:
                    raise DataError("shape", f"{names[row]} has {problem[1]}; use another --resize or --center-crop")
                if images is None:
                    look = Look(reading.mode or look.mode, fitting.size(look.size))
                    images = cls(files, names, reading.bounds, turn, fitting, look, row)
                else:
                    images.check_size(row, fitting.size(look.size))
        if images is None:
            raise DataError("corrupt", f"none of the first {len(failures)} images can be read; {failures[0]}")
        return images

    def read(self, size: int, start: int) -> Iterator[InputChunk]:
        """The images from row `start`, `size` at a time: `[B, channels, height, width]` and what failed."""
        with closing(self.files(start)) as streams:
            files = enumerate(islice(streams, len(self.names) - start), start)
            while chunk := [self._decoded(*one) for one in islice(files, size)]:
                failures = {position: one for position, one in enumerate(chunk) if isinstance(one, Failure)}
                pictures = {position: one for position, one in enumerate(chunk) if isinstance(one, Picture)}
                inputs = torch.zeros(len(chunk), *self.look.shape, dtype=torch.float32)
                if pictures:
                    levels = torch.stack([one.pixels for one in pictures.values()])
                    inputs[list(pictures)] = from_levels(levels, self.bounds)
                turned = frozenset(position for position, one in pictures.items() if one.turned)
                yield InputChunk(inputs, failures, turned)

    def check_size(self, row: int, size: tuple[int, int]) -> None:
        """Raise where image `row` does not have the size of the data set."""
        if size != self.look.size:
            width, height = self.look.size
            turned = " (they were turned as their EXIF data say)" if self.turn else ""
            raise DataError(
                "shape",
                f"{self.names[row]} has {size[0]} x {size[1]} pixels, {self.names[self.first]} {width} x {height}; "
                f"bring all images to one size first, or use --resize H W or --center-crop H W (resize=, center_crop=)"
                f"{turned}",
            )

    def _decoded(self, row: int, stream: BinaryIO) -> Picture | Failure:
        try:
            picture = decode(stream, self.look.mode, turn=self.turn, fitting=self.fitting)
        except UnreadableImage as error:
            return error.failure
        self.check_size(row, (picture.pixels.shape[2], picture.pixels.shape[1]))
        return picture
