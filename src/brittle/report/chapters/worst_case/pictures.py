"""Differences of images, at one magnification in the whole chapter."""

from __future__ import annotations

import io
import math
import struct
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from brittle.report.thumbnails import embedded

MOST_PIXELS = 1 << 16
"""Pixels of a thumbnail beyond which no difference is drawn."""

STEPS = (1, 2, 5)
"""First digits of a magnification."""

SHOWN = 0.5
"""What a difference may reach, magnified, before it is cut: half of the range on either side of grey."""


def pixels(png: bytes | None) -> NDArray[np.float64] | None:
    """The values of a PNG from 0 to 1; None where it is none, or too large."""
    if not embedded(png) or png is None:
        return None
    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    if width * height > MOST_PIXELS:
        return None
    try:
        with Image.open(io.BytesIO(png), formats=("PNG",)) as image:
            return np.asarray(image, dtype=np.float64) / 255.0 if image.mode in ("L", "RGB") else None
    except (OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error):
        return None


def largest_change(point: bytes | None, found: bytes | None, difference: bytes | None) -> float:
    """What the largest change of a pixel was, as a share of the range of the inputs; 0 where it is not known.

    A stored difference fills the range around grey, `0.5 + d / (2 max |d|)`, whatever its size. That size is the factor
    which fits it to the two images, by least squares over all pixels.
    """
    here, there, shape = pixels(point), pixels(found), pixels(difference)
    if here is None or there is None or shape is None or not here.shape == there.shape == shape.shape:
        return 0.0
    unit = 2.0 * shape - 1.0
    norm = float((unit**2).sum())
    return max(float(((there - here) * unit).sum()) / norm, 0.0) if norm > 0.0 else 0.0


def common_factor(changes: Sequence[float]) -> int:
    """The magnification, 1, 2 or 5 times a power of ten, at which half of the largest changes fit the range."""
    known = [change for change in changes if change > 0.0]
    if not known:
        return 1
    most = SHOWN / float(np.median(known))
    power = math.floor(math.log10(max(most, 1.0)))
    return max([1, *(int(step * 10**power) for step in STEPS if step * 10**power <= most)])


def magnified(difference: bytes | None, change: float, factor: int) -> bytes | None:
    """A stored difference drawn anew: `0.5 + factor * d`, cut at the ends of the range; None where it is not known."""
    shape = pixels(difference)
    if shape is None or change <= 0.0:
        return None
    values = np.clip(0.5 + (2.0 * shape - 1.0) * change * factor, 0.0, 1.0)
    sink = io.BytesIO()
    Image.fromarray(np.rint(255.0 * values).astype(np.uint8)).save(sink, format="PNG", optimize=True)
    return sink.getvalue()
