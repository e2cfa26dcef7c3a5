"""Images on sheets: each where the page looks for it, none from what is no small PNG."""

from __future__ import annotations

import base64
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from brittle.report.page.pictures import MAX_SIDE, PER_SIDE, TILE, decoded, sheets


def png(colour: tuple[int, int, int], size: tuple[int, int] = (8, 8)) -> bytes:
    sink = BytesIO()
    Image.new("RGB", size, colour).save(sink, "png")
    return sink.getvalue()


def tile(made: str, side: int, place: int) -> np.ndarray:
    sheet = np.asarray(Image.open(BytesIO(base64.b64decode(made.partition(",")[2]))).convert("RGB"))
    down, along = divmod(place, PER_SIDE)
    return sheet[down * side : (down + 1) * side, along * side : (along + 1) * side]


def test_every_image_is_where_its_tile_says() -> None:
    colours = [(10 * place % 250, 200 - place // 4, 120) for place in range(PER_SIDE**2 + 20)]
    pngs: list[bytes | None] = [png(colour) for colour in colours]
    pngs[3] = None
    made = sheets(pngs, reversed(range(len(pngs))))
    assert len(made.images) == 2
    assert made.tiles[3] == -1
    assert sorted(made.tiles[made.tiles >= 0]) == list(range(len(pngs) - 1))
    for point in (0, 1, 30, 43):
        sheet, place = divmod(int(made.tiles[point]), PER_SIDE**2)
        middle = tile(made.images[sheet], made.side, place)[4, 4].astype(int)
        assert np.abs(middle - colours[point]).max() <= 24  # the sheets are compressed with loss


def test_large_images_are_made_small_and_keep_their_shape() -> None:
    made = sheets([png((200, 0, 0), (96, 48))], [0])
    assert made.side == TILE
    one = tile(made.images[0], made.side, 0)
    assert one[TILE // 2, 2, 0] > 150
    assert one[2, TILE // 2, 0] < 50  # above the image


@pytest.mark.parametrize(
    "damaged",
    [None, b"", b"\x89PNG\r\n\x1a\n", b"GIF89a" + bytes(20), png((1, 2, 3))[:40], png((0, 0, 0), (MAX_SIDE + 1, 1))],
)
def test_what_is_no_small_png_is_left_out(damaged: bytes | None) -> None:
    assert decoded(damaged) is None
    made = sheets([damaged, png((1, 1, 1))], [0, 1])
    assert made.tiles.tolist() == [-1, 0]


def test_no_images_make_no_sheet() -> None:
    assert sheets([None, None], [0, 1]).images == ()
