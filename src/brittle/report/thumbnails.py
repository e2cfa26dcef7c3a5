"""Images of a table as the page holds them."""

from __future__ import annotations

import base64

MAX_THUMBNAIL = 1 << 18
"""Bytes beyond which an image is left out of the page."""

_PNG = b"\x89PNG\r\n\x1a\n"


def embedded(image: bytes | None) -> str:
    """Base64 of `image` if it is a PNG small enough to embed."""
    if image is None or len(image) > MAX_THUMBNAIL or not image.startswith(_PNG):
        return ""
    return base64.b64encode(image).decode("ascii")
