"""Images: decoded without trust in the file, brought to one size, and drawn as thumbnails.

A file is looked at before it is decoded: its format must be on a short list, its size under a cap, its frames one.
It is taken as its pixels lie, as in torchvision, whatever its EXIF data say of its orientation.
"""

import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from brittle.estimate import Status
from brittle.model.bounds import Bounds, BoundsLike

FORMATS = ("PNG", "JPEG", "BMP", "WEBP", "PPM")
"""The image formats that are read, PPM with its kin PGM and PBM; none of them starts another program.

TIFF is none of them: a file may hold any compression, and Pillow reads all of its pages to count them.
"""

MAX_PIXELS = 1 << 26  # an image with more pixels is not decoded
THUMBNAIL_SIDE = 96  # longest side of a thumbnail, in pixels
CHANNELS = {"L": 1, "RGB": 3}  # the modes a data set can have, with their number of channels

DECLARED = {"1": "L", "L": "L", "LA": "L", "P": "RGB", "RGB": "RGB", "RGBA": "RGB"}  # of the first image

DECODER_ERRORS = (  # exceptions of Pillow on broken files
    *(OSError, SyntaxError, ValueError, TypeError, LookupError, EOFError, OverflowError, MemoryError),
    *(struct.error, zlib.error),
)


INTERPOLATIONS = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")  # as Pillow calls them
ROUNDINGS = ("even", "down")  # start of the middle where it is between two pixels: the even one, or the upper left one


@dataclass(frozen=True)
class ImageSteps:
    """Steps of the preparation of an image, in this order, in the words of `Reading`, bilinear where none is named.
    A `resize` of one side is the shorter one. Crops are rounded `even` as by torchvision, or `down`."""

    resize: tuple[int, ...] | None = None
    center_crop: tuple[int, ...] | None = None
    interpolation: str | None = None
    crop_rounding: str | None = None

    @property
    def words(self) -> str:
        parts = []
        if self.resize is not None:
            sides = " x ".join(map(str, self.resize)) + (" (the shorter side)" if len(self.resize) == 1 else "")
            parts.append(f"resized to {sides}, {self.interpolation}")
        if self.center_crop is not None:
            parts.append(f"the middle {self.center_crop[0]} x {self.center_crop[1]} kept")
        return ", ".join(parts) or "neither resized nor cut"


UNCHANGED = ImageSteps()


class UnreadableImage(Exception):
    """An image that is not decoded: how reading it ended, and what was found."""

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


def fit(image: Image.Image, steps: ImageSteps) -> Image.Image:
    """Return an image resized and cut as `torchvision.transforms.Resize` and `CenterCrop` do with images of Pillow."""
    width, height = _resized(image.size, steps.resize)
    size_text = f"{width} x {height} pixels{'' if steps.resize is None else ' once resized'}"
    if width * height > MAX_PIXELS:
        raise UnreadableImage(Status.IMAGE_TOO_LARGE, f"{size_text}; at most {MAX_PIXELS} are made")
    if (width, height) != image.size:
        image = image.resize((width, height), Image.Resampling[(steps.interpolation or "bilinear").upper()])
    if steps.center_crop is None:
        return image
    high, wide = steps.center_crop
    if high > height or wide > width:
        raise UnreadableImage(Status.DECODE_ERROR, f"{size_text}, from which the middle {wide} x {high} cannot be cut")
    round_start = math.floor if steps.crop_rounding == "down" else round
    start_x, start_y = round_start((width - wide) / 2.0), round_start((height - high) / 2.0)
    return image.crop((start_x, start_y, start_x + wide, start_y + high))


def _resized(size: tuple[int, int], resize: tuple[int, ...] | None) -> tuple[int, int]:
    """Width and height of an image of this width and height once it is resized."""
    if resize is None:
        return size
    if len(resize) == 2:
        return resize[1], resize[0]
    (side,), (width, height) = resize, size
    return (side, int(side * height / width)) if width <= height else (int(side * width / height), side)


def decode(stream: BinaryIO, mode: str | None = None, steps: ImageSteps = UNCHANGED) -> Tensor:
    """Return the pixels of an image file, `[channels, height, width]`, uint8, in a mode, by default its own opaque."""
    if not stream.read(1):
        raise UnreadableImage(Status.DECODE_ERROR, "the file is empty (0 bytes)")
    stream.seek(0)
    with decoding():
        image = Image.open(stream, formats=FORMATS)
        check_image(image)
        image.load()
        return pixels_of(image, mode or DECLARED[image.mode], steps)


def pixels_of(image: Image.Image, mode: str, steps: ImageSteps) -> Tensor:
    """Return an image converted to a mode and brought to its size, `[channels, height, width]`, uint8."""
    # Pillow wants palettes with transparency to pass through RGBA.
    image = image.convert("RGBA") if image.mode == "P" else image
    levels = torch.from_numpy(np.array(fit(image.convert(mode), steps)))
    return levels.unsqueeze(0) if levels.dim() == 2 else levels.permute(2, 0, 1).contiguous()


def from_levels(levels: Tensor, bounds: BoundsLike) -> Tensor:
    """Whole numbers 0..255 mapped to the bounds, float32: `lo + (hi - lo) * levels / 255`, rounded once."""
    low, high = Bounds.of(bounds)
    table = (low + (high - low) * np.arange(256) / 255).astype(np.float32)
    return torch.from_numpy(table[levels.cpu().numpy()]).to(levels.device)


def is_image(shape: Sequence[int]) -> bool:
    """Return whether inputs of this shape are drawn as images: `[1, H, W]` or `[3, H, W]`."""
    return len(shape) == 3 and shape[0] in CHANNELS.values()


def thumbnails(inputs: Tensor, bounds: BoundsLike) -> tuple[bytes, ...] | None:
    """PNG files of the inputs, `[B, *shape]`, the bounds black and white, NaN black; None without images or bounds."""
    bounds = Bounds.of(bounds)
    if not is_image(inputs.shape[1:]) or not bounds.finite:
        return None
    low, high = bounds.envelope
    values = np.nan_to_num(inputs.cpu().numpy().astype(np.float64), nan=low)
    pixels = np.rint(255 * (values.clip(low, high) - low) / (high - low)).astype(np.uint8).transpose(0, 2, 3, 1)
    return tuple(_png(picture[..., 0] if picture.shape[-1] == 1 else picture) for picture in pixels)


def _png(pixels: np.ndarray) -> bytes:
    image = Image.fromarray(np.ascontiguousarray(pixels))
    image.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE))
    file = BytesIO()
    image.save(file, format="PNG")
    return file.getvalue()


def check_image(image: Image.Image) -> None:
    """Raise `UnreadableImage` where an image is too large, has several frames, or another mode than those converted."""
    (width, height), frames = image.size, getattr(image, "n_frames", 1)
    if width * height > MAX_PIXELS:
        raise UnreadableImage(Status.IMAGE_TOO_LARGE, f"{width} x {height} pixels; at most {MAX_PIXELS} are decoded")
    if frames > 1:
        raise UnreadableImage(Status.MULTI_FRAME, f"{frames} frames; one image is needed")
    if image.mode not in DECLARED:
        raise UnreadableImage(Status.IMAGE_MODE, f"colour mode {image.mode}; {', '.join(DECLARED)} are converted")


@contextmanager
def decoding() -> Iterator[None]:
    """Turn the exceptions of Pillow on broken files into an image that is not decoded."""
    try:
        yield
    except Image.DecompressionBombError as error:
        size = str(error).partition(" exceeds")[0]
        raise UnreadableImage(Status.IMAGE_TOO_LARGE, f"{size}; at most {MAX_PIXELS} are decoded") from error
    except UnidentifiedImageError as error:
        raise UnreadableImage(Status.DECODE_ERROR, f"not an image in {', '.join(FORMATS)} format") from error
    except DECODER_ERRORS as error:
        raise UnreadableImage(Status.DECODE_ERROR, f"{type(error).__name__}: {error}") from error
