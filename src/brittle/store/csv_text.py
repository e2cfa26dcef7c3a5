r"""Text in a CSV file: nothing that a terminal or a spreadsheet would run, and the way back.

Every character that is not printable (control, bidirectional and other invisible ones, line ends) is written as an
escape of Python, a backslash as two, and a text that a spreadsheet would take for a formula, or that begins with an
apostrophe, gets an apostrophe in front. So does what follows a semicolon, at which spreadsheets split a line where the
comma is in numbers, as in German or French. So no two texts give one cell.
"""

from __future__ import annotations

import re

from brittle.errors import printable

MARK = "'"
"""Mark in front of a text that a spreadsheet would run."""

GUARDED = f"[-=+@\uff1d\uff0b\uff0d\uff20{MARK}]"
"""Starts of such a text, in both widths, and of one that looks marked; a tab or a line end in front is escaped."""

_PLACES = re.compile(rf'^(?={GUARDED})|;(?=[ "]*{GUARDED})')
"""Places of the mark. A quotation mark behind a semicolon begins a cell, and is no part of it."""


def cell(text: str) -> str:
    r"""`text` as it stands in a CSV file.

    Example:
        >>> print(cell("=1"), cell("a\x1b[31m"), cell("b\\c"), cell("x;=1"))
        '=1 a\x1b[31m b\\c x;'=1
    """
    escaped = printable(text.replace("\\", "\\\\"))
    return _PLACES.sub(rf"\g<0>{MARK}", escaped)


def text_of(cell: str) -> str:
    r"""The text that `cell` was made of.

    Example:
        >>> text_of("'=1"), text_of(r"a\x1b[31m")
        ('=1', 'a\x1b[31m')
    """
    return re.sub(f"(^|;){MARK}", r"\1", cell).encode("latin-1", "backslashreplace").decode("unicode_escape")
