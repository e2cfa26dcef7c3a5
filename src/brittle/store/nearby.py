"""What was probably meant by a path at which there is nothing."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path

MOST_LOOKED_AT = 1000
"""Names in a folder that are compared."""

SHOWN = 3
"""Names that a sentence shows."""


def nearby(path: Path, wanted: Callable[[Path], bool]) -> str:
    """The end of a sentence: what in the folder of `path` has nearly its name, else some of what could be meant.

    Args:
        path: where there is nothing.
        wanted: whether a path could be meant.

    Returns:
        words that begin with a semicolon, or nothing.
    """
    folder = path.parent
    try:
        names = [one.name for _, one in zip(range(MOST_LOOKED_AT), folder.iterdir(), strict=False) if wanted(one)]
    except OSError:
        return f"; there is no folder {folder}" if not folder.exists() else ""
    stems = {Path(name).stem: name for name in names}
    close = difflib.get_close_matches(path.stem, list(stems), SHOWN)
    if close:
        return f"; did you mean {' or '.join(str(folder / stems[stem]) for stem in close)}?"
    there = sorted(name for name in names if not name.startswith("."))
    more = f" and {len(there) - SHOWN} more" if len(there) > SHOWN else ""
    return f"; {folder.absolute().name or folder} holds {', '.join(there[:SHOWN])}{more}" if there else ""
