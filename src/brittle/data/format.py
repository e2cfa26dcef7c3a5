"""What a format of data is: how a path of it is recognised, and how it is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from brittle.data.options import ReadingOptions
from brittle.data.points import Points


class Format(NamedTuple):
    """A kind of data on disk.

    Attributes:
        name: what the record calls it.
        form: what it looks like, in words.
        recognise: whether a path is of this kind.
        read: opens it.
        encoded: whether it holds encoded images, which may carry EXIF data.
        arrays: whether it holds arrays of images, whose axis order can be said.
        options: the fields of `brittle.data.options.ReadingOptions` beyond those that it takes, some of
            `brittle.data.options.FOR_SOME`.
    """

    name: str
    form: str
    recognise: Callable[[Path], bool]
    read: Callable[[Path, ReadingOptions], Points]
    encoded: bool = False
    arrays: bool = False
    options: frozenset[str] = frozenset()
