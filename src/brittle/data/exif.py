"""How an image says in its EXIF data that it is to be turned or mirrored, as Pillow reads them.

None of it can be trusted: what is damaged says nothing, and no more of it is read than a JPEG file can hold.
"""

from __future__ import annotations

import struct
import zlib

from PIL import ExifTags, Image

EXIF = ("ignore", "apply")
"""What may be done with the orientation: leave the pixels as they lie, as torchvision does, or turn them as it says."""

UPRIGHT = 1
"""The orientation of an image whose pixels lie upright."""

TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""What brings the pixels of an image of each other orientation to lie upright."""

SIDEWAYS = frozenset({5, 6, 7, 8})
"""The orientations in which width and height change places."""

MOST_BYTES = 1 << 16
"""Bytes of EXIF data that are read, which are all that a JPEG file can hold; in longer data the tags come first too.

Pillow before 13 copies what each tag claims to be, so data of so many bytes may cost it 360 MB, and longer ones more.
"""

DECODER_ERRORS = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    IndexError,
    KeyError,
    EOFError,
    OverflowError,
    MemoryError,
    struct.error,
    zlib.error,
)
"""What Pillow raises on broken files."""


def orientation(image: Image.Image) -> int:
    """The orientation in the EXIF data of an image, 1 to 8; 1 where there is none that can be read.

    Only what was read of the file so far is looked at: the EXIF data of a PNG file may follow its pixels. Pillow warns
    of damaged data.
    """
    data = image.info.get("exif")
    if not isinstance(data, bytes):
        return UPRIGHT
    exif = Image.Exif()
    try:
        exif.load(data[:MOST_BYTES])
        found = exif.get(ExifTags.Base.Orientation)
    except DECODER_ERRORS:
        return UPRIGHT
    return found if isinstance(found, int) and found in TURNS else UPRIGHT
