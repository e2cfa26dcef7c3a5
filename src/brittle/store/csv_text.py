r"""Text in a CSV file: nothing that a terminal or a spreadsheet would run, and the way back.

Every character that is not printable (control, bidirectional and other invisible ones, line ends) is written as an
escape of Python, a backslash as two, and a text that a spreadsheet would take for a formula, or that begins with an
apostrophe, gets an apostrophe in front. So no two texts give one cell.
"""

from __future__ import annotations

from brittle.errors import printable

GUARDED = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Starts of text that a spreadsheet would run as a formula, in both widths; a tab or a line end in front of them is
escaped."""

MARK = "'"
"""What is put before such a text."""


def cell(text: str) -> str:
    r"""`text` as it stands in a CSV file.

    Example:
        >>> print(cell("=1"), cell("a\x1b[31m"), cell("b\\c"))
        '=1 a\x1b[31m b\\c
    """
    escaped = printable(text.replace("\\", "\\\\"))
    return f"{MARK}{escaped}" if escaped.startswith((*GUARDED, MARK)) else escaped


def text_of(cell: str) -> str:
    r"""The text that `cell` was made of.

    Example:
        >>> text_of("'=1"), text_of(r"a\x1b[31m")
        ('=1', 'a\x1b[31m')
    """
    return cell.removeprefix(MARK).encode("latin-1", "backslashreplace").decode("unicode_escape")
