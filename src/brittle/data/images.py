"""Images: decoded without trust in the file, and drawn as thumbnails.

A file is looked at before it is decoded: its format must be on a short list, its size under a cap, its frames one.
It lies as its pixels do, as in torchvision, unless it is to be turned as its EXIF data say.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from brittle.data.exif import DECODER_ERRORS, SIDEWAYS, TURNS, UPRIGHT, orientation
from brittle.data.fitting import UNFITTED, Fitting
from brittle.estimate import Status
from brittle.model.bounds import Bounds, BoundsLike

FORMATS = ("PNG", "JPEG", "BMP", "WEBP", "PPM")
"""The image formats that are read, PPM with its kin PGM and PBM; none of them starts another program.

TIFF is none of them: a file may hold any compression, and Pillow reads all of its pages to count them.
"""

MAX_PIXELS = 1 << 26
"""An image with more pixels is not decoded."""

THUMBNAIL_SIDE = 96
"""Longest side of a thumbnail, in pixels."""

CHANNELS = {"L": 1, "RGB": 3}
"""The modes a data set can have, with their number of channels."""

DECLARED = {"1": "L", "L": "L", "LA": "L", "P": "RGB", "RGB": "RGB", "RGBA": "RGB"}
"""The mode a data set gets from its first image; images in other modes are not read."""

_OTHER_FORMATS = (
    ("GIF", (b"GIF87a", b"GIF89a")),
    ("TIFF", (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")),
    ("EPS or PostScript", (b"%!", b"\xc5\xd0\xd3\xc6")),
    ("PDF", (b"%PDF",)),
    ("PSD", (b"8BPS",)),
    ("JPEG 2000", (b"\xff\x4f\xff\x51", b"\0\0\0\x0cjP  ")),
    ("ICO", (b"\0\0\1\0",)),
    ("SVG or XML", (b"<svg", b"<?xml")),
)
_BOX_FORMATS = {b"avif": "AVIF", b"avis": "AVIF", b"heic": "HEIC", b"heix": "HEIC", b"mif1": "HEIC"}


@dataclass(frozen=True)
class Failure:
    """Why one point could not be read.

    Attributes:
        status: what happened.
        reason: what was found.
    """

    status: Status
    reason: str


class UnreadableImage(Exception):
    """An image that is not decoded; holds the `Failure`."""

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.failure = Failure(status, reason)


@dataclass(frozen=True)
class Look:
    """What all images of a data set share.

    Attributes:
        mode: `L` or `RGB`.
        size: `(width, height)` in pixels.
    """

    mode: str
    size: tuple[int, int]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of one input, `(channels, height, width)`."""
        return CHANNELS[self.mode], self.size[1], self.size[0]


@dataclass(frozen=True)
class Picture:
    """A decoded image.

    Attributes:
        pixels: `[channels, height, width]`, uint8.
        turned: whether its EXIF data say that it is turned or mirrored.
    """

    pixels: Tensor
    turned: bool


def look_at(stream: BinaryIO, *, turn: bool = False) -> Look:
    """The mode to which an image would be converted and its size, from its header.

    Nothing is decoded but PNG files that are to be turned and not square: their EXIF data may follow their pixels.

    Args:
        stream: the file, at its beginning.
        turn: whether the image is to be turned as its EXIF data say.

    Raises:
        UnreadableImage: the image will not be decoded.
    """
    with _opened(stream) as image:
        look = _look(image)
        width, height = look.size
        if not turn or width == height:
            return look
        if image.format == "PNG":
            _load(image)
        return Look(look.mode, (height, width)) if orientation(image) in SIDEWAYS else look


def decode(stream: BinaryIO, mode: str | None = None, *, turn: bool = False, fitting: Fitting = UNFITTED) -> Picture:
    """The pixels of an image.

    Args:
        stream: the file, at its beginning.
        mode: `L` or `RGB`; the image's own by default. Transparency is dropped.
        turn: whether the image is to be turned as its EXIF data say, before anything else is done with it.
        fitting: how it is brought to another size, after it was converted to the mode.

    Raises:
        UnreadableImage: the image is not decoded.
    """
    with _opened(stream) as image:
        mode = mode or _look(image).mode
        _load(image)
        lies = orientation(image)
        try:
            if turn and lies != UPRIGHT:
                image = image.transpose(TURNS[lies])
            if image.mode == "P":
                # Pillow wants palettes with transparency to pass through RGBA.
                image = image.convert("RGBA")
            image = image.convert(mode)
            _check_fits(fitting, image.size)
            pixels = np.array(fitting.apply(image))
        except DECODER_ERRORS as error:
            raise UnreadableImage(Status.DECODE_ERROR, f"{type(error).__name__}: {error}") from error
    pixels = torch.from_numpy(pixels)
    pixels = pixels.unsqueeze(0) if mode == "L" else pixels.permute(2, 0, 1).contiguous()
    return Picture(pixels, lies != UPRIGHT)


def _check_fits(fitting: Fitting, size: tuple[int, int]) -> None:
    """Raise where an image of `size` would become too large, or is too small to be cut."""
    width, height = fitting.resized(size)
    if width * height > MAX_PIXELS:
        reason = f"{width} x {height} pixels once resized; at most {MAX_PIXELS} are made"
        raise UnreadableImage(Status.IMAGE_TOO_LARGE, reason)
    if not fitting.holds(size):
        raise UnreadableImage(Status.DECODE_ERROR, f"{width} x {height} pixels, from which the crop cannot be cut")


def from_levels(levels: Tensor, bounds: BoundsLike) -> Tensor:
    """Whole numbers 0..255 mapped to the bounds, float32: `lo + (hi - lo) * levels / 255`, rounded once.

    Raises:
        ParameterError: the bounds are no pair of finite numbers.
    """
    low, high = Bounds.of(bounds)
    table = (low + (high - low) * np.arange(256) / 255).astype(np.float32)
    return torch.from_numpy(table[levels.cpu().numpy()]).to(levels.device)


def is_image(shape: Sequence[int]) -> bool:
    """Whether inputs of this shape are drawn as images: `[1, H, W]` or `[3, H, W]`."""
    return len(shape) == 3 and shape[0] in CHANNELS.values()


def thumbnails(inputs: Tensor, bounds: BoundsLike) -> tuple[bytes, ...] | None:
    """PNG files that show the inputs, at most `THUMBNAIL_SIDE` pixels on the longer side.

    Args:
        inputs: `[B, *shape]`, float32 or float64.
        bounds: what is shown as black and as white; values outside are cut, NaN is black.

    Returns:
        one file per input, or None where `shape` is neither `[1, H, W]` nor `[3, H, W]`, or a value has no bound.
    """
    bounds = Bounds.of(bounds)
    if not is_image(inputs.shape[1:]) or not bounds.finite:
        return None
    low, high = bounds.envelope
    values = np.nan_to_num(inputs.cpu().numpy().astype(np.float64), nan=low)
    pixels = np.rint(255 * (values.clip(low, high) - low) / (high - low)).astype(np.uint8).transpose(0, 2, 3, 1)
    return tuple(_png(one[..., 0] if one.shape[-1] == 1 else one) for one in pixels)


def _png(pixels: np.ndarray) -> bytes:
    image = Image.fromarray(np.ascontiguousarray(pixels))
    image.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE))
    file = BytesIO()
    image.save(file, format="PNG")
    return file.getvalue()


@contextmanager
def _opened(stream: BinaryIO) -> Iterator[Image.Image]:
    """An image with an acceptable header; Pillow's own warnings are replaced by the checks here."""
    with warnings.catch_warnings(action="ignore"):
        image = _open(stream)
        _check_header(image)
        yield image


def _open(stream: BinaryIO) -> Image.Image:
    start = stream.read(256)
    stream.seek(0)
    if not start:
        raise UnreadableImage(Status.DECODE_ERROR, "the file is empty (0 bytes)")
    other = _other_format(start)
    if other is not None:
        raise UnreadableImage(Status.FORMAT_NOT_ALLOWED, f"{other}; only {', '.join(FORMATS)} are read")
    try:
        return Image.open(stream, formats=FORMATS)
    except Image.DecompressionBombError as error:
        size = str(error).partition(" exceeds")[0]
        raise UnreadableImage(Status.IMAGE_TOO_LARGE, f"{size}; at most {MAX_PIXELS} are decoded") from error
    except UnidentifiedImageError as error:
        raise UnreadableImage(Status.DECODE_ERROR, f"not an image in {', '.join(FORMATS)} format") from error
    except DECODER_ERRORS as error:
        raise UnreadableImage(Status.DECODE_ERROR, f"{type(error).__name__}: {error}") from error


def _load(image: Image.Image) -> None:
    try:
        image.load()
    except DECODER_ERRORS as error:
        raise UnreadableImage(Status.DECODE_ERROR, f"{type(error).__name__}: {error}") from error


def _other_format(start: bytes) -> str | None:
    """Name of a known image format that is not read."""
    for name, beginnings in _OTHER_FORMATS:
        if start.lstrip().startswith(beginnings):
            return name
    return _BOX_FORMATS.get(start[8:12]) if start[4:8] == b"ftyp" else None


def _check_header(image: Image.Image) -> None:
    width, height = image.size
    if width * height > MAX_PIXELS:
        reason = f"{width} x {height} pixels; at most {MAX_PIXELS} are decoded"
        raise UnreadableImage(Status.IMAGE_TOO_LARGE, reason)
    frames = getattr(image, "n_frames", 1)
    if frames > 1:
        raise UnreadableImage(Status.MULTI_FRAME, f"{frames} frames; one image is needed")
    if image.mode not in DECLARED:
        reason = f"colour mode {image.mode}; {', '.join(DECLARED)} are converted"
        raise UnreadableImage(Status.IMAGE_MODE, reason)


def _look(image: Image.Image) -> Look:
    return Look(DECLARED[image.mode], image.size)
