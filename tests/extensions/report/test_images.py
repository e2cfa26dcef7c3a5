"""Images: each where the page looks for it, none from invalid PNGs, differences at one magnification."""

from __future__ import annotations

import base64
from io import BytesIO

import numpy as np
import pytest
from helpers.tables import HOSTILE
from numpy.typing import NDArray
from PIL import Image

from brittle.extensions.report.images import (
    MAX_SIDE,
    PER_SIDE,
    decoded,
    sheets,
)


def png(values: NDArray[np.float64]) -> bytes:
    sink = BytesIO()
    Image.fromarray(np.rint(255.0 * values.clip(0.0, 1.0)).astype(np.uint8)).save(sink, format="PNG")
    return sink.getvalue()


def plain(colour: tuple[int, int, int], size: tuple[int, int] = (8, 8)) -> bytes:
    return png(np.full((size[1], size[0], 3), colour) / 255.0)


def tile(sheet_url: str, side: int, place: int) -> np.ndarray:
    sheet = np.asarray(Image.open(BytesIO(base64.b64decode(sheet_url.partition(",")[2]))).convert("RGB"))
    down, along = divmod(place, PER_SIDE)
    return sheet[down * side : (down + 1) * side, along * side : (along + 1) * side]


GOOD = png(np.full((4, 4), 0.5))
DAMAGED = {
    "none": None,
    "empty": b"",
    "the start alone": b"\x89PNG\r\n\x1a\n",
    "another format": b"GIF89a" + bytes(20),
    "half": GOOD[:30],
    "too long": plain((0, 0, 0), (MAX_SIDE + 1, 1)),
    "too large by its head": GOOD[:16] + (1 << 20).to_bytes(4, "big") * 2 + GOOD[24:],
    "hostile": GOOD[:8] + HOSTILE[1].encode() * 9,
}


def test_every_image_is_at_the_place_of_its_tile() -> None:
    colours = [(10 * place % 250, 200 - place // 4, 120) for place in range(PER_SIDE**2 + 20)]
    pngs: list[bytes | None] = [plain(colour) for colour in colours]
    pngs[3] = None
    atlas = sheets(pngs, reversed(range(len(pngs))))
    assert len(atlas.images) == 2
    assert atlas.tiles[3] == -1
    assert sorted(atlas.tiles[atlas.tiles >= 0]) == list(range(len(pngs) - 1))
    for point in (0, 1, 30, 43):
        sheet, place = divmod(int(atlas.tiles[point]), PER_SIDE**2)
        middle = tile(atlas.images[sheet], atlas.side, place)[4, 4].astype(int)
        assert np.abs(middle - colours[point]).max() <= 24  # the sheets are compressed with loss
    assert sheets([None, None], [0, 1]).images == ()


@pytest.mark.parametrize("damaged", DAMAGED.values(), ids=[*DAMAGED])
def test_damaged_and_large_images_are_left_out(damaged: bytes | None) -> None:
    assert decoded(damaged) is None
    assert sheets([damaged, plain((1, 1, 1))], [0, 1]).tiles.tolist() == [-1, 0]
