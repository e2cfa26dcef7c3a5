"""Encoded images of one size, decoded chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

import torch

from brittle.data.fitting import Fitting
from brittle.data.images import Failure, Look, Picture, UnreadableImage, decode, from_levels, look_at
from brittle.data.listed import InputChunk
from brittle.data.options import ReadingOptions
from brittle.errors import DataError
from brittle.model.bounds import BoundsLike

SCANNED = 10_000
"""Images whose size is compared when a data set is opened; later ones are compared when they are read."""


@dataclass(frozen=True)
class EncodedImages:
    """Inputs that are encoded images of one size, decoded chunk by chunk.

    Attributes:
        files: called with a row, gives the encoded images from that row on, each at its beginning.
        names: what the source calls each image, `[N]`.
        bounds: what the levels 0 and 255 are mapped to.
        turn: whether an image is turned as its EXIF data say.
        fitting: how the images are brought to one size.
        look: mode and size of the data set: those of its first image that can be decoded.
        first: the row of that image.
    """

    files: Callable[[int], Generator[BinaryIO, None, None]]
    names: Sequence[str]
    bounds: BoundsLike
    turn: bool
    fitting: Fitting
    look: Look
    first: int

    @classmethod
    def open(
        cls, files: Callable[[int], Generator[BinaryIO, None, None]], names: Sequence[str], options: ReadingOptions
    ) -> EncodedImages:
        """Find out mode and size of the data set, and compare the sizes of its first `SCANNED` images.

        Args:
            files: called with a row, gives the encoded images from that row on, each at its beginning.
            names: what the source calls each image, `[N]`.
            options: how the data are to be read.

        Raises:
            DataError: none of these images can be decoded, or their sizes differ.
        """
        turn = options.exif == "apply"
        with closing(files(0)) as streams:
            first, look = _first_readable(streams, names, turn)
        fitting = options.fitting
        look = Look(options.mode or look.mode, look.size)
        _check_crop(names[first], look.size, fitting)
        images = cls(files, names, options.bounds, turn, fitting, Look(look.mode, fitting.size(look.size)), first)
        with closing(files(0)) as streams:
            for row, stream in enumerate(islice(streams, SCANNED)):
                try:
                    size = look_at(stream, turn=turn).size
                except UnreadableImage:
                    continue  # its row gets a status when it is read
                _check_crop(names[row], size, fitting)
                images.check_size(row, fitting.size(size))
        return images

    def read(self, size: int, start: int) -> Iterator[InputChunk]:
        """The images from row `start`, `size` at a time: `[B, channels, height, width]` and what failed."""
        with closing(self.files(start)) as streams:
            files = enumerate(streams, start)
            while chunk := list(self._decoded(islice(files, size))):
                failures = {position: one for position, one in enumerate(chunk) if isinstance(one, Failure)}
                inputs = torch.zeros(len(chunk), *self.look.shape, dtype=torch.float32)
                pictures = {position: one for position, one in enumerate(chunk) if isinstance(one, Picture)}
                if pictures:
                    levels = torch.stack([one.pixels for one in pictures.values()])
                    inputs[list(pictures)] = from_levels(levels, self.bounds)
                turned = frozenset(position for position, one in pictures.items() if one.turned)
                yield InputChunk(inputs, failures, turned)

    def check_size(self, row: int, size: tuple[int, int]) -> None:
        """Raise where image `row` does not have the size of the data set.

        Raises:
            DataError: it does not.
        """
        if size != self.look.size:
            width, height = self.look.size
            raise DataError(
                "shape",
                f"{self.names[row]} has {size[0]} x {size[1]} pixels, {self.names[self.first]} {width} x {height}; "
                "bring all images to one size first, or use --resize H W or --center-crop H W (resize=, center_crop=)"
                f"{' (they were turned as their EXIF data say)' if self.turn else ''}",
            )

    def _decoded(self, files: Iterator[tuple[int, BinaryIO]]) -> Iterator[Picture | Failure]:
        for row, stream in files:
            try:
                picture = decode(stream, self.look.mode, turn=self.turn, fitting=self.fitting)
            except UnreadableImage as error:
                yield error.failure
                continue
            self.check_size(row, (picture.pixels.shape[2], picture.pixels.shape[1]))
            yield picture


def _check_crop(name: str, size: tuple[int, int], fitting: Fitting) -> None:
    if not fitting.holds(size):
        width, height = fitting.resized(size)
        cut = " x ".join(map(str, (fitting.crop or ())[::-1]))
        raise DataError(
            "shape",
            f"{name} has {width} x {height} pixels{'' if fitting.resize is None else ' once resized'}, from which the "
            f"middle {cut} cannot be cut; use --resize (resize=) first, or a smaller --center-crop (center_crop=)",
        )


def _first_readable(files: Iterator[BinaryIO], names: Sequence[str], turn: bool) -> tuple[int, Look]:
    """Row and look of the first image that can be decoded."""
    failures: list[str] = []
    for row, stream in enumerate(islice(files, SCANNED)):
        try:
            decode(stream)
        except UnreadableImage as error:
            failures.append(f"{names[row]}: {error.failure.reason}")
        else:
            stream.seek(0)
            return row, look_at(stream, turn=turn)
    raise DataError("corrupt", f"none of the first {len(failures)} images can be read; the first is {failures[0]}")
