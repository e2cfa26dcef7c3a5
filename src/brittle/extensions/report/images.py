"""The images of a run as the page holds them: alone, and side by side on sheets."""

import base64
import io
import math
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, features

MAX_THUMBNAIL = 1 << 18  # bytes beyond which an image is left out of the page
MAX_SIDE = 512  # longest side of an image that is decoded
TILE = 48  # longest side of an image on a sheet, in pixels
PER_SIDE = 5  # images in a row of a sheet, and rows: few, since a sheet is decoded whole when one image is seen
MAX_TILES = 10_000  # images on all sheets together
MAX_SHEET_BYTES = 12_000_000  # bytes of all sheets together; no further sheet is begun beyond them

_PNG = b"\x89PNG\r\n\x1a\n"
_DAMAGED = (OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error)


@dataclass(frozen=True)
class Sheets:
    """Images side by side. Each of `images` is a `data:` address, its tiles `side` pixels wide and high. `tiles`,
    `[N]`, is the place of each point's image, row by row over all sheets; -1 for none."""

    side: int
    images: tuple[str, ...]
    tiles: NDArray[np.int32]


def embedded(image: bytes | None) -> str:
    """Base64 of `image` if it is a PNG small enough to embed; else empty."""
    if image is None or len(image) > MAX_THUMBNAIL or not image.startswith(_PNG):
        return ""
    return base64.b64encode(image).decode("ascii")


def decoded(png: bytes | None) -> Image.Image | None:
    """Return the image of a small PNG; None for anything else."""
    if not embedded(png) or png is None:
        return None
    try:
        image = Image.open(io.BytesIO(png), formats=["PNG"])
        if max(image.size) > MAX_SIDE:
            return None
        return image.convert("L" if image.mode in ("1", "L") else "RGB")
    except _DAMAGED:
        return None


def sheets(pngs: Sequence[bytes | None], order: Iterable[int]) -> Sheets:
    """Return the images of a run on sheets, in `order`: that whose image matters most first."""
    tiles = np.full(len(pngs), -1, dtype=np.int32)
    placed: list[tuple[int, Image.Image]] = []
    for point in order:
        if len(placed) == MAX_TILES:
            break
        if (image := decoded(pngs[point])) is not None:
            image.thumbnail((TILE, TILE))
            tiles[point] = len(placed)
            placed.append((point, image))
    side = max((max(image.size) for _, image in placed), default=0)
    encoded_sheets: list[str] = []
    for start in range(0, len(placed), PER_SIDE**2):
        if sum(map(len, encoded_sheets)) > MAX_SHEET_BYTES:
            tiles[[point for point, _ in placed[start:]]] = -1
            break
        encoded_sheets.append(_sheet([image for _, image in placed[start : start + PER_SIDE**2]], side))
    return Sheets(side, tuple(encoded_sheets), tiles)


def _sheet(images: Sequence[Image.Image], side: int) -> str:
    mode = "RGB" if any(image.mode == "RGB" for image in images) else "L"
    sheet = Image.new(mode, (PER_SIDE * side, math.ceil(len(images) / PER_SIDE) * side))
    for place, image in enumerate(images):
        down, along = divmod(place, PER_SIDE)
        width, height = image.size
        sheet.paste(image.convert(mode), (along * side + (side - width) // 2, down * side + (side - height) // 2))
    kind = "webp" if features.check("webp") else "png"
    sink = io.BytesIO()
    sheet.save(sink, kind, **({"quality": 85, "method": 2} if kind == "webp" else {}))
    return f"data:image/{kind};base64," + base64.b64encode(sink.getvalue()).decode("ascii")
