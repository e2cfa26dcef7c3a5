"""How an image says in its EXIF data that it is to be turned or mirrored.

The tag is looked up here, and not by Pillow, because nothing else in EXIF data is needed and none of it can be trusted:
entries of twelve bytes are looked at one by one, none is followed, and what is damaged says nothing.
"""

from __future__ import annotations

import re
import struct

from PIL import Image

EXIF = ("ignore", "apply")
"""What may be done with the orientation: leave the pixels as they lie, as torchvision does, or turn them as it says."""

UPRIGHT = 1
"""The orientation of an image whose pixels lie as it is to be seen."""

TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""What brings the pixels of an image of each other orientation to lie as it is to be seen."""

SIDEWAYS = frozenset({5, 6, 7, 8})
"""The orientations in which width and height change places."""

_PREFIX = re.compile(rb"\A(?:Exif\0\0)+")
_ORDERS = {b"II*\0": "<", b"MM\0*": ">"}
_ORIENTATION, _SHORT = 0x0112, 3


def orientation(image: Image.Image) -> int:
    """The orientation in the EXIF data of an image, 1 to 8; 1 where there is none that can be read.

    Only what was read of the file so far is looked at: the EXIF data of a PNG file may follow its pixels.
    """
    exif = image.info.get("exif")
    found = _tag(_PREFIX.sub(b"", exif)) if isinstance(exif, bytes) else None
    return found if found in TURNS else UPRIGHT


def _tag(tiff: bytes) -> int | None:
    """The orientation in EXIF data, or None where they lack it or are damaged."""
    order = _ORDERS.get(tiff[:4])
    if order is None:
        return None
    try:
        (start,) = struct.unpack_from(f"{order}I", tiff, 4)
        (entries,) = struct.unpack_from(f"{order}H", tiff, start)
        for entry in range(entries):
            tag, kind, count, value = struct.unpack_from(f"{order}HHIH", tiff, start + 2 + 12 * entry)
            if tag == _ORIENTATION:
                return value if (kind, count) == (_SHORT, 1) else None
    except struct.error:  # damaged: an entry lies outside the data
        return None
    return None
