"""The images of a run on its page: small ones side by side on sheets, and those of the nearest other inputs."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, features

from brittle.report.thumbnails import embedded

TILE = 48
"""Longest side of an image on a sheet, in pixels."""

PER_SIDE = 5
"""Images in a row of a sheet, and rows of a sheet: few, since a sheet is decoded whole when one image is seen."""

MAX_TILES = 10_000
"""Images on all sheets together."""

MAX_SHEET_BYTES = 12_000_000
"""Bytes of all sheets together; no further sheet is begun beyond them."""

MAX_PAIRS = 500
"""Points whose nearest input with another prediction is shown."""

MAX_PAIR_BYTES = 3_000_000
"""Bytes of their images."""

MAX_SIDE = 512
"""Longest side of an image that is decoded."""


@dataclass(frozen=True)
class Sheets:
    """Images side by side.

    Attributes:
        side: width and height of a tile, in pixels.
        images: each sheet as a `data:` address.
        tiles: `[N]`, the place of each point's image, row by row over all sheets; -1 for none.
    """

    side: int
    images: tuple[str, ...]
    tiles: NDArray[np.int32]


def sheets(pngs: Sequence[bytes | None], order: Iterable[int]) -> Sheets:
    """The images of a run on sheets.

    Args:
        pngs: a PNG per point, or None.
        order: the points, that whose image matters most first.
    """
    tiles = np.full(len(pngs), -1, dtype=np.int32)
    waiting: list[tuple[int, Image.Image]] = []
    placed = 0
    for point in order:
        if placed >= MAX_TILES:
            break
        image = decoded(pngs[point])
        if image is None:
            continue
        tiles[point] = placed
        placed += 1
        image.thumbnail((TILE, TILE))
        waiting.append((point, image))
    side = max((max(image.size) for _, image in waiting), default=0)
    made: list[str] = []
    for start in range(0, len(waiting), PER_SIDE**2):
        if sum(map(len, made)) > MAX_SHEET_BYTES:
            tiles[[point for point, _ in waiting[start:]]] = -1
            break
        made.append(_sheet([image for _, image in waiting[start : start + PER_SIDE**2]], side))
    return Sheets(side, tuple(made), tiles)


def decoded(png: bytes | None) -> Image.Image | None:
    """The image of a small PNG; None for anything else."""
    if not embedded(png) or png is None:
        return None
    try:
        image = Image.open(BytesIO(png), formats=["PNG"])
        if max(image.size) > MAX_SIDE:
            return None
        return image.convert("L" if image.mode in ("1", "L") else "RGB")
    except (OSError, SyntaxError, ValueError):
        return None


def address(png: bytes) -> str:
    """A PNG as a `data:` address."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def _sheet(images: Sequence[Image.Image], side: int) -> str:
    """Images in rows of `PER_SIDE`, each in the middle of its tile."""
    mode = "RGB" if any(image.mode == "RGB" for image in images) else "L"
    sheet = Image.new(mode, (PER_SIDE * side, math.ceil(len(images) / PER_SIDE) * side))
    for place, image in enumerate(images):
        down, along = divmod(place, PER_SIDE)
        width, height = image.size
        sheet.paste(image.convert(mode), (along * side + (side - width) // 2, down * side + (side - height) // 2))
    kind = "webp" if features.check("webp") else "png"
    sink = BytesIO()
    sheet.save(sink, kind, **({"quality": 85, "method": 2} if kind == "webp" else {}))
    return f"data:image/{kind};base64," + base64.b64encode(sink.getvalue()).decode("ascii")
