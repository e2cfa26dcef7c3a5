"""Numbers as the page's script reads them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

KINDS = {"f8": "<f8", "i4": "<i4", "u1": "u1"}
"""The kinds of numbers that a page holds, and how NumPy writes them."""


def packed(numbers: ArrayLike, kind: str) -> dict[str, str]:
    """Numbers of one kind: `{"kind": ..., "bytes": ...}`, the bytes little-endian in base64."""
    array = np.ascontiguousarray(np.asarray(numbers), dtype=KINDS[kind])
    return {"kind": kind, "bytes": base64.b64encode(array.tobytes()).decode("ascii")}


def inert_json(value: Mapping[str, object]) -> str:
    """JSON that can stand between `script` tags: nothing in it ends the element or begins a comment."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
